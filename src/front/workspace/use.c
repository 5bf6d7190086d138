/* use.c - who uses a workspace: operations in memory, named holders as rows. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/workspace/internal.h"
#include "mem/mem.h"

static const char *const roles[] = {"spawner", "attached", "rearmed"};
static const char *const kinds[] = {"turn", "viewer"};

const char *workspace_role_name(enum workspace_role r)
{
    return roles[r];
}

const char *holder_kind_name(int kind)
{
    return kinds[kind];
}

bool lease_is_used(const struct workspace *w)
{
    return w->nusers > 0 || w->nholders > 0;
}

/* ---- one operation ---- */

static void drop(struct workspace_use *u)
{
    loop_undefer(&u->later);
    list_del(&u->link);
    free(u);
}

/* It uses the workspace from now on, and is told later. */
static void grant(struct workspace_use *u)
{
    struct workspace *w = u->w;

    list_del(&u->link);
    list_add_tail(&w->users, &u->link);
    w->nusers++;
    w->used_ms = clock_real_ms();
}

static struct workspace_grant grant_of(struct workspace_use *u)
{
    u->phase = USE_HOLDS;
    return (struct workspace_grant){u, u->w->sandbox, u->w->epoch, u->role};
}

static void tell(struct loop_later *l)
{
    struct workspace_use *u = CONTAINER_OF(l, struct workspace_use, later);
    struct workspace_grant g;
    workspace_use_cb *cb = u->cb;
    void *arg = u->arg;
    struct err e = u->e;

    if (!u->failed && u->w == NULL) {
        err_set(&e, ERR_GONE, "the workspace was deleted");
        u->failed = true;
    }
    if (u->failed) {
        drop(u);
        cb(arg, &(struct workspace_grant){0}, &e);
        return;
    }
    g = grant_of(u);
    cb(arg, &g, NULL);
}

static int check_epoch(const struct workspace *w, uint64_t epoch, struct err *e)
{
    if (epoch == 0 || epoch == w->epoch)
        return 0;
    return err_set(e, ERR_FENCED,
                   "workspace %s is at epoch %llu, not %llu: its sandbox was made anew since",
                   w->name, (unsigned long long)w->epoch, (unsigned long long)epoch);
}

static void refuse(struct workspace_use *u, const struct err *e)
{
    struct loop *loop = u->w->all->o.loop;

    u->w->nwaiters--;
    list_del(&u->link);
    u->phase = USE_TELLS;
    u->w = NULL;
    u->failed = true;
    u->e = *e;
    loop_defer(loop, &u->later, tell);
}

void lease_serve(struct workspace *w)
{
    struct workspace_use *u;
    struct err e;

    while ((u = LIST_FIRST(&w->waiters, struct workspace_use, link)) != NULL) {
        if (check_epoch(w, u->epoch, &e) < 0) {
            refuse(u, &e);
            continue;
        }
        w->nwaiters--;
        u->phase = USE_TELLS;
        grant(u);
        loop_defer(w->all->o.loop, &u->later, tell);
    }
}

void lease_refuse(struct workspace *w, const struct err *e)
{
    struct workspace_use *u;

    while ((u = LIST_FIRST(&w->waiters, struct workspace_use, link)) != NULL)
        refuse(u, e);
}

const struct sandbox *lease_sandbox(const struct workspace *w)
{
    return w->backend->kind->local ? engine_get((struct ref){w->all->o.engine, w->key, w->sandbox})
                                   : NULL;
}

int lease_look(struct workspace *w, struct err *e)
{
    const struct sandbox *s;

    if (!w->backend->kind->local ||
        (w->state != WS_WARM && w->state != WS_DRAINING && w->state != WS_PAUSED))
        return 0;
    s = lease_sandbox(w);
    if (s == NULL)
        return lease_event(w, WS_EV_LOST, NULL, e);
    if (s->state == SANDBOX_DAMAGED)
        return err_set(e, ERR_CONFLICT,
                       "workspace %s: the record of its sandbox %s is damaged; recover or delete "
                       "that sandbox",
                       w->name, s->id);
    if (w->state != WS_PAUSED)
        return s->state != SANDBOX_RUNNING ? lease_event(w, WS_EV_STILL, NULL, e) : 0;
    if (s->state != SANDBOX_RUNNING)
        return 0;
    w->used_ms = clock_real_ms(); /* a client resumed it by its id */
    return lease_event(w, WS_EV_USE, NULL, e);
}

/* Whether the sandbox of that epoch is still there to be used. */
static int check_there(const struct workspace *w, uint64_t epoch, struct err *e)
{
    if (check_epoch(w, epoch, e) < 0)
        return -1;
    if (epoch == 0 || (w->state != WS_COLD && w->state != WS_UNDOING && w->state != WS_WARMING &&
                       w->state != WS_REMOVING))
        return 0;
    return err_set(e, ERR_FENCED,
                   "workspace %s: its sandbox of epoch %llu is gone; a request without an epoch "
                   "makes the next one",
                   w->name, (unsigned long long)epoch);
}

int lease_open(const struct workspace *w, struct err *e)
{
    if (w->state != WS_DELETING)
        return 0;
    return err_set(e, ERR_CONFLICT, "workspace %s is being %s; try again", w->name,
                   w->adopting ? "adopted" : "deleted");
}

