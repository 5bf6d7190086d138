/* snapshot_take.c - takes a snapshot: writes dirty data out, freezes the sandbox, snapshots its
 * disk, thaws the sandbox.
 *
 * Slow steps run in a thread. Data is written out while the sandbox still runs, so that it is
 * frozen as briefly as possible. If the sandbox or the front that asked ends meanwhile, the
 * snapshot is deleted. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/cgroup.h"
#include "keeper/disk.h"
#include "keeper/freezer.h"
#include "keeper/image.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/snapshot.h"
#include "loop/job.h"

#define TAKE_DIRTY_MAX (4ull << 20) /* less is written out while it is frozen */
#define TAKE_FLUSHES_MAX 2u         /* the sandbox may write faster than the disk */
#define TAKE_LOOK_MS 1
#define TAKE_WAIT_MS 5000 /* to be frozen */

struct taking {
    struct job job;
    struct loop_timer timer;
    struct keeper *k;
    uint32_t seq;   /* of the request... */
    uint64_t front; /* ...and its front: every front counts from the same number */
    struct snapshot *snap;
    char sandbox[32], disk[64]; /* names of disks: from, to */
    unsigned flushes;
    uint64_t give_up_ms, frozen_ns;
    int result;
    struct err e;
};

/* The sandbox, if it still is the one of this snapshot. */
static struct sandbox *sandbox_of(const struct taking *t)
{
    struct sandbox *sb = sandbox_find(t->k, t->sandbox);

    return sb != NULL && sb->taking == t ? sb : NULL;
}

/* The request is still not answered. */
static bool is_awaited(const struct taking *t, const struct sandbox *sb)
{
    return sb->ask == t->seq && t->front == t->k->nfronts;
}

/* ---- the end ---- */

static void end(struct taking *t, struct sandbox *sb)
{
    struct err ignored;

    if (sb != NULL) {
        sb->taking = NULL;
        freezer_set(sb, FREEZE_ALL, false, &ignored);
    }
    loop_timer_stop(t->k->loop, &t->timer);
    free(t->snap);
    free(t);
}

static void fail(struct taking *t, struct sandbox *sb, const struct err *e)
{
    if (sb != NULL && (is_awaited(t, sb) || sb->ask == ASK_FORGOTTEN)) {
        link_fail(t->k, sb->ask, e);
        sb->ask = 0;
    }
    end(t, sb);
}

static void taken(struct job *w)
{
    struct taking *t = CONTAINER_OF(w, struct taking, job);
    struct sandbox *sb = sandbox_of(t);
    struct snapshot *s = t->snap;
    struct keeper_snap m;
    struct err e;

    if (sb != NULL && freezer_set(sb, FREEZE_ALL, false, &e) < 0 && sb->rec.phase == PHASE_GIVEN)
        log_error("sandbox %s: %s", sb->rec.id, e.msg);
    if (t->result < 0) {
        disk_remove(t->k, t->disk);
        fail(t, sb, &t->e);
        return;
    }
    if (sb == NULL || !is_awaited(t, sb)) /* the front is gone, or the request was answered */
        err_set(&e, ERR_GONE, "snapshot: the sandbox or the front that asked for it is gone");
    else if (snapshot_keep(t->k, s, &e) == 0) {
        t->snap = NULL;
        log_debug("snapshot %s of %s: frozen for %.1f ms", s->rec.id, sb->rec.id,
                  (double)(clock_mono_ns() - t->frozen_ns) / 1e6);
        if (disk_limit(sb, &e) < 0)
            log_warn("sandbox %s: %s", sb->rec.id, e.msg);
        snapshot_message(s, &m);
        link_send(t->k, KEEPER_SNAP, sb->ask, &m);
        sb->ask = 0;
        end(t, sb);
        return;
    }
    disk_remove(t->k, t->disk);
    fail(t, sb, &e);
}

/* ---- the steps ---- */

static void take_run(struct job *w)
{
    struct taking *t = CONTAINER_OF(w, struct taking, job);

    t->result = t->k->disk.way->clone(t->k, t->sandbox, t->disk, true, &t->snap->rec.bytes, &t->e);
}

static void take(struct taking *t)
{
    t->frozen_ns = clock_mono_ns();
    job_start(t->k->loop, &t->job, take_run, taken);
}

