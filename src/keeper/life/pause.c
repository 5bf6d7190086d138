/* pause.c - pausing a sandbox with its memory, and resuming it.
 *
 * Nothing is written: the kernel remembers that a sandbox is paused (freezer.h), also after
 * the daemon has ended, for as long as the memory is there. The front's row has what a client
 * was told; its join makes the two agree. */
#include <stdlib.h>

#include "base/clock.h"
#include "keeper/cgroup.h"
#include "keeper/freezer.h"
#include "keeper/life/reactions.h"
#include "keeper/ops.h"
#include "loop/job.h"

#define PAUSE_LOOK_MS 1
#define PAUSE_WAIT_MS 5000     /* for a process to freeze; then the pause fails */
#define PAUSE_RECLAIM_MS 2000u /* paused for so long: its memory goes back to the host */

/* ---- memory ---- */

struct reclaim {
    struct job job;
    int dir;
    bool v2;
};

static void reclaim_run(struct job *w)
{
    struct reclaim *r = CONTAINER_OF(w, struct reclaim, job);

    freezer_reclaim(r->dir, r->v2);
}

static void reclaim_done(struct job *w)
{
    struct reclaim *r = CONTAINER_OF(w, struct reclaim, job);

    drop_fd(&r->dir);
    free(r);
}

static void reclaim(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);
    struct reclaim *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return;
    r->job.lane = JOB_DISK;
    r->v2 = sb->k->cgroups.v2_has[CTRL_MEMORY];
    r->dir = cgroup_ctrl_dir(sb, CTRL_MEMORY);
    if (r->dir < 0) {
        free(r);
        return;
    }
    cgroup_swap(sb, true);
    job_start(sb->k->loop, &r->job, reclaim_run, reclaim_done);
}

/* ---- freezing ---- */

static void look(struct loop_timer *t)
{
    sandbox_tell(CONTAINER_OF(t, struct sandbox, timer), EV_FREEZE_CHECK);
}

int react_pause_check(struct sandbox *sb, const struct news *n, struct err *e)
{
    struct err ignored;

    (void)n;
    if (freezer_is_frozen_soon(sb, FREEZE_COMMANDS)) {
        sandbox_enter(sb, STATE_PAUSED);
        sandbox_answer_ok(sb);
        loop_timer_set(sb->k->loop, &sb->timer, PAUSE_RECLAIM_MS, reclaim);
    } else if (clock_mono_ms() > sb->pause_by_ms && sb->ask != ASK_FORGOTTEN) {
        freezer_set(sb, FREEZE_COMMANDS, false, &ignored);
        sandbox_enter(sb, STATE_RUNNING);
        err_set(e, ERR_UNRESPONSIVE,
                "pause sandbox %s: a process in it did not freeze within %d ms; it runs on",
                sb->rec.id, PAUSE_WAIT_MS);
        sandbox_answer_fail(sb, e);
    } else { /* never gives up for a front that is gone: the next one is told `paused` */
        loop_timer_set(sb->k->loop, &sb->timer, PAUSE_LOOK_MS, look);
    }
    return 0;
}

/* Pausing a paused one is no error: a new front makes sure that way. */
int react_pause_begin(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (sandbox_check_free(sb, e) < 0 || freezer_set(sb, FREEZE_COMMANDS, true, e) < 0)
        return -1;
    sandbox_enter(sb, STATE_PAUSING);
    sb->ask = n->seq;
    sb->pause_by_ms = clock_mono_ms() + PAUSE_WAIT_MS;
    look(&sb->timer);
    return 0;
}

/* A snapshot that is being taken freezes it by another switch: it runs when both are off. */
int react_resume(struct sandbox *sb, const struct news *n, struct err *e)
{
    if ((sb->taking == NULL && sandbox_check_free(sb, e) < 0) ||
        freezer_set(sb, FREEZE_COMMANDS, false, e) < 0)
        return -1;
    if (sb->state != STATE_RUNNING)
        cgroup_swap(sb, false);
    sandbox_enter(sb, STATE_RUNNING);
    loop_timer_stop(sb->k->loop, &sb->timer);
    link_ok(sb->k, n->seq);
    return 0;
}

/* A snapshot that was cut off has frozen everything, which is undone; a pause stays. */
int pause_adopt(struct sandbox *sb, enum state *ret, struct err *e)
{
    bool paused;

    if (freezer_set(sb, FREEZE_ALL, false, e) < 0 ||
        freezer_is_on(sb, FREEZE_COMMANDS, &paused, e) < 0)
        return -1;
    if (paused)
        loop_timer_set(sb->k->loop, &sb->timer, PAUSE_RECLAIM_MS, reclaim);
    *ret = paused ? STATE_PAUSED : STATE_RUNNING;
    return 0;
}
