/* adopt.c - after a restart: the state of each sandbox of an earlier keeper, from its record
 * and from what runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/file.h"
#include "keeper/life/reactions.h"
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
    /* The pid may have been reused in between: is it still the one in the group? */
    if (cgroup_init_pid(sb, &again, e) < 0)
        return -1;
    if (again != sb->pid)
        drop_fd(&sb->pidfd);
    return again == sb->pid;
}

/* For a record with phase `given` of this boot; returns as sandbox_find_init(). */
static int adopt_running(struct sandbox *sb, struct err *e)
{
    enum state state;
    int r = sandbox_find_init(sb, e);

    if (r <= 0)
        return r;
    if (faccessat(sb->k->run_fd, sb->rec.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return quarantine(sb, "its socket in DIR/run is gone: its init cannot be reached", e) < 0
                   ? -1
                   : 1;
    if (sandbox_watch_init(sb, e) < 0 || pause_adopt(sb, &state, e) < 0)
        return -1;
    sandbox_enter(sb, state);
    return 1;
}

/* The host went down while not all of its writes were on the disk. */
static void note_lost_writes(struct sandbox *sb)
{
    sb->rec.unsynced[0] = '\0';
    sb->rec.lost_ms = clock_real_ms();
    log_warn("sandbox %s: the host failed while fsync was relaxed: its last writes may be missing",
             sb->rec.id);
}

/* Fails if it cannot find out what runs, for want of fds or memory: not starting is better
 * than killing a sandbox that could not be seen. */
static int adopt(struct sandbox *sb, struct err *e)
{
    struct keeper *k = sb->k;
    bool rebooted = strcmp(sb->rec.host_boot, k->host_boot) != 0;
    bool given = sb->rec.phase == PHASE_GIVEN, stopped = sb->rec.phase == PHASE_STOPPED;
    int r;

    /* Also if it is going down: it keeps the range until it is gone. */
    if (!rebooted)
        ids_keep(sb);
    /* A stale record, or one from a backup: what runs on its disk must end before it boots again. */
    if (!rebooted && stopped && sb->rec.stage == 0 && !cgroup_is_empty(sb)) {
        log_warn("sandbox %s is recorded as stopped but runs; it is killed", sb->rec.id);
        sb->rec.stage = STAGE_COUNT;
    }
    r = given && !rebooted ? adopt_running(sb, e) : 0;
    if (r != 0)
        return r < 0 ? err_wrap(e, "sandbox %s", sb->rec.id) : 0;
    if (given) {
        str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s",
                rebooted ? "the host was restarted" : "its init ended while no daemon ran");
        log_warn("sandbox %s is stopped: %s", sb->rec.id, sb->rec.reason);
    }
    if (rebooted && sb->rec.unsynced[0] != '\0')
        note_lost_writes(sb);
    sandbox_enter(sb, given || stopped ? STATE_STOPPED : STATE_DELETING);
    if (rebooted) { /* the range is a lease of the last boot; another sandbox may have it now */
        sb->rec.range = RANGE_NONE;
        /* Stages are saved without a flush: the record that survived may be older than they are. */
        if (sb->state == STATE_DELETING || sb->rec.stage > 0)
            sb->rec.stage = STAGE_COUNT;
    }
    if (record_save(sb, true, e) < 0)
        log_warn("%s", e->msg);
    if (sb->state == STATE_DELETING)
        sandbox_take_down(sb, STATE_DELETING);
    else if (sb->rec.stage > 0)
        sandbox_take_down(sb, STATE_STOPPING);
    return 0;
}

static int each_name(int dfd, int (*fn)(struct keeper *k, const char *name, struct err *e),
                     struct keeper *k, struct err *e)
{
    DIR *d = dir_list(dfd);
    int r = 0;

    if (d == NULL)
        return err_sys(e, "read a state directory");
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
        log_error("sandbox %s has two records; one is moved to DIR/damaged", rec->id);
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
    return quarantine_found(k, name, PLACE_NONE, "it runs but has no record", e);
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
