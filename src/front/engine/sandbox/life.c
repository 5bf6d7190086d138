/* life.c - the states of a sandbox: the table of state x event, its waiters, and its timer.
 *
 * At most one request to the keeper is under way per sandbox: an event meanwhile waits, is refused,
 * or becomes the state LIFE_DOOMED. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/sandbox/life.h"

#define LIFE_ARM_MAX_MS (3600 * 1000) /* re-read the clock at least this often */

/* ---- waiters ---- */

void life_wait(struct box *b, const struct life_news *n)
{
    if (n->waiter != NULL)
        list_add_tail(&b->waiters, &n->waiter->link);
}

void life_answer(struct box *b, const struct err *e)
{
    struct waiter *w;

    while ((w = LIST_FIRST(&b->waiters, struct waiter, link)) != NULL)
        waiter_answer(w, b->pub.id, e);
}

void life_call_next(struct box *b)
{
    struct waiter *w;

    b->wanted = false;
    while ((w = LIST_FIRST(&b->next, struct waiter, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(&b->waiters, &w->link);
    }
}

void life_late(void *arg, const struct err *e)
{
    life_answer(arg, e);
}

static void stale(struct box *b, const struct life_news *n)
{
    (void)b;
    (void)n;
}

const char *life_doing(const struct box *b)
{
    static const char *const doing[LIFE_COUNT] = {
        [LIFE_RUNNING] = "running",        [LIFE_STOPPED] = "stopped",
        [LIFE_PAUSED] = "paused",          [LIFE_BOOTING] = "being resumed",
        [LIFE_HALTING] = "being stopped",  [LIFE_PAUSING] = "being paused",
        [LIFE_THAWING] = "being resumed",  [LIFE_DOOMED] = "being deleted",
        [LIFE_DELETING] = "being deleted", [LIFE_STUCK] = "being deleted",
        [LIFE_DAMAGED] = "damaged",        [LIFE_RECOVERING] = "being recovered",
    };

    return doing[b->life];
}

int life_fail_damaged(const struct box *b, struct err *e)
{
    return err_set(
        e, ERR_CONFLICT,
        "sandbox %s is damaged (%s); recover it (`cove sandbox recover %s`) or delete it",
        b->pub.id, b->reason, b->pub.id);
}

static void refuse(struct box *b, const struct life_news *n)
{
    struct err e;

    if (b->life == LIFE_DAMAGED) {
        life_fail_damaged(b, &e);
        waiter_answer(n->waiter, b->pub.id, &e);
        return;
    }
    waiter_fail(n->waiter, ERR_CONFLICT, "sandbox %s is %s", b->pub.id, life_doing(b));
}

int life_save(struct box *b, enum store_state state, struct err *e)
{
    struct store_life l = {.state = state,
                           .boot_id = b->boot_id,
                           .reason = b->reason,
                           .ends_ms = b->pub.ends_ms,
                           .changed_ms = b->pub.changed_ms};

    return store_sandbox_set_life(b->g->o.store, b->pub.id, &l, e);
}

/* ---- time ---- */

static void on_end(struct loop_timer *t)
{
    struct box *b = CONTAINER_OF(t, struct box, end);
    struct life_news none = {0};

    if (b->life != LIFE_STUCK && clock_real_ms() < b->pub.ends_ms)
        life_arm(b);
    else
        life_event(b, LIFE_TIMEOUT, &none);
}

void life_arm(struct box *b)
{
    uint64_t now = clock_real_ms(), ms;

    loop_timer_stop(b->g->loop, &b->end);
    if (b->pub.ends_ms == 0)
        return;
    ms = b->pub.ends_ms > now ? b->pub.ends_ms - now : 0;
    life_again(b, ms > LIFE_ARM_MAX_MS ? LIFE_ARM_MAX_MS : ms);
}

void life_again(struct box *b, uint64_t ms)
{
    loop_timer_set(b->g->loop, &b->end, ms, on_end);
}

/* Its processes are frozen: only without them there is something to do. */
static void stop_paused(struct box *b, const struct life_news *n)
{
    if (n->no_memory)
        life_pause(b, n);
    else
        refuse(b, n);
}

static void later(struct box *b, const struct life_news *n)
{
    (void)n;
    life_again(b, LIFE_LATER_MS);
}

void life_begin(struct box *b)
{
    life_arm(b);
    monitor_start(b);
    journal_start(b);
}

/* ---- the table ---- */

/* Every cell is a decision; `stale` is one too. test_engine.c walks it. What ends a
 * request can come only in the state that has made it, except after a death: the keeper
 * has told that before it refuses what it was asked meanwhile. */
/* clang-format off */
#define NO_BOOT    [LIFE_BOOTED] = stale, [LIFE_BOOT_FAILED] = stale
#define NO_HALT    [LIFE_HALTED] = stale, [LIFE_HALT_FAILED] = stale
#define NO_FREEZE  [LIFE_FROZE] = stale,  [LIFE_FREEZE_FAILED] = stale
#define NO_THAW    [LIFE_THAWED] = stale, [LIFE_THAW_FAILED] = stale
#define NO_DESTROY [LIFE_DESTROYED] = stale, [LIFE_DESTROY_FAILED] = stale
#define NO_RECOVER [LIFE_RECOVER] = refuse, [LIFE_RECOVERED] = stale, [LIFE_RECOVER_FAILED] = stale

static reaction *const react[LIFE_COUNT][LIFE_EVENT_COUNT] = {
    [LIFE_RUNNING]  = {[LIFE_DELETE] = life_end_it,    [LIFE_RESUME] = refuse,            [LIFE_PAUSE] = life_pause,
                       [LIFE_DIED] = life_died,   [LIFE_TIMEOUT] = life_time_over,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_STOPPED]  = {[LIFE_DELETE] = life_end_it,    [LIFE_RESUME] = life_boot,         [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = life_time_over,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_PAUSED]   = {[LIFE_DELETE] = life_end_it,    [LIFE_RESUME] = life_thaw,         [LIFE_PAUSE] = stop_paused,
                       [LIFE_DIED] = life_died,   [LIFE_TIMEOUT] = stale,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_BOOTING]  = {[LIFE_DELETE] = life_doom,      [LIFE_RESUME] = life_resume_too,   [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = later,
                       [LIFE_BOOTED] = life_booted,    [LIFE_BOOT_FAILED] = life_boot_failed,
                       NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_HALTING]  = {[LIFE_DELETE] = life_doom,      [LIFE_RESUME] = life_resume_after, [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = life_halted,      [LIFE_TIMEOUT] = later,
                       [LIFE_HALTED] = life_halted,    [LIFE_HALT_FAILED] = life_halt_failed,
                       NO_BOOT, NO_FREEZE, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_PAUSING]  = {[LIFE_DELETE] = life_doom,      [LIFE_RESUME] = life_resume_after, [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = life_died,   [LIFE_TIMEOUT] = later,
                       [LIFE_FROZE] = life_froze,      [LIFE_FREEZE_FAILED] = life_freeze_failed,
                       NO_BOOT, NO_HALT, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_THAWING]  = {[LIFE_DELETE] = life_doom,      [LIFE_RESUME] = life_resume_too,   [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = life_died,   [LIFE_TIMEOUT] = later,
                       [LIFE_THAWED] = life_thawed,    [LIFE_THAW_FAILED] = life_thaw_failed,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_DESTROY, NO_RECOVER},
    [LIFE_DOOMED]   = {[LIFE_DELETE] = life_wait,      [LIFE_RESUME] = refuse,            [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = stale,
                       [LIFE_BOOTED] = life_destroy,   [LIFE_BOOT_FAILED] = life_destroy,
                       [LIFE_HALTED] = life_destroy,   [LIFE_HALT_FAILED] = life_destroy,
                       [LIFE_FROZE] = life_destroy,    [LIFE_FREEZE_FAILED] = life_destroy,
                       [LIFE_THAWED] = life_destroy,   [LIFE_THAW_FAILED] = life_destroy,
                       [LIFE_RECOVER] = refuse,
                       [LIFE_RECOVERED] = life_destroy, [LIFE_RECOVER_FAILED] = life_destroy,
                       NO_DESTROY},
    [LIFE_DELETING] = {[LIFE_DELETE] = life_wait,      [LIFE_RESUME] = refuse,            [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = stale,
                       [LIFE_DESTROYED] = life_buried, [LIFE_DESTROY_FAILED] = life_stuck,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_RECOVER},
    [LIFE_STUCK]    = {[LIFE_DELETE] = life_end_it,    [LIFE_RESUME] = refuse,            [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = life_end_it,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY, NO_RECOVER},
    [LIFE_DAMAGED]  = {[LIFE_DELETE] = life_end_it,    [LIFE_RESUME] = refuse,            [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = stale,
                       [LIFE_RECOVER] = life_recover,  [LIFE_RECOVERED] = stale, [LIFE_RECOVER_FAILED] = stale,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY},
    [LIFE_RECOVERING] = {[LIFE_DELETE] = life_doom,    [LIFE_RESUME] = refuse,            [LIFE_PAUSE] = refuse,
                       [LIFE_DIED] = stale,            [LIFE_TIMEOUT] = stale,
                       [LIFE_RECOVER] = life_wait,     [LIFE_RECOVERED] = life_recovered,
                       [LIFE_RECOVER_FAILED] = life_recover_failed,
                       NO_BOOT, NO_HALT, NO_FREEZE, NO_THAW, NO_DESTROY},
};
/* clang-format on */

bool life_is_decided(void)
{
    for (size_t s = 0; s < LIFE_COUNT; s++)
        for (size_t ev = 0; ev < LIFE_EVENT_COUNT; ev++)
            if (react[s][ev] == NULL)
                return false;
    return true;
}

void life_event(struct box *b, enum life_event ev, const struct life_news *news)
{
    react[b->life][ev](b, news);
    if (ev != LIFE_DESTROYED) /* after which there may be no box */
        box_charge(b);
}