static enum workspace_role role_in(const struct workspace *w)
{
    if (w->state == WS_WARM || w->state == WS_WARMING)
        return ROLE_ATTACHED;
    return w->state == WS_COLD || w->state == WS_UNDOING ? ROLE_SPAWNER : ROLE_REARMED;
}

int workspace_use(struct workspaces *all, const char *key, const char *name, uint64_t epoch,
                  workspace_use_cb *cb, void *arg, struct workspace_use **ret,
                  struct workspace_grant *now, struct err *e)
{
    struct workspace *w = lease_find(all, key, name, e);
    struct workspace_use *u;

    if (w == NULL || lease_open(w, e) < 0 || lease_look(w, e) < 0 || check_there(w, epoch, e) < 0)
        return -1;
    if (w->nwaiters >= WORKSPACE_WAITERS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "workspace %s: %u callers wait for it already", name,
                       WORKSPACE_WAITERS_MAX);
    u = *ret = mem_zeroed(1, sizeof(*u));
    *u = (struct workspace_use){.w = w, .role = role_in(w), .epoch = epoch, .cb = cb, .arg = arg};
    list_init(&u->link);
    if (w->state == WS_WARM) {
        grant(u);
        *now = grant_of(u);
        return 1;
    }
    if (!list_empty(&w->waiters) && u->role == ROLE_SPAWNER)
        u->role = ROLE_ATTACHED;
    list_add_tail(&w->waiters, &u->link);
    w->nwaiters++;
    lease_event(w, WS_EV_USE, NULL, e); /* a failure is told to all who wait */
    return 0;
}

void workspace_use_as(struct workspace_use *u, enum holder_kind kind, const char *id)
{
    u->kind = kind;
    u->holder = id;
}

void workspace_leave(struct workspace_use *u)
{
    if (u == NULL)
        return;
    if (u->w != NULL && u->phase == USE_WAITS)
        u->w->nwaiters--;
    else if (u->w != NULL) {
        u->w->nusers--;
        u->w->used_ms = clock_real_ms();
    }
    drop(u);
}

/* ---- named holders ---- */

static struct holder *holder_of(struct workspace *w, const struct workspace_holder *is)
{
    struct holder *h;

    LIST_EACH (&w->holders, h, struct holder, link)
        if (h->kind == is->kind && strcmp(h->id, is->id) == 0)
            return h;
    return NULL;
}

static int save_holder(const struct workspace *w, const struct workspace_holder *h,
                       uint64_t ends_ms, struct err *e)
{
    return store_holder_put(w->all->o.store,
                            &(struct store_holder){.workspace = w->seq,
                                                   .kind = h->kind,
                                                   .id = h->id,
                                                   .epoch = w->epoch,
                                                   .ends_ms = ends_ms},
                            e);
}

int workspace_hold(struct workspaces *all, const char *key, const char *name,
                   const struct workspace_holder *is, struct err *e)
{
    struct workspace *w = lease_find(all, key, name, e);
    uint64_t ends = clock_real_ms() + is->ttl_ms;
    struct holder *h;

    if (w == NULL || check_epoch(w, is->epoch, e) < 0)
        return -1;
    h = holder_of(w, is);
    if (h == NULL && w->nholders >= WORKSPACE_HOLDERS_MAX)
        return err_set(e, ERR_LIMIT, "workspace %s has %u holders, the most", name,
                       WORKSPACE_HOLDERS_MAX);
    if (save_holder(w, is, ends, e) < 0)
        return -1;
    if (h == NULL) {
        h = mem_zeroed(1, sizeof(*h));
        h->kind = is->kind;
        str_fmt(h->id, sizeof(h->id), "%.128s", is->id);
        list_add_tail(&w->holders, &h->link);
        w->nholders++;
    }
    h->epoch = w->epoch;
    h->ends_ms = ends;
    return 0;
}

int workspace_beat(struct workspaces *all, const char *key, const char *name,
                   const struct workspace_holder *is, struct err *e)
{
    struct workspace *w = lease_find(all, key, name, e);
    struct holder *h = w != NULL ? holder_of(w, is) : NULL;

    if (w == NULL || check_epoch(w, is->epoch, e) < 0)
        return -1;
    if (h == NULL)
        return err_set(e, ERR_NOT_FOUND,
                       "no %s %.64s holds the workspace %s: it was released, or its time is over",
                       holder_kind_name((int)is->kind), is->id, name);
    if (save_holder(w, is, clock_real_ms() + is->ttl_ms, e) < 0)
        return -1;
    h->ends_ms = clock_real_ms() + is->ttl_ms;
    return 0;
}

void lease_holder_drop(struct workspace *w, struct holder *h)
{
    w->nholders--;
    w->used_ms = clock_real_ms();
    list_del(&h->link);
    free(h);
}

int workspace_release(struct workspaces *all, const char *key, const char *name,
                      const struct workspace_holder *is, struct err *e)
{
    struct workspace *w = lease_find(all, key, name, e);
    struct holder *h = w != NULL ? holder_of(w, is) : NULL;

    if (w == NULL || check_epoch(w, is->epoch, e) < 0)
        return -1;
    if (h == NULL)
        return 0;
    if (store_holder_delete(
            all->o.store, &(struct store_holder){.workspace = w->seq, .kind = h->kind, .id = h->id},
            e) < 0)
        return -1;
    lease_holder_drop(w, h);
    return 0;
}
