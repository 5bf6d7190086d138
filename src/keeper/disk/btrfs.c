/* btrfs.c - a btrfs subvolume with a quota per sandbox: 0.05 ms to make, and a running sandbox is
 * snapshotted as a btrfs snapshot of it.
 *
 * All are in one image file in DIR, which is allocated as far as btrfs is large (disk_reserve.h),
 * mounted over a loop device at DIR/disk in the keeper's private mount namespace: the mount goes
 * away with the keeper, the loop device (autoclear) with the last sandbox that uses it. */
#include <dirent.h>
#include <linux/btrfs_tree.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/cgroup.h"
#include "keeper/compat.h"
#include "keeper/disk.h"
#include "keeper/snapshot.h"

#define IMAGE "disk.img"
#define IMAGE_MIN (256ull << 20)
#define LOOP_WAIT_MS 5000
#define LOOP_STEP_MS 5

/* Made under another name: an image that exists is complete. */
static int make_image(struct keeper *k, const char *path, struct err *e)
{
    char fresh[600], bytes[32];
    const char *const argv[] = {"mkfs.btrfs", "-q", "-K",  "-m",  "single", "-d",
                                "single",     "-b", bytes, fresh, NULL};
    uint64_t pool = k->config.disk_pool, size;
    struct statvfs st;
    autofd int fd = -1;
    int flags, r;

    if (pool == 0 && fstatvfs(k->dir_fd, &st) == 0)
        pool = (uint64_t)st.f_bavail * st.f_frsize / 5 * 4;
    pool = (pool < IMAGE_MIN ? IMAGE_MIN : pool) & ~0xfffffull;
    str_fmt(fresh, sizeof(fresh), "%s.new", path);
    fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    /* On a host with btrfs: no copy-on-write, or every write would need new blocks there. Only an
     * empty file accepts the flag; other file systems do not know it. */
    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_NOCOW_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
    if (fd < 0 || ftruncate(fd, (off_t)pool) < 0)
        return err_sys(e, "make %s", fresh);
    if (reserve_first_size(k, pool, &size, e) < 0) {
        unlink(fresh);
        return -1;
    }
    str_fmt(bytes, sizeof(bytes), "%llu", (unsigned long long)size);
    r = disk_run("/sbin/mkfs.btrfs", argv);
    if (r != 0) {
        err_set(e, r < 0 ? ERR_UNSUPPORTED : ERR_INTERNAL,
                r < 0 ? "run mkfs.btrfs: %s; install the package btrfs-progs"
                      : "mkfs.btrfs failed on %s",
                r < 0 ? strerror(errno) : fresh);
        unlink(fresh);
        return -1;
    }
    if (fsync(fd) < 0 || rename(fresh, path) < 0)
        return err_sys(e, "make %s", path);
    return 0;
}

static int open_loop(int number, int flags, char dev[32])
{
    int fd;

    str_fmt(dev, 32, "/dev/loop%d", number);
    fd = open(dev, flags | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && mknod(dev, S_IFBLK | 0660, makedev(7, number)) == 0)
        fd = open(dev, flags | O_CLOEXEC);
    return fd;
}

/* Other programs take free devices too: try again when ours was taken in between. The fd must stay
 * open until the mount uses the device, or autoclear frees it. */
static int attach_loop(const char *image, char dev[32], struct err *e)
{
    autofd int file = open(image, O_RDWR | O_CLOEXEC);
    autofd int ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config c = {.fd = (uint32_t)file,
                            .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};

    if (file < 0 || ctl < 0)
        return err_sys(e, file < 0 ? "open the disk image" : "/dev/loop-control");
    for (int tries = 0; tries < 64; tries++) {
        int number = ioctl(ctl, LOOP_CTL_GET_FREE);
        autofd int fd = number < 0 ? -1 : open_loop(number, O_RDWR, dev);

        if (fd < 0)
            return err_sys(e, "find a free loop device");
        if (ioctl(fd, LOOP_CONFIGURE, &c) == 0)
            return take_fd(&fd);
        if (errno == EINVAL && (c.info.lo_flags & LO_FLAGS_DIRECT_IO) != 0)
            c.info.lo_flags &= ~(uint32_t)LO_FLAGS_DIRECT_IO;
        else if (errno != EBUSY)
            return err_sys(e, "attach %s", dev);
    }
    return err_set(e, ERR_INTERNAL, "attach the disk image: no free loop device");
}

struct search {
    struct stat image;
    char dev[32];
    int fd;       /* keeps the device */
    bool leaving; /* a device is being detached; its file is unknown */
};

/* btrfs would treat a second loop device of the image as another copy and mount it again, in the
 * same blocks. So devices are compared by the file they are attached to, not by its path, which a
 * bind mount changes; and a device that cannot be read ends the search. */
