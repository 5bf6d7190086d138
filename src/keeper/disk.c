/* disk.c - a disk of bounded size for each sandbox; one file per way to give it.
 *
 * EXTEND  Another way (project quotas, an image per sandbox): a struct disk_way in
 *         a file of its own, and a row here in order of preference. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "keeper/disk_ways.h"
#include "keeper/snapshot.h"

static const struct disk_way *const ways[] = {&disk_btrfs, &disk_unbounded};

int disk_open(struct keeper *k, struct err *e)
{
    struct err first;
    int r = -1;

    for (size_t i = 0; i < ARRAY_LEN(ways) && r < 0; i++) {
        k->disk.way = ways[i];
        r = ways[i]->open(k, i == 0 ? &first : e);
    }
    if (r < 0) {
        *e = first;
        return err_wrap(e, "no disk with a limit (`--accept no-disk-limit` does without)");
    }
    log_info("disks of sandboxes: %s", k->disk.way->name);
    return 0;
}

void disk_close(struct keeper *k)
{
    if (k->disk.way != NULL)
        k->disk.way->close(k);
}

int disk_up(struct sandbox *sb, struct err *e)
{
    return sb->k->disk.way->make(sb, e);
}

int disk_limit(struct sandbox *sb, struct err *e)
{
    return sb->k->disk.way->limit(sb, e);
}

int disk_counters(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e)
{
    return sb->k->disk.way->counters(sb, ret_used, ret_quota, e);
}

uint64_t disk_quota(const struct sandbox *sb)
{
    return sb->rec.limits.disk + (sb->k->disk.simple ? snapshot_held(sb->k, sb->rec.id) : 0);
}

int disk_down(struct sandbox *sb)
{
    return sb->keep_disk ? 0 : sb->k->disk.way->remove(sb->k, sb->rec.id);
}

void disk_sweep(struct keeper *k)
{
    int copy = openat(k->disk.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        if (de->d_name[0] == '.' || map_get(&k->sandboxes, de->d_name) != NULL)
            continue;
        log_debug("removing disk %s, which is no sandbox's", de->d_name);
        k->disk.way->remove(k, de->d_name);
    }
    if (d != NULL)
        closedir(d);
}

int disk_make_dirs(int dfd, const char *id, struct err *e)
{
    autofd int fd = openat(dfd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "open the new disk");
    if ((mkdirat(fd, "upper", 0755) < 0 && errno != EEXIST) ||
        (mkdirat(fd, "work", 0700) < 0 && errno != EEXIST))
        return err_sys(e, "prepare the new disk");
    return 0;
}

/* The names and depths are a tenant's: everything goes by fds, nothing follows a
 * link, and the budget bounds the depth too. */
static int empty_dir(int dfd, int *budget)
{
    autofd int copy = dup(dfd);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = d == NULL ? -1 : 0;

    if (d != NULL)
        take_fd(&copy);
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;) {
        autofd int sub = -1;

        if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
            continue;
        if (--*budget < 0)
            r = -1;
        else if (de->d_type != DT_DIR)
            r = unlinkat(dfd, de->d_name, 0);
        else if ((sub = openat(dfd, de->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
                     0 ||
                 empty_dir(sub, budget) < 0)
            r = -1;
        else
            r = unlinkat(dfd, de->d_name, AT_REMOVEDIR);
    }
    if (d != NULL)
        closedir(d);
    return r;
}

int disk_empty(int dfd, const char *id, int *budget)
{
    autofd int fd = openat(dfd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -1 : empty_dir(fd, budget);
}
