/* disk_space.h - the size of the btrfs in the image, its free space, and changing both.
 *
 * btrfs promises space when a tenant writes and uses it seconds later. It can keep the promise only
 * where the image has blocks, so btrfs is never larger than the allocated part of the image.
 * Everything except space_look() may block. Failures are in errno. */
#ifndef KEEPER_DISK_SPACE_H
#define KEEPER_DISK_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum space_file {
    SPACE_DATA_TOTAL,
    SPACE_DATA_USED,
    SPACE_DATA_MAY_USE,
    SPACE_DATA_RESERVED,
    SPACE_DATA_READONLY,
    SPACE_META_TOTAL,
    SPACE_META_USED,
    SPACE_META_RESERVED,
    SPACE_META_READONLY,
    SPACE_META_HELD,
    SPACE_FILES
};

struct space_at {
    int fs_fd;              /* a directory of the mounted btrfs */
    int image_fd;           /* the image below it, for reading and writing */
    int files[SPACE_FILES]; /* the kernel's counters, in sysfs */
};

struct space {
    uint64_t size;      /* of btrfs, in bytes */
    uint64_t used;      /* by metadata and data, promised bytes included */
    uint64_t unclaimed; /* in no chunk yet; may become data or metadata */
    uint64_t free;      /* for data */
    uint64_t meta_free; /* for metadata, without what btrfs keeps for itself */
    uint64_t meta_total;
};

#define SPACE_GRAIN (16ull << 20) /* sizes are multiples of it, except the largest */

/* `sysfs` is the directory of this btrfs in /sys. image_fd belongs to `at` on success. */
int space_open(struct space_at *at, int fs_fd, int image_fd, const char *sysfs, struct err *e);
void space_close(struct space_at *at);
int space_look(const struct space_at *at, struct space *ret);

/* Bytes that may be taken from the file system of the image, which keeps a minimum free. */
uint64_t space_host_room(int image_fd);

/* Allocates [from, to) of the image as far as the host has room, then grows btrfs to that size,
 * which is *ret_size. After a kill in between, more is allocated than btrfs uses. */
int space_grow(const struct space_at *at, uint64_t from, uint64_t to, uint64_t *ret_size);

/* Shrinks btrfs to `to`, or as far as possible, and gives the tail of the image back to the host.
 * At least `keep` bytes stay after the last chunk, for new chunks. Chunks in use are moved out of
 * the last `move` bytes. *ret_size is the size after that, which may be the old one. */
int space_shrink(const struct space_at *at, uint64_t from, uint64_t to, uint64_t keep,
                 uint64_t move, uint64_t *ret_size);

/* Allocates the missing parts of [0, size) of the image; nothing after `size` is allocated. ENOSPC:
 * the host has no room for all, and keeps its minimum free. */
int space_back(const struct space_at *at, uint64_t size);
/* Gives the part of the image after `size` back to the host; an interrupted call may have left it.
 */
void space_trim(const struct space_at *at, uint64_t size);
/* True if the host's file system can allocate before writing; tried with an unnamed file. */
bool space_can_allocate(int dir_fd);

/* Size and used bytes of the btrfs in an image, as of its last commit. */
int space_read_image(int image_fd, uint64_t *ret_size, uint64_t *ret_used);

/* Moves the first metadata into a chunk of the usual size. */
int space_widen_metadata(const struct space_at *at);

#endif
