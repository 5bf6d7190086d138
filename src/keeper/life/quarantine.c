/* quarantine.c - see quarantine.h. */
#include "keeper/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/file.h"
#include "keeper/internal.h"
#include "keeper/network.h"
#include "keeper/ops.h"

/* ---- notes for the operator ---- */

void quarantine_open(struct keeper *k)
{
    int copy = openat(k->damaged_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.' && strncmp(de->d_name, "record-", 7) != 0)
            quarantine_forget(k, de->d_name);
    if (d != NULL)
        closedir(d);
}

int quarantine_keep(struct keeper *k, const char *name, const void *p, size_t n, struct err *e)
{
    return file_put(k->damaged_fd, name, p, n, e) < 0 ? err_wrap(e, "keep in DIR/damaged") : 0;
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

/* ---- in ---- */

/* What runs keeps its range: another sandbox in it would have the same users. */
static int watch(struct sandbox *sb, struct err *e)
{
    char link[IFNAMSIZ];

    if (ids_find(sb, e) < 0)
        return -1;
    ids_keep(sb);
    network_name(sb, link);
    if (if_nametoindex(link) != 0)
        sb->rec.network |= NETWORK_EGRESS | NETWORK_RULED;
    return sandbox_watch_init(sb, e);
}

int quarantine(struct sandbox *sb, const char *why, struct err *e)
{
    struct record copy;
    int runs = sb->pidfd >= 0 ? 1 : sandbox_find_init(sb, e);

    if (runs < 0)
        return err_wrap(e, "sandbox %s", sb->rec.id);
    sb->rec.phase = PHASE_DAMAGED;
    sb->rec.stage = stage_count; /* any of them may be up */
    sb->keep_disk = true;
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s", why);
    if (sb->rec.layer[0] == '\0' && record_copy_read(sb->k, sb->rec.id, &copy) == 0) {
        memcpy(sb->rec.template, copy.template, sizeof(copy.template));
        memcpy(sb->rec.layer, copy.layer, sizeof(copy.layer));
        sb->rec.created_ms = copy.created_ms;
    }
    quarantine_note(sb->k, sb->rec.id, why);
    if (runs == 0 || watch(sb, e) == 0 || birth_is_over(sb)) /* (it may have ended meanwhile) */
        return 0;
    return err_wrap(e, "sandbox %s", sb->rec.id);
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

void quarantine_end(struct sandbox *sb)
{
    quarantine_forget(sb->k, sb->rec.id);
}

/* ---- out ---- */

static int check(const struct sandbox *sb, const struct limits *l, struct err *e)
{
    const char *id = sb->rec.id;

    if (sb->rec.phase != PHASE_DAMAGED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is not damaged", id);
    if (!list_empty(&sb->link))
        return err_set(e, ERR_CONFLICT, "sandbox %s is being taken down; try again", id);
    if (faccessat(sb->k->disk.fd, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(e, ERR_GONE,
                       "sandbox %s cannot be recovered: its disk is gone as well; delete it", id);
    if (sb->rec.layer[0] == '\0')
        return err_set(e, ERR_CONFLICT,
                       "sandbox %s cannot be recovered: the copy of its record is damaged as well, "
                       "and nothing else says which template its files belong to",
                       id);
    return sandbox_check_limits(l, e);
}

/* The front's row has what a client was told; the rest is the kernel's and the copy's to say. */
static void fill(struct sandbox *sb, const struct keeper_recover *m, const struct limits *l)
{
    struct record *r = &sb->rec;

    r->limits = *l;
    r->told = 1;
    if (r->created_ms == 0)
        r->created_ms = m->created_ms;
    str_fmt(r->boot_id, sizeof(r->boot_id), "%.39s", m->boot_id);
    if (strcmp(m->network, "egress") == 0)
        r->network |= NETWORK_EGRESS;
}

static bool is_reachable(const struct sandbox *sb)
{
    return sb->pidfd >= 0 && !birth_is_over(sb) &&
           faccessat(sb->k->run_fd, sb->rec.id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int quarantine_recover(struct keeper *k, uint32_t seq, const struct keeper_recover *m,
                       struct err *e)
{
    struct limits l;
    struct sandbox *sb = sandbox_find(k, m->id);
    struct record before;
    bool runs;

    LIMITS_COPY(&l, m);
    if (sb == NULL)
        return err_set(e, ERR_NOT_FOUND, "no sandbox %s", m->id);
    if (check(sb, &l, e) < 0)
        return -1;
    runs = is_reachable(sb);
    before = sb->rec;
    fill(sb, m, &l);
    sb->rec.phase = runs ? PHASE_GIVEN : PHASE_STOPPED;
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s", runs ? "" : "it was recovered");
    if (runs)
        str_fmt(sb->rec.host_boot, sizeof(sb->rec.host_boot), "%s", k->host_boot);
    if ((runs && sandbox_adopt_pause(sb, e) < 0) || record_save(sb, true, e) < 0) {
        sb->rec = before;
        return -1;
    }
    log_info("sandbox %s is recovered: %s", sb->rec.id, runs ? "it runs on" : "it is stopped");
    quarantine_end(sb);
    if (runs)
        k->ngiven++;
    else
        sandbox_bury(sb, true); /* what may be up of it goes down; its disk stays */
    link_sandbox(k, seq, sb);
    return 0;
}
