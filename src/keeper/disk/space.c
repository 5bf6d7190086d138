/* space.c - see keeper/disk_space.h. */
#include "keeper/disk_space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

/* Kept free on the host's file system when btrfs grows, for the front's database and logs and for
 * other programs: a twentieth, at most this. */
#define HOST_FLOOR_MAX (1ull << 30)
/* ext4 blocks all writes to the image while it allocates: so in pieces (128 MiB, one extent of
 * ext4: 0.1 ms). */
#define PIECE (128ull << 20)
#define DEVICE 1 /* the id of the only device of the btrfs that mkfs makes */

static const char *const names[SPACE_FILES] = {
    [SPACE_DATA_TOTAL] = "data/total_bytes",
    [SPACE_DATA_USED] = "data/bytes_used",
    [SPACE_DATA_MAY_USE] = "data/bytes_may_use",
    [SPACE_DATA_RESERVED] = "data/bytes_reserved",
    [SPACE_DATA_READONLY] = "data/bytes_readonly",
    [SPACE_META_TOTAL] = "metadata/total_bytes",
    [SPACE_META_USED] = "metadata/bytes_used",
    [SPACE_META_RESERVED] = "metadata/bytes_reserved",
    [SPACE_META_READONLY] = "metadata/bytes_readonly",
    [SPACE_META_HELD] = "global_rsv_size",
};

