/* adopt.c - after a restart: what each sandbox of an earlier keeper becomes; and the
 * end of a daemon, which takes down what is nobody's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/network.h"
#include "keeper/pool_inside.h"

/* 1: it runs; 0: its init is gone; -1: there was no way to find out. */
static int find_init(struct sandbox *sb, struct err *e)
{
    pid_t again;

    if (cgroup_init_pid(sb, &sb->pid, e) < 0)
        return -1;
    if (sb->pid == 0)
        return 0;
    sb->pidfd = (int)syscall(SYS_pidfd_open, sb->pid, 0);
    if (sb->pidfd < 0)
        return errno == ESRCH ? 0 : err_sys(e, "open the pidfd of its init");
    /* The pid could have been used again in between: still the one in the group? */
    if (cgroup_init_pid(sb, &again, e) < 0)
        return -1;
    if (again != sb->pid)
        drop_fd(&sb->pidfd);
    return again == sb->pid;
}

/* As find_init(). */
static int adopt_running(struct sandbox *sb, struct err *e)
{
    int r = find_init(sb, e);

    if (r > 0 && (pool_watch_init(sb, e) < 0 || pool_adopt_pause(sb, e) < 0))
        return -1;
    sb->k->ngiven += r > 0;
    return r;
}

/* Fails where what runs cannot be looked at, for want of fds or memory: a daemon that
 * does not start is better than one that ends what it could not see. */
static int adopt(struct sandbox *sb, struct err *e)
{
    struct keeper *k = sb->k;
    bool rebooted = strcmp(sb->rec.host_boot, k->host_boot) != 0;
    int r;

    /* Also that of one that is going down: it gives the range back when it is gone, and
     * nobody else may have it until then. */
    if (!rebooted)
        ids_keep(sb);
    r = sb->rec.phase == PHASE_GIVEN && !rebooted ? adopt_running(sb, e) : 0;
    if (r != 0)
        return r < 0 ? err_wrap(e, "sandbox %s", sb->rec.id) : 0;
    if (sb->rec.phase == PHASE_GIVEN) {
        sb->rec.phase = PHASE_STOPPED;
        str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s",
                rebooted ? "the host was restarted" : "its init ended while no daemon was there");
        log_warn("sandbox %s is stopped: %s", sb->rec.id, sb->rec.reason);
    } else if (sb->rec.phase != PHASE_STOPPED) {
        sb->rec.phase = PHASE_DYING;
    }
    if (rebooted) /* the range is a lease of the last boot; others may have it now */
        sb->rec.range = RANGE_NONE;
    if (record_save(sb, true, e) < 0)
        log_warn("%s", e->msg);
    if (sb->rec.phase == PHASE_DYING || sb->rec.stage > 0)
        pool_bury(sb, sb->rec.phase == PHASE_STOPPED);
    else
        sb->keep_disk = true;
    return 0;
}

static int each_name(int dfd, int (*fn)(struct keeper *k, const char *name, struct err *e),
                     struct keeper *k, struct err *e)
{
    int copy = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (d == NULL)
        return err_sys(e, "read a directory of ours");
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.')
            r = fn(k, de->d_name, e);
    closedir(d);
    return r;
}

/* Something of that name may exist, and nothing tells what: it goes, all of it. Its
 * range is not known either and will be given back at once; nothing uses it any
 * more, since pool_bury() begins by killing. */
static int doom(struct keeper *k, const char *id, uint32_t place, struct err *e)
{
    struct sandbox *sb = sandbox_new(k, id, e);

    if (sb == NULL)
        return -1;
    sb->rec.phase = PHASE_DYING;
    sb->rec.stage = stage_count;
    sb->place = place;
    pool_bury(sb, false);
    return 0;
}

static int adopt_record(struct keeper *k, const struct record *rec, uint32_t place, bool whole,
                        struct err *e)
{
    struct sandbox *sb;

    if (pool_find(k, rec->id) != NULL) {
        log_error("a second record of sandbox %s is dropped", rec->id);
        records_drop(k, place);
        return 0;
    }
    if (!whole) {
        log_error("record %s is damaged: that sandbox is destroyed", rec->id);
        return doom(k, rec->id, place, e);
    }
    sb = sandbox_new(k, rec->id, e);
    if (sb == NULL)
        return -1;
    sb->rec = *rec;
    sb->place = place;
    return adopt(sb, e);
}

static int adopt_group(struct keeper *k, const char *name, struct err *e)
{
    struct stat st;

    if (pool_find(k, name) != NULL || !id_is_valid(name, sizeof(((struct record *)0)->id) - 1) ||
        fstatat(k->cgroups.v2_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    log_error("sandbox %s has no record: it is destroyed", name);
    return doom(k, name, PLACE_NONE, e);
}

static int adopt_socket(struct keeper *k, const char *name, struct err *e)
{
    (void)e;
    if (pool_find(k, name) == NULL && unlinkat(k->run_fd, name, 0) < 0)
        log_warn("remove socket %s: %s", name, strerror(errno));
    return 0;
}

int pool_adopt(struct keeper *k, struct err *e)
{
    if (records_each(k, adopt_record, e) < 0 || each_name(k->cgroups.v2_fd, adopt_group, k, e) < 0)
        return -1;
    return each_name(k->run_fd, adopt_socket, k, e);
}

void pool_drain(struct keeper *k)
{
    struct sandbox *sb;

    k->config.pool = 0;
    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            sb = CONTAINER_OF(n, struct sandbox, by_id);
            if (sb->rec.phase != PHASE_POOLED && sb->rec.phase != PHASE_BUILDING &&
                sb->rec.phase != PHASE_IMPORT)
                continue;
            sb->rec.phase = PHASE_DYING;
            pool_bury(sb, false);
        }
    k->npool = k->nbuilding = 0;
}

void pool_end_all(struct keeper *k)
{
    struct err e;

    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.phase != PHASE_GIVEN)
                continue; /* stopped, or on its way down since pool_adopt() */
            k->ngiven--;
            sb->rec.phase = PHASE_STOPPED;
            str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "cove stop --all");
            if (record_save(sb, true, &e) < 0)
                log_warn("%s", e.msg);
            pool_bury(sb, true);
        }
}
