/* sweep.c - puts away what is not used. Idempotent: what it decides follows from the rows and the
 * uses alone, so a sweep that is missed or comes twice changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/workspace/internal.h"
#include "mem/mem.h"

static size_t expired_of(struct workspace *w, uint64_t now, bool drop)
{
    struct holder *h;
    size_t n = 0;

    LIST_EACH (&w->holders, h, struct holder, link) {
        if (h->ends_ms > now)
            continue;
        n++;
        if (drop)
            lease_holder_drop(w, h);
    }
    return n;
}

/* Returns how many there are. */
static size_t each_expired(struct workspaces *all, uint64_t now, bool drop)
{
    struct workspace *w;
    size_t n = 0;

    LIST_EACH (&all->list, w, struct workspace, link)
        n += expired_of(w, now, drop);
    return n;
}

/* In one transaction: a key may have many of them, which end at the same time. */
static void expire(struct workspaces *all, uint64_t now)
{
    struct err e;

    if (each_expired(all, now, false) == 0)
        return;
    if (store_holders_expire(all->o.store, now, &e) < 0)
        log_error("workspaces: %s", e.msg);
    else
        each_expired(all, now, true);
}

/* For how long after its last use it stays in its state; UINT64_MAX: until it is used. */
static uint64_t rest_of(const struct workspace *w)
{
    uint64_t half = w->policy.grace_ms / 2;

    switch (w->state) {
    case WS_WARM:
        return half < WS_SETTLE_MS ? half : WS_SETTLE_MS;
    case WS_DRAINING:
        return w->policy.grace_ms;
    case WS_PAUSED:
        if (w->policy.archive_ms == 0 || !w->backend->kind->archives)
            return UINT64_MAX;
        return w->policy.grace_ms + w->policy.archive_ms;
    default:
        return ws_states[w->state].op == WS_OP_NONE ? UINT64_MAX : 0;
    }
}

static void rest(struct workspace *w)
{
    struct err e;

    if (lease_event(w, WS_EV_REST, NULL, &e) < 0)
        log_error("%s", e.msg);
}

/* What a name of a workspace was asked for may be gone when this is answered. */
struct asked {
    struct list link; /* first: workspaces_free() */
    struct workspaces *all;
    char key[ENGINE_KEY_MAX + 1], name[WORKSPACE_NAME_MAX + 1];
};

static void on_busy(void *arg, bool busy, const struct err *e)
{
    struct asked *a = arg;
    struct err none;
    struct workspace *w = lease_find(a->all, a->key, a->name, &none);

    list_del(&a->link);
    free(a);
    if (w == NULL)
        return;
    w->asking = false;
    if (busy || e != NULL)
        w->used_ms = clock_real_ms();
    else if (w->state == WS_WARM && !lease_is_used(w) && clock_real_ms() - w->used_ms >= rest_of(w))
        rest(w);
}

static void ask_busy(struct workspace *w)
{
    struct asked *a = mem_zeroed(1, sizeof(*a));

    a->all = w->all;
    list_add_tail(&w->all->asks, &a->link);
    strcpy(a->key, w->key);
    strcpy(a->name, w->name);
    w->asking = true;
    w->backend->kind->busy(w->backend, w->key, w->sandbox, on_busy, a);
}

static void look(struct workspace *w, uint64_t now)
{
    uint64_t time = rest_of(w);
    enum ws_state was = w->state;
    struct err e;

    if (w->op_runs || w->asking || (w->failed_ms != 0 && now - w->failed_ms < WS_RETRY_MS))
        return;
    if (ws_states[w->state].op != WS_OP_NONE) {
        lease_operate(w);
        return;
    }
    if (lease_is_used(w) || time == UINT64_MAX || now - w->used_ms < time ||
        (w->state == WS_PAUSED && w->archivings > 0))
        return;
    if (w->backend->kind->local &&
        engine_is_used((struct ref){w->all->o.engine, w->key, w->sandbox})) {
        w->used_ms = now; /* by its id, or by a connection to one of its ports */
        return;
    }
    if (lease_look(w, &e) < 0)
        return;
    if (w->state == WS_WARM && w->policy.background)
        ask_busy(w);
    else if (w->state == was)
        rest(w);
}

static void sweep(struct loop_timer *t)
{
    struct workspaces *all = CONTAINER_OF(t, struct workspaces, sweep);
    uint64_t now = clock_real_ms();
    struct workspace *w;
    bool more = false;

    expire(all, now);
    LIST_EACH (&all->list, w, struct workspace, link) {
        look(w, now);
        more = more || w->state != WS_COLD || w->nholders > 0;
    }
    if (more)
        lease_sweep_soon(all);
}

void lease_sweep_soon(struct workspaces *all)
{
    if (all->sweep.slot == 0)
        loop_timer_set(all->o.loop, &all->sweep, WS_SWEEP_MS, sweep);
}