static int look_at(struct search *s, const char *name, struct err *e)
{
    struct loop_info64 info;
    autofd int fd = -1;
    char path[320];
    uint64_t number;

    snprintf(path, sizeof(path), "/sys/block/%s/loop", name);
    if (strncmp(name, "loop", 4) != 0 || str_u64(name + 4, INT32_MAX, &number) < 0 ||
        access(path, F_OK) < 0)
        return 0; /* no file is attached to it */
    fd = open_loop((int)number, O_RDONLY, s->dev);
    if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0) {
        if (info.lo_device == s->image.st_dev && info.lo_inode == s->image.st_ino)
            s->fd = take_fd(&fd);
        return 0;
    }
    if (errno == EPERM)
        return 0; /* this container may not open it, so it did not attach it */
    if (errno != ENXIO)
        return err_sys(e, "read the state of %s", s->dev);
    s->leaving = true;
    return 0;
}

/* The loop device that an earlier keeper left on the image, if there is one. */
static int find_loop(struct search *s, struct err *e)
{
    DIR *d = opendir("/sys/block");
    int r = 0;

    if (d == NULL)
        return err_sys(e, "read /sys/block");
    s->leaving = false;
    for (struct dirent *de; r == 0 && s->fd < 0 && (de = readdir(d)) != NULL;)
        r = look_at(s, de->d_name, e);
    closedir(d);
    return r;
}

/* The device of an earlier keeper may be about to go, with its last mount. */
static int hold_loop(const char *image, char dev[32], bool *ret_used, struct err *e)
{
    struct search s = {.fd = -1};

    *ret_used = false;

    if (stat(image, &s.image) < 0)
        return err_sys(e, "open %s", image);
    for (int waited = 0;; waited += LOOP_STEP_MS) {
        if (find_loop(&s, e) < 0)
            return -1;
        if (s.fd >= 0)
            break;
        if (!s.leaving)
            return attach_loop(image, dev, e);
        if (waited >= LOOP_WAIT_MS)
            return err_set(
                e, ERR_INTERNAL,
                "attach the disk image: its old loop device is still being detached; try again");
        poll(NULL, 0, LOOP_STEP_MS);
    }
    memcpy(dev, s.dev, sizeof(s.dev));
    *ret_used = true;
    return s.fd;
}

/* Discards would give promised blocks back. An earlier release mounted with discards: remounted,
 * since a second mount keeps the old options. */
#define MOUNT_OPTIONS "nodiscard"

/* 0: mounted; 1: not, since it is read-only and mounted elsewhere. */
static int mount_at(struct keeper *k, const char *image, const char *at, struct err *e)
{
    char dev[32];
    bool used;
    autofd int held = hold_loop(image, dev, &used, e);
    struct stat st;

    if (held < 0)
        return -1;
    k->disk.device = fstat(held, &st) == 0 ? st.st_rdev : 0;
    if (mount(dev, at, "btrfs", MS_NOATIME, MOUNT_OPTIONS) == 0) {
        if (used && mount(NULL, at, NULL, MS_REMOUNT | MS_NOATIME, MOUNT_OPTIONS) < 0)
            log_warn("remount %s without discards: %s", dev, strerror(errno));
        return 0;
    }
    err_sys(e, "mount %s as btrfs", dev);
    return used ? 1 : -1;
}

/* A btrfs that could not write (the file system of the sparse image was full) is read-only until
 * its last mount is gone, and each sandbox has one. The keeper does not kill them unless `cove
 * stop --all` asks for it. */
static int mount_again(struct keeper *k, const char *image, const char *at, struct err *e)
{
    int r = 1;

    if (!k->ending)
        return err_wrap(e,
                        "%s is read-only after a failed write; make room there, then run "
                        "`cove stop --all` and start again",
                        image);
    if (cgroup_put(k->cgroups.v2_fd, "cgroup.kill", "1", e) < 0)
        return -1;
    for (int waited = 0; r > 0 && waited < LOOP_WAIT_MS; waited += LOOP_STEP_MS) {
        poll(NULL, 0, LOOP_STEP_MS);
        r = mount_at(k, image, at, e);
    }
    return r == 0 ? 0 : -1;
}