static void look(struct loop_timer *timer)
{
    struct taking *t = CONTAINER_OF(timer, struct taking, timer);
    struct sandbox *sb = sandbox_of(t);
    struct err e;

    if (sb == NULL || sb->rec.phase != PHASE_GIVEN)
        err_set(&e, ERR_GONE, "snapshot: the sandbox ended before it was taken");
    else if (freezer_is_frozen_soon(sb, FREEZE_ALL)) {
        take(t);
        return;
    } else if (clock_mono_ms() <= t->give_up_ms) {
        loop_timer_set(t->k->loop, &t->timer, TAKE_LOOK_MS, look);
        return;
    } else
        err_set(&e, ERR_UNRESPONSIVE,
                "snapshot sandbox %s: a process in it did not freeze within %d ms", sb->rec.id,
                TAKE_WAIT_MS);
    fail(t, sb, &e);
}

static void flush_run(struct job *w)
{
    struct taking *t = CONTAINER_OF(w, struct taking, job);

    syncfs(t->k->disk.fd);
}

static void go_on(struct taking *t, struct sandbox *sb);

static void flushed(struct job *w)
{
    struct taking *t = CONTAINER_OF(w, struct taking, job);
    struct sandbox *sb = sandbox_of(t);
    struct err e;

    if (sb != NULL && sb->rec.phase == PHASE_GIVEN) {
        go_on(t, sb);
        return;
    }
    err_set(&e, ERR_GONE, "snapshot: the sandbox ended before it was taken");
    fail(t, sb, &e);
}

static void go_on(struct taking *t, struct sandbox *sb)
{
    struct err e;

    if (sb->rec.phase == PHASE_STOPPED) {
        take(t);
    } else if (t->flushes < TAKE_FLUSHES_MAX && cgroup_dirty(sb) > TAKE_DIRTY_MAX) {
        t->flushes++;
        job_start(t->k->loop, &t->job, flush_run, flushed);
    } else if (freezer_set(sb, FREEZE_ALL, true, &e) < 0) {
        fail(t, sb, &e);
    } else {
        t->give_up_ms = clock_mono_ms() + TAKE_WAIT_MS;
        look(&t->timer);
    }
}

/* ---- the request ---- */

static struct taking *taking_new(struct keeper *k, const struct sandbox *sb)
{
    struct taking *t = calloc(1, sizeof(*t));
    struct snapshot *s = calloc(1, sizeof(*s)), *below;

    if (t == NULL || s == NULL) {
        free(t);
        free(s);
        return NULL;
    }
    id_random(s->rec.id, ID_LEN);
    str_fmt(s->rec.under, sizeof(s->rec.under), "%s", sb->rec.layer);
    str_fmt(s->rec.template, sizeof(s->rec.template), "%s", sb->rec.template);
    str_fmt(s->rec.source, sizeof(s->rec.source), "%s", sb->rec.id);
    below = snapshot_is_version(sb->rec.layer) ? snapshot_find_any(k, sb->rec.layer + 1) : NULL;
    s->rec.stack = below == NULL ? 1 : below->rec.stack + 1;
    s->rec.created_ms = clock_real_ms();
    list_init(&s->link);
    t->k = k;
    t->job.lane = JOB_DISK;
    t->snap = s;
    str_fmt(t->sandbox, sizeof(t->sandbox), "%s", sb->rec.id);
    snapshot_disk(s->rec.id, t->disk, sizeof(t->disk));
    return t;
}

int snapshot_begin(struct sandbox *sb, const struct news *n, struct err *e)
{
    struct keeper *k = sb->k;
    struct taking *t;

    if (sandbox_is_busy(sb) || sb->taking != NULL)
        return err_set(e, ERR_CONFLICT,
                       "another request about sandbox %s is not finished; try again", sb->rec.id);
    if (k->snapshots->n >= k->config.snapshots)
        return err_set(e, ERR_LIMIT, "there are %zu snapshots, the limit (setting `snapshots`)",
                       k->snapshots->n);
    if (disk_check(k, e) < 0)
        return -1;
    t = taking_new(k, sb);
    if (t == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    sb->taking = t;
    sb->ask = t->seq = n->seq;
    t->front = k->nfronts;
    go_on(t, sb);
    return 0;
}
