/* pause.c - pausing a sandbox with its memory, and letting it go on.
 *
 * Nothing is written: that it is paused is what the kernel remembers (freezer.h),
 * and it outlives every daemon as long as the memory does. The front's row says
 * what a client was told, and its join makes the two agree. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "keeper/cgroup.h"
#include "keeper/freezer.h"
#include "keeper/internal.h"
#include "keeper/ops.h"
#include "keeper/worker.h"

#define PAUSE_LOOK_MS 1        /* later on */
#define PAUSE_WAIT_MS 5000     /* then it is let go again: something in it does not stop */
#define PAUSE_RECLAIM_MS 2000u /* paused for so long: its memory goes back to the host */

/* ---- memory ---- */

struct reclaim {
    struct work work;
    int dir;
    bool v2;
};

static void reclaim_run(struct work *w)
{
    struct reclaim *r = CONTAINER_OF(w, struct reclaim, work);

    freezer_reclaim(r->dir, r->v2);
}

static void reclaim_done(struct work *w)
{
    struct reclaim *r = CONTAINER_OF(w, struct reclaim, work);

    drop_fd(&r->dir);
    free(r);
}

static void reclaim(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);
    struct reclaim *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return;
    r->work = (struct work){.run = reclaim_run, .done = reclaim_done};
    r->v2 = sb->k->cgroups.v2_has[CTRL_MEMORY];
    r->dir = cgroup_ctrl_dir(sb, CTRL_MEMORY);
    if (r->dir < 0) {
        free(r);
        return;
    }
    cgroup_swap(sb, true);
    worker_give(&r->work);
}

/* ---- freezing ---- */

static void give_up(struct sandbox *sb)
{
    struct err e, ignored;

    freezer_set(sb, FREEZE_COMMANDS, false, &ignored);
    sb->paused = false;
    err_set(&e, ERR_UNRESPONSIVE, "a process in sandbox %s does not stop; it was not paused",
            sb->rec.id);
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, &e);
    sb->ask = 0;
}

static void look(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);

    if (sb->rec.phase != PHASE_GIVEN || !sb->paused)
        return;
    if (freezer_is_frozen_soon(sb, FREEZE_COMMANDS)) {
        sandbox_answer_ok(sb);
        loop_timer_set(sb->k->loop, &sb->timer, PAUSE_RECLAIM_MS, reclaim);
    } else if (clock_mono_ms() > sb->pause_by_ms && sb->ask != ASK_FORGOTTEN) {
        /* (whoever comes after a front that is gone was told that it is paused) */
        give_up(sb);
    } else {
        loop_timer_set(sb->k->loop, &sb->timer, PAUSE_LOOK_MS, look);
    }
}

static struct sandbox *find_up(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = sandbox_find_given(k, id, e);

    if (sb == NULL || sb->rec.phase != PHASE_STOPPED)
        return sb;
    err_set(e, ERR_CONFLICT, "sandbox %s is stopped", id);
    return NULL;
}

static int check_free(const struct sandbox *sb, struct err *e)
{
    if (!sandbox_is_busy(sb))
        return 0;
    return err_set(e, ERR_CONFLICT, "something else is being done with sandbox %s; try again",
                   sb->rec.id);
}

/* Once more is no error: a new front makes sure that way. */
int sandbox_pause(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    struct sandbox *sb = find_up(k, id, e);

    if (sb == NULL || check_free(sb, e) < 0 || freezer_set(sb, FREEZE_COMMANDS, true, e) < 0)
        return -1;
    sb->paused = true;
    sb->ask = seq;
    sb->pause_by_ms = clock_mono_ms() + PAUSE_WAIT_MS;
    look(&sb->timer);
    return 0;
}

/* A snapshot that is being taken holds it by another switch: it goes on when both are off. */
int sandbox_thaw(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    struct sandbox *sb = find_up(k, id, e);
    struct keeper_ok ok = {0};

    if (sb == NULL || (sb->taking == NULL && check_free(sb, e) < 0) ||
        freezer_set(sb, FREEZE_COMMANDS, false, e) < 0)
        return -1;
    if (sb->paused)
        cgroup_swap(sb, false);
    sb->paused = false;
    loop_timer_stop(k->loop, &sb->timer);
    link_send(k, KEEPER_OK, seq, &ok);
    return 0;
}

/* A snapshot that was cut off holds everything; a pause is a pause. */
int sandbox_adopt_pause(struct sandbox *sb, struct err *e)
{
    if (freezer_set(sb, FREEZE_ALL, false, e) < 0 ||
        freezer_is_on(sb, FREEZE_COMMANDS, &sb->paused, e) < 0)
        return -1;
    if (sb->paused)
        loop_timer_set(sb->k->loop, &sb->timer, PAUSE_RECLAIM_MS, reclaim);
    return 0;
}
