/* unbounded.c - a plain directory per sandbox, without a limit: only with `--accept no-disk-limit`.
 */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/disk.h"
#include "keeper/file.h"

static int way_open(struct keeper *k, struct err *e)
{
    if (!config_accepts(&k->config, "no-disk-limit"))
        return err_set(e, ERR_UNSUPPORTED, "disks without a limit need `--accept no-disk-limit`");
    k->disk.fd = dir_open(k->dir_fd, "disk", 0700, e);
    return k->disk.fd < 0 ? -1 : 0;
}

static void way_close(struct keeper *k)
{
    drop_fd(&k->disk.fd);
}

static int way_clone(struct keeper *k, const char *from, const char *to, bool readonly,
                     uint64_t *ret_bytes, struct err *e);

static int way_make(struct sandbox *sb, struct err *e)
{
    uint64_t bytes;

    if (sb->clone_of[0] != '\0' && !sandbox_keeps_disk(sb))
        return way_clone(sb->k, sb->clone_of, sb->rec.id, false, &bytes, e);
    if (mkdirat(sb->k->disk.fd, sb->rec.id, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make the disk");
    return disk_make_dirs(sb->k->disk.fd, sb->rec.id, e);
}

static int way_volume(int dir, const char *name, uint64_t limit, struct err *e)
{
    (void)limit;
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make volume %s", name);
    return 0;
}

static int way_limit(struct sandbox *sb, struct err *e)
{
    (void)sb;
    (void)e;
    return 0;
}

static enum disk_rest way_remove(struct keeper *k, const char *name, bool reuse)
{
    int budget = INT32_MAX;

    (void)reuse;
    if (disk_empty(k->disk.fd, name, &budget) == 0 && unlinkat(k->disk.fd, name, AT_REMOVEDIR) == 0)
        return DISK_GONE;
    log_warn("remove disk %s: %s", name, strerror(errno));
    return DISK_STAYS;
}

/* nftw has no argument: summed up per thread. */
static _Thread_local uint64_t counted;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path;
    (void)type;
    (void)at;
    counted += (uint64_t)st->st_blocks * 512;
    return 0;
}

/* A copy of the upper directory, sharing blocks where the filesystem can. It follows no link, and
 * keeps owners, attributes and whiteouts. Nothing writes to `from` meanwhile. */
static int way_clone(struct keeper *k, const char *from, const char *to, bool readonly,
                     uint64_t *ret_bytes, struct err *e)
{
    char source[600], target[600];
    const char *const argv[] = {"cp", "-a", "--reflink=auto", "--", source, target, NULL};
    int r;

    (void)readonly; /* no sandbox gets it as its upper */
    str_fmt(source, sizeof(source), "%s/disk/%s", k->dir, from);
    str_fmt(target, sizeof(target), "%s/disk/%s", k->dir, to);
    r = disk_run("/bin/cp", argv);
    if (r < 0)
        return err_set(e, ERR_INTERNAL, "run cp: %s", strerror(errno));
    if (r > 0)
        return err_set(e, ERR_INTERNAL, "copy a disk: cp failed; is there room for the copy?");
    syncfs(k->disk.fd); /* as a btrfs snapshot: a sandbox without fsync has not written it out */
    counted = 0;
    nftw(target, count_one, 64, FTW_PHYS | FTW_MOUNT);
    *ret_bytes = counted;
    return 0;
}

static uint64_t way_used(struct keeper *k, const char *name)
{
    (void)k;
    (void)name;
    return 0;
}

/* Nothing is counted: init reads nothing and lets the kernel answer. */
static int way_counters(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e)
{
    (void)sb;
    *ret_used = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *ret_quota = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return *ret_used < 0 || *ret_quota < 0 ? err_sys(e, "open /dev/null") : 0;
}

const struct disk_way disk_unbounded = {
    .name = "plain directories WITHOUT A LIMIT (accepted)",
    .open = way_open,
    .close = way_close,
    .make = way_make,
    .limit = way_limit,
    .remove = way_remove,
    .volume = way_volume,
    .clone = way_clone,
    .used = way_used,
    .counters = way_counters,
};