static int mount_image(struct keeper *k, const char *image, struct err *e)
{
    char at[600];
    int r;

    str_fmt(at, sizeof(at), "%s/disk", k->dir);
    if (mkdir(at, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", at);
    r = mount_at(k, image, at, e);
    if (r < 0 || (r > 0 && mount_again(k, image, at, e) < 0))
        return -1;
    k->disk.fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return k->disk.fd < 0 ? err_sys(e, "open %s", at) : 0;
}

/* EEXIST: on already, from an earlier start. */
static int quotas_on(struct keeper *k, struct err *e)
{
    struct btrfs_ioctl_quota_ctl_args q = {.cmd = BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA};

    if (ioctl(k->disk.fd, BTRFS_IOC_QUOTA_CTL, &q) == 0 || errno == EEXIST) {
        k->disk.simple = true;
        return 0;
    }
    q.cmd = BTRFS_QUOTA_CTL_ENABLE;
    if (ioctl(k->disk.fd, BTRFS_IOC_QUOTA_CTL, &q) < 0 && errno != EEXIST)
        return err_sys(e, "turn on btrfs quotas");
    return 0;
}

static int open_counters(struct keeper *k, const char *image, struct err *e)
{
    struct btrfs_ioctl_fs_info_args a = {0};
    char hex[33], sysfs[100], path[128];
    autofd int fd = -1;

    if (ioctl(k->disk.fd, BTRFS_IOC_FS_INFO, &a) < 0)
        return err_sys(e, "read the id of the filesystem");
    str_hex(hex, a.fsid, 16);
    str_fmt(sysfs, sizeof(sysfs), "/sys/fs/btrfs/%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
            hex + 16, hex + 20);
    str_fmt(path, sizeof(path), "%s/qgroups", sysfs);
    k->disk.qgroups_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->disk.qgroups_fd < 0)
        return err_sys(e, "open %s", path);
    if (k->ending)
        return 0; /* `stop --all`: nothing writes any more, no reserve is needed */
    fd = open(image, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", image);
    if (reserve_open(k, fd, sysfs, e) < 0)
        return -1;
    take_fd(&fd);
    return 0;
}

static int way_open(struct keeper *k, struct err *e)
{
    char image[600];

    str_fmt(image, sizeof(image), "%s/" IMAGE, k->dir);
    if (access(image, F_OK) < 0 && make_image(k, image, e) < 0)
        return -1;
    if (mount_image(k, image, e) < 0)
        return -1;
    return quotas_on(k, e) < 0 ? -1 : open_counters(k, image, e);
}

static void way_close(struct keeper *k)
{
    char at[600];

    reserve_close(k);
    drop_fd(&k->disk.fd);
    drop_fd(&k->disk.qgroups_fd);
    str_fmt(at, sizeof(at), "%s/disk", k->dir);
    if (umount2(at, MNT_DETACH) < 0 && errno != EINVAL)
        log_warn("unmount %s: %s", at, strerror(errno));
}

/* Spares have names that no sandbox has; disk_sweep() removes those of an earlier keeper. */
#define SPARE_NAME 24
#define SPARE_STEPS 200          /* entries that are removed one by one */
#define SPARE_BYTES (4ull << 20) /* and their bytes */

static void spare_name(uint32_t number, char out[SPARE_NAME])
{
    str_fmt(out, SPARE_NAME, "spare-%u", number);
}

static int way_limit(struct sandbox *sb, struct err *e)
{
    autofd int fd = openat(sb->k->disk.fd, sb->rec.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* qgroupid 0: the group of the subvolume of the fd. */
    struct btrfs_ioctl_qgroup_limit_args a = {
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = disk_quota(sb)}};

    if (fd < 0 || ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &a) < 0)
        return err_sys(e, "set the disk limit");
    return 0;
}

static int make_subvolume(int dir, const char *name, uint64_t limit)
{
    struct btrfs_qgroup_inherit in = {
        .flags = BTRFS_QGROUP_INHERIT_SET_LIMITS,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = limit}};
    struct btrfs_ioctl_vol_args_v2 a = {
        .flags = BTRFS_SUBVOL_QGROUP_INHERIT, .size = sizeof(in), .qgroup_inherit = &in};

    str_fmt(a.name, sizeof(a.name), "%s", name);
    return ioctl(dir, BTRFS_IOC_SUBVOL_CREATE_V2, &a);
}

static int way_volume(int dir, const char *name, uint64_t limit, struct err *e)
{
    if (make_subvolume(dir, name, limit) < 0 && errno != EEXIST)
        return err_sys(e, "make volume %s", name);
    return 0;
}

static int make_new(struct sandbox *sb, struct err *e)
{
    if (make_subvolume(sb->k->disk.fd, sb->rec.id, sb->rec.limits.disk) < 0 &&
        !(errno == EEXIST && sandbox_keeps_disk(sb)))
        return err_sys(e, "create the subvolume");
    return disk_make_dirs(sb->k->disk.fd, sb->rec.id, e);
}

