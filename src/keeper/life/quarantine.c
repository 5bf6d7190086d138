/* quarantine.c - see quarantine.h. */
#include "keeper/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/file.h"
#include "keeper/life/reactions.h"
#include "keeper/network.h"
#include "keeper/ops.h"

/* ---- notes for the operator ---- */

void quarantine_open(struct keeper *k)
{
    DIR *d = dir_list(k->damaged_fd);

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.' && strncmp(de->d_name, "record-", 7) != 0)
            quarantine_forget(k, de->d_name);
    if (d != NULL)
        closedir(d);
}

int quarantine_keep(struct keeper *k, const char *name, const void *p, size_t n, struct err *e)
{
    return file_put(k->damaged_fd, name, p, n, e) < 0 ? err_wrap(e, "write to DIR/damaged") : 0;
}

void quarantine_note(struct keeper *k, const char *name, const char *why)
{
    struct err e;

    log_error("%s is damaged and in quarantine: %s", name, why);
    if (quarantine_keep(k, name, why, strlen(why), &e) < 0)
        log_warn("%s", e.msg);
}

void quarantine_forget(struct keeper *k, const char *name)
{
    if (unlinkat(k->damaged_fd, name, 0) < 0 && errno != ENOENT)
        log_warn("remove DIR/damaged/%s: %s", name, strerror(errno));
}

/* ---- into quarantine ---- */

int quarantine(struct sandbox *sb, const char *why, struct err *e)
{
    struct record copy;
    char link[IFNAMSIZ];
    int runs = sb->pidfd >= 0 ? 1 : sandbox_find_init(sb, e);

    if (runs < 0)
        return err_wrap(e, "sandbox %s", sb->rec.id);
    sandbox_enter(sb, STATE_DAMAGED);
    sb->rec.stage = STAGE_COUNT; /* any of them may be up */
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s", why);
    if (sb->rec.layer[0] == '\0' && record_copy_read(sb->k, sb->rec.id, &copy) == 0) {
        memcpy(sb->rec.template, copy.template, sizeof(copy.template));
        memcpy(sb->rec.layer, copy.layer, sizeof(copy.layer));
        sb->rec.created_ms = copy.created_ms;
    }
    quarantine_note(sb->k, sb->rec.id, why);
    if (runs == 0)
        return 0;
    /* It keeps its range: another sandbox in it would have the same users. */
    if (ids_find(sb, e) == 0) {
        ids_keep(sb);
        network_name(sb, link);
        if (if_nametoindex(link) != 0)
            sb->rec.network |= NETWORK_EGRESS | NETWORK_RULED;
        if (sandbox_watch_init(sb, e) == 0)
            return 0;
    }
    return birth_is_over(sb) ? 0 : err_wrap(e, "sandbox %s", sb->rec.id);
}

int quarantine_found(struct keeper *k, const char *id, uint32_t place, const char *why,
                     struct err *e)
{
    struct sandbox *sb = sandbox_new(k, id, e);

    if (sb == NULL)
        return -1;
    sb->place = place;
    return quarantine(sb, why, e);
}

/* ---- recovering ---- */

/* It becomes what it was before, running, paused or stopped. The front's row has what a client
 * was told; the rest is from the kernel and the copy of the record. */
int react_recover(struct sandbox *sb, const struct news *n, struct err *e)
{
    const struct keeper_recover *m = n->msg;
    struct record before = sb->rec, *r = &sb->rec;
    enum state state = STATE_STOPPED;
    struct limits l;
    bool runs = sb->pidfd >= 0 && !birth_is_over(sb) &&
                faccessat(sb->k->run_fd, r->id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

    LIMITS_COPY(&l, m);
    if (faccessat(sb->k->disk.fd, r->id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(e, ERR_GONE,
                       "sandbox %s cannot be recovered: its disk is gone as well; delete it",
                       r->id);
    if (r->layer[0] == '\0')
        return err_set(e, ERR_CONFLICT,
                       "sandbox %s cannot be recovered: the copy of its record is damaged as well, "
                       "and nothing else tells which template its files belong to",
                       r->id);
    if (sandbox_check_limits(&l, e) < 0 || (runs && pause_adopt(sb, &state, e) < 0))
        return -1;
    r->limits = l;
    r->told = 1;
    r->relaxed = m->relaxed;
    if (r->created_ms == 0)
        r->created_ms = m->created_ms;
    str_fmt(r->boot_id, sizeof(r->boot_id), "%.39s", m->boot_id);
    if (strcmp(m->network, "egress") == 0)
        r->network |= NETWORK_EGRESS;
    str_fmt(r->reason, sizeof(r->reason), "%s", runs ? "" : "it was recovered");
    if (runs)
        str_fmt(r->host_boot, sizeof(r->host_boot), "%s", sb->k->host_boot);
    if (sandbox_enter_saved(sb, state, true, e) < 0) {
        *r = before;
        return -1;
    }
    log_info("sandbox %s is recovered: it %s", r->id, runs ? "runs" : "is stopped");
    quarantine_forget(sb->k, r->id);
    if (!runs)
        sandbox_take_down(sb, STATE_STOPPING); /* any stage may be up; its disk stays */
    link_sandbox(sb->k, n->seq, sb);
    return 0;
}
