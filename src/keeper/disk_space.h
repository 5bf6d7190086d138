/* disk_space.h - how large the btrfs in the image is, what is free in it, and how both change.
 *
 * btrfs promises space when a tenant writes and uses it seconds later. A promise is kept
 * only where the image has blocks: so btrfs is made as large as what is allocated in the
 * image and no larger. Everything but space_look() may block. Failures are in errno. */
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
    uint64_t size;      /* bytes that btrfs has */
    uint64_t used;      /* by metadata and data, promised bytes included */
    uint64_t unclaimed; /* in no chunk yet: may become data or metadata */
    uint64_t free;      /* for data */
    uint64_t meta_free; /* for metadata, without what btrfs holds back for itself */
    uint64_t meta_total;
};

#define SPACE_GRAIN (16ull << 20) /* sizes are multiples of it, but for the largest */

/* `sysfs`: the directory of this btrfs there. image_fd belongs to `at` on success. */
int space_open(struct space_at *at, int fs_fd, int image_fd, const char *sysfs, struct err *e);
void space_close(struct space_at *at);
int space_look(const struct space_at *at, struct space *ret);

/* Bytes that may be taken from the image's own file system, its floor left alone. */
uint64_t space_host_room(int image_fd);

/* Allocates [from, to) of the image as far as the host has room, and makes btrfs as large.
 * *ret_size is its size then. Killed in between: more is allocated than btrfs has. */
int space_grow(const struct space_at *at, uint64_t from, uint64_t to, uint64_t *ret_size);

/* Makes btrfs smaller, to `to` or less far, and gives the tail of the image back. At least
 * `keep` bytes stay after the last chunk, for what comes next. Chunks that are in use are moved
 * away from the last `move` bytes. *ret_size is the size then, which may be what it was. */
int space_shrink(const struct space_at *at, uint64_t from, uint64_t to, uint64_t keep,
                 uint64_t move, uint64_t *ret_size);

/* Allocates what is missing in [0, size) of the image, of which nothing after `size` is
 * allocated. ENOSPC: the host has no room for all, and its floor is left alone. */
int space_back(const struct space_at *at, uint64_t size);
/* Gives back what an interrupted call left after `size`. */
void space_trim(const struct space_at *at, uint64_t size);
/* True where the host's file system allocates ahead of writing; tried in a file without a name. */
bool space_can_allocate(int dir_fd);

/* The size of the btrfs in an image and what is used of it, as last committed. */
int space_read_image(int image_fd, uint64_t *ret_size, uint64_t *ret_used);

/* Moves what little metadata there is into a chunk of the usual size. */
int space_widen_metadata(const struct space_at *at);

#endif