int space_open(struct space_at *at, int fs_fd, int image_fd, const char *sysfs, struct err *e)
{
    char path[256];

    *at = (struct space_at){.fs_fd = fcntl(fs_fd, F_DUPFD_CLOEXEC, 0), .image_fd = -1};
    for (int i = 0; i < SPACE_FILES; i++)
        at->files[i] = -1;
    if (at->fs_fd < 0)
        return err_sys(e, "open the directory of the disks");
    for (int i = 0; i < SPACE_FILES; i++) {
        str_fmt(path, sizeof(path), "%s/allocation/%s", sysfs, names[i]);
        at->files[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (at->files[i] < 0) {
            err_sys(e, "open %s", path);
            space_close(at);
            return -1;
        }
    }
    at->image_fd = image_fd;
    return 0;
}

void space_close(struct space_at *at)
{
    for (int i = 0; i < SPACE_FILES; i++)
        drop_fd(&at->files[i]);
    drop_fd(&at->image_fd);
    drop_fd(&at->fs_fd);
}

/* ---- looking ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Pinned bytes (deleted, transaction not committed yet) count as free: btrfs commits before it
 * returns ENOSPC. */
int space_look(const struct space_at *at, struct space *ret)
{
    struct btrfs_ioctl_dev_info_args dev = {.devid = DEVICE};
    uint64_t v[SPACE_FILES], data;

    for (int i = 0; i < SPACE_FILES; i++) {
        char text[32] = "";

        if (pread(at->files[i], text, sizeof(text) - 1, 0) <= 0)
            return -1;
        v[i] = strtoull(text, NULL, 10);
    }
    if (ioctl(at->fs_fd, BTRFS_IOC_DEV_INFO, &dev) < 0)
        return -1;
    data = v[SPACE_DATA_USED] + v[SPACE_DATA_MAY_USE] + v[SPACE_DATA_RESERVED];
    ret->size = dev.total_bytes;
    ret->unclaimed = minus(dev.total_bytes, dev.bytes_used);
    ret->used = data + v[SPACE_META_USED];
    ret->free = ret->unclaimed + minus(v[SPACE_DATA_TOTAL], data + v[SPACE_DATA_READONLY]);
    ret->meta_free = ret->unclaimed +
                     minus(v[SPACE_META_TOTAL], v[SPACE_META_USED] + v[SPACE_META_RESERVED] +
                                                    v[SPACE_META_READONLY] + v[SPACE_META_HELD]);
    ret->meta_total = v[SPACE_META_TOTAL];
    return 0;
}

uint64_t space_host_room(int image_fd)
{
    struct statvfs st;
    uint64_t floor;

    if (fstatvfs(image_fd, &st) < 0)
        return 0;
    floor = (uint64_t)st.f_blocks * st.f_frsize / 20;
    return minus((uint64_t)st.f_bavail * st.f_frsize,
                 floor < HOST_FLOOR_MAX ? floor : HOST_FLOOR_MAX);
}

/* The end of the last chunk on the device, and the start of the first one at or after `from`. */
static int find_chunks(int fs_fd, uint64_t from, uint64_t *ret_start, uint64_t *ret_end)
{
    struct btrfs_ioctl_search_args a = {.key = {.tree_id = BTRFS_DEV_TREE_OBJECTID,
                                                .min_objectid = DEVICE,
                                                .max_objectid = DEVICE,
                                                .min_type = BTRFS_DEV_EXTENT_KEY,
                                                .max_type = BTRFS_DEV_EXTENT_KEY,
                                                .max_offset = UINT64_MAX,
                                                .max_transid = UINT64_MAX}};

    *ret_start = UINT64_MAX;
    *ret_end = 0;
    for (;;) {
        const char *p = a.buf;

        a.key.nr_items = 4096;
        if (ioctl(fs_fd, BTRFS_IOC_TREE_SEARCH, &a) < 0)
            return -1;
        if (a.key.nr_items == 0)
            return 0;
        for (uint32_t i = 0; i < a.key.nr_items; i++) {
            struct btrfs_ioctl_search_header h;
            struct btrfs_dev_extent x;

            memcpy(&h, p, sizeof(h));
            memcpy(&x, p + sizeof(h), sizeof(x));
            p += sizeof(h) + h.len;
            if (h.offset >= from && *ret_start == UINT64_MAX)
                *ret_start = h.offset;
            *ret_end = h.offset + x.length; /* little-endian, as this machine is */
            a.key.min_offset = h.offset + 1;
        }
    }
}

/* ---- changing ---- */

/* When this returns the transaction is committed and the image flushed. */
static int resize(int fs_fd, uint64_t size)
{
    struct btrfs_ioctl_vol_args a = {0};

    str_fmt(a.name, sizeof(a.name), "%d:%llu", DEVICE, (unsigned long long)size);
    return ioctl(fs_fd, BTRFS_IOC_RESIZE, &a);
}

static void punch(int image_fd, uint64_t from, uint64_t to)
{
    if (from < to)
        fallocate(image_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                  (off_t)(to - from));
}

int space_grow(const struct space_at *at, uint64_t from, uint64_t to, uint64_t *ret_size)
{
    uint64_t end = from;
    int sys = ENOSPC;

    *ret_size = from;
    while (end < to) {
        uint64_t len = to - end < PIECE ? to - end : PIECE;

        if (space_host_room(at->image_fd) < len)
            break;
        /* btrfs also grows where fallocate does not work: see reserve.no_allocate. */
        if (fallocate(at->image_fd, 0, (off_t)end, (off_t)len) < 0 && errno != EOPNOTSUPP) {
            sys = errno;
            punch(at->image_fd, end, end + len);
            break;
        }
        end += len;
    }
    if (end > from && resize(at->fs_fd, end) < 0) {
        sys = errno;
        punch(at->image_fd, from, end);
        end = from;
    }
    *ret_size = end;
    errno = sys;
    return end > from ? 0 : -1;
}

int space_shrink(const struct space_at *at, uint64_t from, uint64_t to, uint64_t keep,
                 uint64_t move, uint64_t *ret_size)
{
    uint64_t start, end;

    *ret_size = from;
    if (find_chunks(at->fs_fd, 0, &start, &end) < 0)
        return -1;
    if (to < end + keep && move > 0 && from < end + keep + SPACE_GRAIN) {
        /* Wakes the btrfs thread that drops empty chunks. */
        if (ioctl(at->fs_fd, BTRFS_IOC_SYNC, 0) < 0 ||
            find_chunks(at->fs_fd, minus(end, move), &start, &end) < 0)
            return -1;
        if (start < end)
            end = start;
    }
    if (to < end + keep)
        to = end + keep;
    to = (to + SPACE_GRAIN - 1) & ~(SPACE_GRAIN - 1);
    if (to >= from)
        return 0;
    if (resize(at->fs_fd, to) < 0)
        return -1;
    punch(at->image_fd, to, from);
    *ret_size = to;
    return 0;
}

/* No call tells which pieces are allocated already and need no room. But nothing is allocated after
 * the end of btrfs: if the image has as many blocks as btrfs is large, none is missing. */
int space_back(const struct space_at *at, uint64_t size)
{
    for (uint64_t done = 0; done < size; done += PIECE) {
        uint64_t len = size - done < PIECE ? size - done : PIECE;
        struct stat st;

        if (fstat(at->image_fd, &st) < 0)
            return -1;
        if ((uint64_t)st.st_blocks * 512 < size && space_host_room(at->image_fd) < len) {
            errno = ENOSPC;
            return -1;
        }
        if (fallocate(at->image_fd, 0, (off_t)done, (off_t)len) < 0)
            return -1;
    }
    return 0;
}

void space_trim(const struct space_at *at, uint64_t size)
{
    struct stat st;

    if (fstat(at->image_fd, &st) == 0)
        punch(at->image_fd, size, (uint64_t)st.st_size);
}

bool space_can_allocate(int dir_fd)
{
    autofd int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd < 0 || fallocate(fd, 0, 0, 4096) == 0 || errno != EOPNOTSUPP;
}

/* The superblock is at 64 KiB: its magic at 64, these two at 112 and 120, little-endian. */
int space_read_image(int image_fd, uint64_t *ret_size, uint64_t *ret_used)
{
    char super[128];

    if (pread(image_fd, super, sizeof(super), 64 << 10) != sizeof(super) ||
        memcmp(super + 64, "_BHRfS_M", 8) != 0) {
        errno = EINVAL;
        return -1;
    }
    memcpy(ret_size, super + 112, sizeof(*ret_size));
    memcpy(ret_used, super + 120, sizeof(*ret_used));
    return 0;
}

int space_widen_metadata(const struct space_at *at)
{
    struct btrfs_ioctl_balance_args a = {.flags = BTRFS_BALANCE_METADATA};

    return ioctl(at->fs_fd, BTRFS_IOC_BALANCE_V2, &a);
}