/* The number of subvolume `name`; its quota group has the same. */
static int number_of(struct keeper *k, const char *name, uint64_t *ret)
{
    autofd int fd = openat(k->disk.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct btrfs_ioctl_ino_lookup_args a = {.objectid = BTRFS_FIRST_FREE_OBJECTID};

    if (fd < 0 || ioctl(fd, BTRFS_IOC_INO_LOOKUP, &a) < 0)
        return -1;
    *ret = a.treeid;
    return 0;
}

static uint64_t way_used(struct keeper *k, const char *name)
{
    char path[64], text[32] = "";
    autofd int fd = -1;
    uint64_t number;

    if (number_of(k, name, &number) < 0)
        return 0;
    str_fmt(path, sizeof(path), "0_%llu/referenced", (unsigned long long)number);
    fd = openat(k->disk.qgroups_fd, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ? 0 : strtoull(text, NULL, 10);
}

/* Dirty data of `from` is written out first, and the transaction committed: some milliseconds if
 * there is nothing to write. */
static int way_clone(struct keeper *k, const char *from, const char *to, bool readonly,
                     uint64_t *ret_bytes, struct err *e)
{
    autofd int fd = openat(k->disk.fd, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct btrfs_ioctl_vol_args_v2 a = {.fd = fd, .flags = readonly ? BTRFS_SUBVOL_RDONLY : 0};

    str_fmt(a.name, sizeof(a.name), "%s", to);
    if (fd < 0 || ioctl(k->disk.fd, BTRFS_IOC_SNAP_CREATE_V2, &a) < 0)
        return err_sys(e, "snapshot disk %s", from);
    *ret_bytes = way_used(k, from);
    return 0;
}

static int make_clone(struct sandbox *sb, struct err *e)
{
    uint64_t bytes;

    if (way_clone(sb->k, sb->clone_of, sb->rec.id, false, &bytes, e) < 0)
        return -1;
    return way_limit(sb, e);
}

static int way_make(struct sandbox *sb, struct err *e)
{
    struct disk *d = &sb->k->disk;
    char spare[SPARE_NAME];

    if (sb->clone_of[0] != '\0' && !sandbox_keeps_disk(sb))
        return make_clone(sb, e);
    if (sandbox_keeps_disk(sb) || d->nspares == 0)
        return make_new(sb, e);
    spare_name(d->spares[--d->nspares], spare);
    if (renameat(d->fd, spare, d->fd, sb->rec.id) < 0)
        return make_new(sb, e);
    return way_limit(sb, e) < 0 ? -1 : disk_make_dirs(d->fd, sb->rec.id, e);
}

static enum disk_rest destroy(struct keeper *k, const char *name)
{
    struct btrfs_ioctl_vol_args a = {0};

    str_fmt(a.name, sizeof(a.name), "%s", name);
    if (ioctl(k->disk.fd, BTRFS_IOC_SNAP_DESTROY, &a) == 0 || errno == ENOENT)
        return DISK_GONE;
    log_debug("remove disk %s: %s", name, strerror(errno));
    return DISK_STAYS;
}

/* With quotas, btrfs commits a transaction for every subvolume it drops (measured: several ms, and
 * creates wait for it). So a disk with little on it is emptied and used again; one that cannot be
 * emptied in a few steps is destroyed. One step may be a file of a million extents, hence the limit
 * of bytes: destroying runs in the background of the kernel. */
static enum disk_rest way_remove(struct keeper *k, const char *name, bool reuse)
{
    int budget = SPARE_STEPS;

    if (reuse && way_used(k, name) <= SPARE_BYTES && disk_empty(k->disk.fd, name, &budget) == 0)
        return DISK_EMPTY;
    return destroy(k, name);
}

static void way_spare(struct keeper *k, const char *name)
{
    struct disk *d = &k->disk;
    char spare[SPARE_NAME];

    spare_name(d->next_spare, spare);
    if (renameat(d->fd, name, d->fd, spare) < 0)
        destroy(k, name);
    else
        d->spares[d->nspares++] = d->next_spare++;
}

static int way_counters(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e)
{
    autofd int used = -1, quota = -1;
    uint64_t number;
    char path[64];

    if (number_of(sb->k, sb->rec.id, &number) < 0)
        return err_sys(e, "read the number of the subvolume");
    str_fmt(path, sizeof(path), "0_%llu/referenced", (unsigned long long)number);
    used = openat(sb->k->disk.qgroups_fd, path, O_RDONLY | O_CLOEXEC);
    str_fmt(path, sizeof(path), "0_%llu/max_referenced", (unsigned long long)number);
    quota = openat(sb->k->disk.qgroups_fd, path, O_RDONLY | O_CLOEXEC);
    if (used < 0 || quota < 0)
        return err_sys(e, "open the counters of the quota");
    *ret_used = take_fd(&used);
    *ret_quota = take_fd(&quota);
    return 0;
}

const struct disk_way disk_btrfs = {
    .name = "btrfs subvolumes with quotas, in an image file",
    .file = IMAGE,
    .open = way_open,
    .close = way_close,
    .make = way_make,
    .limit = way_limit,
    .remove = way_remove,
    .spare = way_spare,
    .volume = way_volume,
    .clone = way_clone,
    .used = way_used,
    .counters = way_counters,
};
