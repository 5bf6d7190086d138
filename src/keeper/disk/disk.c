/* disk.c - a disk of bounded size for each sandbox; one file per kind of disk.
 *
 * EXTEND  Another kind (project quotas, an image per sandbox): a struct disk_way in
 *         a file of its own, and a row here in order of preference. */
#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/disk.h"
#include "keeper/file.h"
#include "keeper/life.h"
#include "keeper/quarantine.h"
#include "keeper/snapshot.h"
#include "keeper/stages.h"
#include "loop/job.h"

static const struct disk_way *const ways[] = {&disk_btrfs, &disk_unbounded};

int disk_open(struct keeper *k, struct err *e)
{
    struct err first;
    int r = -1;

    list_init(&k->disk.removals);
    for (size_t i = 0; i < ARRAY_LEN(ways) && r < 0; i++) {
        k->disk.way = ways[i];
        r = ways[i]->open(k, i == 0 ? &first : e);
        if (r < 0 && ways[i]->file != NULL && faccessat(k->dir_fd, ways[i]->file, F_OK, 0) == 0) {
            *e = first;
            return -1;
        }
    }
    if (r < 0) {
        *e = first;
        return err_wrap(
            e, "make disks with a limit (`--accept no-disk-limit` does without the limit)");
    }
    log_info("disks of sandboxes: %s", k->disk.way->name);
    return 0;
}

int disk_check(struct keeper *k, struct err *e)
{
    struct statvfs st;

    if (fstatvfs(k->disk.fd, &st) < 0 || (st.f_flag & ST_RDONLY) == 0)
        return reserve_check(k, e);
    return err_set(e, ERR_UNAVAILABLE,
                   "the disks of this host are read-only after a failed write: the operator must "
                   "make room, run `cove stop --all` and start the daemon again");
}

void disk_close(struct keeper *k)
{
    if (k->disk.way != NULL)
        k->disk.way->close(k);
}

/* A disk that should exist is never made again: the sandbox would boot without its files. */
int disk_up(struct sandbox *sb, struct err *e)
{
    if (sandbox_keeps_disk(sb) &&
        faccessat(sb->k->disk.fd, sb->rec.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, "open its disk");
    reserve_kick(sb->k);
    if (sb->k->disk.way->make(sb, e) < 0)
        return -1;
    record_copy(sb, sandbox_keeps_disk(sb));
    return 0;
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
    return sandbox_keeps_disk(sb) ? 0 : disk_remove(sb->k, sb->rec.id);
}

/* ---- removing a disk ---- */

struct removal {
    struct job job;
    struct list link;
    struct keeper *k;
    bool reuse;
    enum disk_rest rest;
    char name[];
};

static void remove_run(struct job *w)
{
    struct removal *r = CONTAINER_OF(w, struct removal, job);

    r->rest = r->k->disk.way->remove(r->k, r->name, r->reuse);
}

static void removed(struct job *w)
{
    struct removal *r = CONTAINER_OF(w, struct removal, job);
    struct disk *d = &r->k->disk;

    d->nemptying -= r->reuse;
    list_del(&r->link);
    if (r->rest == DISK_EMPTY)
        d->way->spare(r->k, r->name);
    sandbox_disk_removed(r->k, r->name);
    free(r);
}

int disk_remove(struct keeper *k, const char *name)
{
    size_t len = strlen(name) + 1;
    struct removal *r;

    LIST_EACH (&k->disk.removals, r, struct removal, link)
        if (strcmp(r->name, name) == 0)
            return 1;
    if (faccessat(k->disk.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    r = calloc(1, sizeof(*r) + len);
    if (r == NULL)
        return 1; /* the caller asks again */
    r->job.lane = JOB_DISK;
    r->k = k;
    /* Bytes that a snapshot holds count for this disk: it cannot become another sandbox's. */
    r->reuse = k->disk.nspares + k->disk.nemptying < DISK_SPARES && snapshot_held(k, name) == 0;
    memcpy(r->name, name, len);
    k->disk.nemptying += r->reuse;
    list_add_tail(&k->disk.removals, &r->link);
    job_start(k->loop, &r->job, remove_run, removed);
    reserve_kick(k);
    return 1;
}

void disk_sweep(struct keeper *k)
{
    DIR *d = dir_list(k->disk.fd);
    struct err e;

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        if (de->d_name[0] == '.' || map_get(&k->sandboxes, de->d_name) != NULL)
            continue;
        if (!id_is_valid(de->d_name, KEEPER_ID_MAX - 1))
            disk_remove(k, de->d_name); /* a spare of an earlier keeper */
        else if (quarantine_found(k, de->d_name, PLACE_NONE, "it has a disk but no record", &e) < 0)
            log_error("disk %s has no record; it is not in quarantine: %s", de->d_name, e.msg);
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

struct emptying {
    int top, *budget;
    uint64_t lifted;
};

static int clear_dir(struct emptying *m, int dfd, bool is_top);

/* Removes an entry; a directory that is not empty is emptied if it is at the top, and else moved
 * there under a free name. */
static int clear_entry(struct emptying *m, int dfd, const char *name, bool is_top)
{
    autofd int below = -1;
    char to[32];
    int r;

    if (--*m->budget < 0)
        return -1;
    if (unlinkat(dfd, name, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return -1;
    if (unlinkat(dfd, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY)
        return -1;
    if (is_top) {
        below = openat(m->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return below < 0 || clear_dir(m, below, false) < 0 ? -1
                                                           : unlinkat(m->top, name, AT_REMOVEDIR);
    }
    do {
        str_fmt(to, sizeof(to), "lifted-%llu", (unsigned long long)m->lifted++);
        r = renameat2(dfd, name, m->top, to, RENAME_NOREPLACE);
    } while (r < 0 && errno == EEXIST);
    return r;
}

/* Removes its entries or moves them to the top; returns their number, or -1. */
static int clear_dir(struct emptying *m, int dfd, bool is_top)
{
    DIR *d = dir_list(dfd);
    int n = 0;

    if (d == NULL)
        return -1;
    for (struct dirent *de; n >= 0 && (de = readdir(d)) != NULL;)
        if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
            n = clear_entry(m, dfd, de->d_name, is_top) < 0 ? -1 : n + 1;
    closedir(d);
    return n;
}

/* Names and depths are chosen by a tenant: everything goes by fds, no link is followed, and deeper
 * directories are moved to the top instead of walked, so that no depth is too deep. */
int disk_empty(int dfd, const char *id, int *budget)
{
    autofd int top = openat(dfd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct emptying m = {.top = top, .budget = budget};
    int n = top < 0 ? -1 : 1;

    while (n > 0)
        n = clear_dir(&m, top, true);
    return n;
}

int disk_run(const char *path, const char *const argv[])
{
    static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
    posix_spawn_file_actions_t fa;
    int status, r;
    pid_t pid;

    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    r = posix_spawn(&pid, path, &fa, NULL, (char *const *)(uintptr_t)argv,
                    (char *const *)(uintptr_t)envp);
    posix_spawn_file_actions_destroy(&fa);
    if (r != 0) {
        errno = r;
        return -1;
    }
    if (waitpid(pid, &status, 0) < 0)
        return 1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
