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
#include "keeper/internal.h"
#include "keeper/network.h"
#include "keeper/quarantine.h"

int sandbox_find_init(struct sandbox *sb, struct err *e)
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

/* As sandbox_find_init(). */
static int adopt_running(struct sandbox *sb, struct err *e)
{
    int r = sandbox_find_init(sb, e);

    if (r > 0 && faccessat(sb->k->run_fd, sb->rec.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
        errno == ENOENT)
        return quarantine(sb, "its socket in DIR/run is gone: nothing reaches what runs in it", e) <
                       0
                   ? -1
                   : 1;
    if (r > 0 && (sandbox_watch_init(sb, e) < 0 || sandbox_adopt_pause(sb, e) < 0))
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
    /* A stale record, or one from a backup: what runs on its disk must end before it boots again. */
    if (!rebooted && sb->rec.phase == PHASE_STOPPED && sb->rec.stage == 0 && !cgroup_is_empty(sb)) {
        log_warn("sandbox %s is stopped, and yet runs: it is ended", sb->rec.id);
        sb->rec.stage = stage_count;
    }
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
    if (rebooted) { /* the range is a lease of the last boot; others may have it now */
        sb->rec.range = RANGE_NONE;
        /* Stages are saved without a flush: the record that survived may be older than they are. */
        if (sb->rec.phase == PHASE_DYING || sb->rec.stage > 0)
            sb->rec.stage = stage_count;
    }
    if (record_save(sb, true, e) < 0)
        log_warn("%s", e->msg);
    if (sb->rec.phase == PHASE_DYING || sb->rec.stage > 0)
        sandbox_bury(sb, sb->rec.phase == PHASE_STOPPED);
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

static int adopt_record(struct keeper *k, const struct record *rec, uint32_t place, bool whole,
                        struct err *e)
{
    struct sandbox *sb;

    if (sandbox_find(k, rec->id) != NULL) {
        log_error("a second record of sandbox %s is put aside", rec->id);
        records_drop(k, place);
        return 0;
    }
    if (!whole || rec->phase == PHASE_DAMAGED)
        return quarantine_found(k, rec->id, place,
                                rec->reason[0] != '\0' ? rec->reason : "its record is damaged", e);
    sb = sandbox_new(k, rec->id, e);
    if (sb == NULL)
        return -1;
    sb->rec = *rec;
    sb->place = place;
    if (adopt(sb, e) < 0)
        return -1;
    if (sb->rec.phase == PHASE_GIVEN || sb->rec.phase == PHASE_STOPPED)
        record_copy(sb, true); /* sandboxes of release 0.1.0 have none */
    return 0;
}

static int adopt_group(struct keeper *k, const char *name, struct err *e)
{
    struct stat st;

    if (sandbox_find(k, name) != NULL || !id_is_valid(name, sizeof(((struct record *)0)->id) - 1) ||
        fstatat(k->cgroups.v2_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    return quarantine_found(k, name, PLACE_NONE, "it runs, and has no record", e);
}

static int adopt_socket(struct keeper *k, const char *name, struct err *e)
{
    (void)e;
    if (sandbox_find(k, name) == NULL && unlinkat(k->run_fd, name, 0) < 0)
        log_warn("remove socket %s: %s", name, strerror(errno));
    return 0;
}

int sandbox_adopt_all(struct keeper *k, struct err *e)
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
            sandbox_bury(sb, false);
        }
    k->npool = k->nbuilding = 0;
}

void sandbox_end_all(struct keeper *k)
{
    struct err e;

    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.phase == PHASE_DAMAGED && list_empty(&sb->link))
                sandbox_bury(sb, true); /* what runs of it ends, too */
            if (sb->rec.phase != PHASE_GIVEN)
                continue; /* stopped, or on its way down since sandbox_adopt_all() */
            k->ngiven--;
            sb->rec.phase = PHASE_STOPPED;
            str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "cove stop --all");
            if (record_save(sb, true, &e) < 0)
                log_warn("%s", e.msg);
            sandbox_bury(sb, true);
        }
}
