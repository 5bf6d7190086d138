/* workspace.c - the workspaces of all keys: make, find, list, delete. */
#include "front/workspace/workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/quota/quota.h"
#include "front/workspace/internal.h"
#include "mem/mem.h"

static const struct quotas one = {{[QUOTA_workspaces] = 1}};

/* ---- names ---- */

static bool is_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n > 0 && n <= WORKSPACE_NAME_MAX && s[n] == '\0' && s[0] != '.' && s[0] != '-';
}

static int full_name(const char *key, const char *name, char out[WS_FULL_MAX + 1], struct err *e)
{
    if (!is_name(name))
        return err_set(e, ERR_INVALID,
                       "name of the workspace: expected 1 to %u letters, digits, '.', '_' or '-', "
                       "the first one a letter, a digit or '_'",
                       WORKSPACE_NAME_MAX);
    str_fmt(out, WS_FULL_MAX + 1, "%.32s/%s", key, name);
    return 0;
}

static struct workspace *find(struct workspaces *all, const char *full)
{
    struct map_node *n = map_get(&all->names, full);

    return n == NULL ? NULL : CONTAINER_OF(n, struct workspace, node);
}

struct workspace *lease_find(struct workspaces *all, const char *key, const char *name,
                             struct err *e)
{
    char full[WS_FULL_MAX + 1];
    struct workspace *w;

    if (full_name(key, name, full, e) < 0)
        return NULL;
    w = find(all, full);
    if (w == NULL)
        err_set(e, ERR_NOT_FOUND, "no workspace %s; PUT /v1/workspaces/%s makes it", name, name);
    return w;
}

/* ---- rows ---- */

static struct backend *backend_of(struct workspaces *all, const char *name)
{
    for (size_t i = 0; i < backend_kinds_count; i++)
        if (all->backends[i] != NULL && strcmp(backend_kinds[i]->name, name) == 0)
            return all->backends[i];
    return NULL;
}

/* In memory only. */
static struct workspace *ws_new(struct workspaces *all, struct backend *b, const char *full,
                                const struct store_workspace *row)
{
    struct workspace *w = mem_zeroed(1, sizeof(*w));

    w->all = all;
    w->backend = b;
    w->seq = row->seq;
    w->epoch = row->epoch;
    w->route = row->route;
    w->state = (enum ws_state)row->state;
    w->created_ms = row->created_ms;
    w->changed_ms = row->changed_ms;
    w->used_ms = row->used_ms;
    w->policy = (struct workspace_policy){row->grace_ms, row->archive_ms, row->background != 0};
    str_fmt(w->full, sizeof(w->full), "%s", full);
    str_fmt(w->key, sizeof(w->key), "%s", row->key);
    str_fmt(w->name, sizeof(w->name), "%s", row->name);
    str_fmt(w->sandbox, sizeof(w->sandbox), "%.128s", row->sandbox);
    str_fmt(w->digest, sizeof(w->digest), "%.64s", row->digest);
    str_fmt(w->reason, sizeof(w->reason), "%.400s", row->reason);
    w->spec = mem_text(row->spec);
    list_init(&w->waiters);
    list_init(&w->users);
    list_init(&w->holders);
    list_init(&w->deleters);
    list_add_tail(&all->list, &w->link);
    if (map_put(&all->names, &w->node, w->full) < 0)
        abort(); /* as mem_zeroed() */
    return w;
}

/* A row that this version cannot serve is left as it is. */
static int load_row(void *arg, const struct store_workspace *row, struct err *e)
{
    struct workspaces *all = arg;
    struct backend *b = backend_of(all, row->backend);
    char full[WS_FULL_MAX + 1];

    if (row->state >= WS_STATE_COUNT || b == NULL || full_name(row->key, row->name, full, e) < 0)
        log_warn("workspace %.64s of %.32s is not served: its state %llu or backend '%.32s' is not "
                 "known to this server",
                 row->name, row->key, (unsigned long long)row->state, row->backend);
    else
        ws_new(all, b, full, row);
    return 0;
}

/* Both lists are in the order of the workspaces. */
struct loading {
    struct workspaces *all;
    struct list *at;
};

static void load_holder(void *arg, const struct store_holder *row)
{
    struct loading *l = arg;
    struct workspace *w;
    struct holder *h;

    while (l->at != &l->all->list &&
           CONTAINER_OF(l->at, struct workspace, link)->seq < row->workspace)
        l->at = l->at->next;
    w = l->at != &l->all->list ? CONTAINER_OF(l->at, struct workspace, link) : NULL;
    if (w == NULL || w->seq != row->workspace || row->kind >= HOLDER_KIND_COUNT)
        return;
    h = mem_zeroed(1, sizeof(*h));
    h->kind = (enum holder_kind)row->kind;
    str_fmt(h->id, sizeof(h->id), "%.128s", row->id);
    h->epoch = row->epoch;
    h->ends_ms = row->ends_ms;
    list_add_tail(&w->holders, &h->link);
    w->nholders++;
}

int workspaces_new(const struct workspaces_opts *o, struct workspaces **ret, struct err *e)
{
    struct backend_opts b = {.loop = o->loop, .engine = o->engine, .config = o->config};
    struct workspaces *all = *ret = mem_zeroed(1, sizeof(*all));

    all->o = *o;
    map_init(&all->names);
    list_init(&all->list);
    list_init(&all->ops);
    list_init(&all->asks);
    all->backends = mem_zeroed(backend_kinds_count, sizeof(struct backend *));
    for (size_t i = 0; i < backend_kinds_count; i++)
        if (backend_kinds[i]->open(&b, &all->backends[i], e) < 0 && e->kind != ERR_UNSUPPORTED)
            return err_wrap(e, "backend %s", backend_kinds[i]->name);
    if (store_workspace_each(o->store, load_row, all, e) < 0)
        return err_wrap(e, "workspaces");
    return store_holder_each(o->store, load_holder, &(struct loading){all, all->list.next}, e);
}

void workspaces_free(struct workspaces *all)
{
    struct workspace *w;
    struct list *l;

    if (all == NULL)
        return;
    loop_timer_stop(all->o.loop, &all->sweep);
    for (size_t i = 0; i < backend_kinds_count; i++)
        if (all->backends[i] != NULL)
            backend_kinds[i]->free(all->backends[i]);
    while ((w = LIST_FIRST(&all->list, struct workspace, link)) != NULL)
        lease_free(w);
    while (!list_empty(&all->ops) || !list_empty(&all->asks)) {
        l = !list_empty(&all->ops) ? all->ops.next : all->asks.next;
        list_del(l);
        free(l); /* the link is their first member */
    }
    map_free(&all->names);
    free(all->backends);
    free(all);
}

void workspaces_start(struct workspaces *all)
{
    uint64_t now = clock_real_ms();
    struct workspace *w;
    struct err e;

    LIST_EACH (&all->list, w, struct workspace, link) {
        quota_add(quota_user(all->o.quotas, w->key), &one);
        w->used_ms = now; /* its clients may need a moment to come back */
        if (lease_event(w, WS_EV_START, NULL, &e) < 0)
            log_error("%s", e.msg);
    }
}

/* ---- make, find, list ---- */

static void info_of(const struct workspace *w, struct workspace_info *i)
{
    struct workspace_use *u;
    struct holder *h;

    *i = (struct workspace_info){.key = w->key,
                                 .name = w->name,
                                 .state = ws_states[w->state].shown,
                                 .stage = ws_states[w->state].meaning,
                                 .backend = w->backend->kind->name,
                                 .sandbox = w->sandbox,
                                 .spec = w->spec,
                                 .archive = w->digest,
                                 .reason = w->reason,
                                 .epoch = w->epoch,
                                 .route = w->route,
                                 .created_ms = w->created_ms,
                                 .changed_ms = w->changed_ms,
                                 .used_ms = w->used_ms,
                                 .policy = w->policy,
                                 .uses = w->nusers};
    LIST_EACH (&w->holders, h, struct holder, link) {
        i->turns += h->kind == HOLDER_TURN;
        i->viewers += h->kind == HOLDER_VIEWER;
    }
    LIST_EACH (&w->users, u, struct workspace_use, link) {
        i->turns += u->holder != NULL && u->kind == HOLDER_TURN;
        i->viewers += u->holder != NULL && u->kind == HOLDER_VIEWER;
    }
}

int lease_insert(struct workspaces *all, const char *key, const char *name,
                 const struct workspace_make *m, enum ws_state state, struct workspace **ret,
                 struct err *e)
{
    uint64_t now = clock_real_ms();
    struct backend *b = backend_of(all, m->backend != NULL ? m->backend : backend_kinds[0]->name);
    char full[WS_FULL_MAX + 1];
    struct store_workspace row = {.key = key,
                                  .name = name,
                                  .state = state,
                                  .sandbox = "",
                                  .digest = "",
                                  .reason = "",
                                  .spec = m->spec,
                                  .grace_ms = m->policy.grace_ms,
                                  .archive_ms = m->policy.archive_ms,
                                  .background = m->policy.background,
                                  .created_ms = now,
                                  .changed_ms = now,
                                  .used_ms = now};

    if (full_name(key, name, full, e) < 0)
        return -1;
    if (b == NULL)
        return err_set(e, ERR_UNSUPPORTED, "backend: this server has no backend '%.32s'",
                       m->backend);
    row.backend = b->kind->name;
    if (quota_check(quota_user(all->o.quotas, key), &one, e) < 0 ||
        store_workspace_insert(all->o.store, &row, e) < 0)
        return -1;
    quota_add(quota_user(all->o.quotas, key), &one);
    *ret = ws_new(all, b, full, &row);
    return 0;
}

int workspace_put(struct workspaces *all, const char *key, const char *name,
                  const struct workspace_make *m, struct workspace_info *ret, bool *ret_made,
                  struct err *e)
{
    char full[WS_FULL_MAX + 1];
    struct workspace *w;

    if (full_name(key, name, full, e) < 0)
        return -1;
    w = find(all, full);
    *ret_made = w == NULL;
    if (w == NULL && lease_insert(all, key, name, m, WS_COLD, &w, e) < 0)
        return -1;
    if (lease_open(w, e) < 0)
        return -1;
    if (!*ret_made && !m->any_spec && strcmp(w->spec, m->spec) != 0)
        return err_set(e, ERR_CONFLICT,
                       "workspace %s exists and was made with other options; send none to use it "
                       "as it is, or delete it first",
                       name);
    info_of(w, ret);
    return 0;
}

int workspace_get(struct workspaces *all, const char *key, const char *name,
                  struct workspace_info *ret, struct err *e)
{
    const struct workspace *w = lease_find(all, key, name, e);

    if (w == NULL)
        return -1;
    info_of(w, ret);
    return 0;
}

int workspace_set_policy(struct workspaces *all, const char *key, const char *name,
                         const struct workspace_policy *p, struct err *e)
{
    struct workspace *w = lease_find(all, key, name, e);
    struct workspace_policy was;

    if (w == NULL)
        return -1;
    was = w->policy;
    w->policy = *p;
    if (lease_save(w, e) == 0)
        return 0;
    w->policy = was;
    return -1;
}

uint64_t workspace_each(struct workspaces *all, const struct workspace_list *o,
                        void (*each)(void *arg, const struct workspace_info *w), void *arg)
{
    struct workspace_info i;
    struct workspace *w;
    uint64_t last = 0;
    size_t n = 0, bytes = 0;

    LIST_EACH (&all->list, w, struct workspace, link) {
        if (w->seq <= o->after || (o->key != NULL && strcmp(o->key, w->key) != 0) ||
            (o->state != NULL && strcmp(o->state, ws_states[w->state].shown) != 0))
            continue;
        bytes += strlen(w->spec);
        if (n == o->limit || (n > 0 && bytes > o->bytes))
            return last;
        n++;
        info_of(w, &i);
        each(arg, &i);
        last = w->seq;
    }
    return 0;
}

bool workspace_any_of(struct workspaces *all, const char *key)
{
    struct workspace *w;

    LIST_EACH (&all->list, w, struct workspace, link)
        if (strcmp(w->key, key) == 0)
            return true;
    return false;
}

/* ---- delete ---- */

struct deleter {
    struct list link;
    engine_done_cb *cb;
    void *arg;
    struct loop_later later;
    struct err e;
    bool failed;
};

static void tell_deleter(struct loop_later *l)
{
    struct deleter *d = CONTAINER_OF(l, struct deleter, later);
    struct deleter copy = *d;

    list_del(&d->link);
    free(d);
    copy.cb(copy.arg, copy.failed ? &copy.e : NULL);
}

void lease_told_deleted(struct workspace *w, const struct err *e)
{
    struct deleter *d;

    if (e == NULL)
        quota_drop(quota_user(w->all->o.quotas, w->key), &one);
    LIST_EACH (&w->deleters, d, struct deleter, link) {
        list_del(&d->link);
        if (e != NULL) {
            d->e = *e;
            d->failed = true;
        }
        loop_defer(w->all->o.loop, &d->later, tell_deleter);
    }
}

static int may_delete(const struct workspace *w, bool force, struct err *e)
{
    struct workspace_use *u;
    const char *turn = NULL;
    struct holder *h;

    LIST_EACH (&w->holders, h, struct holder, link)
        if (h->kind == HOLDER_TURN)
            turn = h->id;
    LIST_EACH (&w->users, u, struct workspace_use, link)
        if (u->holder != NULL && u->kind == HOLDER_TURN)
            turn = u->holder;
    if (turn == NULL || force)
        return 0;
    return err_set(e, ERR_CONFLICT,
                   "workspace %s is held by the turn %s; release it, or delete with force", w->name,
                   turn);
}

void workspace_delete(struct workspaces *all, const char *key, const char *name, bool force,
                      engine_done_cb *cb, void *arg)
{
    struct deleter *d = mem_zeroed(1, sizeof(*d));
    struct workspace *w = lease_find(all, key, name, &d->e);

    d->cb = cb;
    d->arg = arg;
    list_init(&d->link);
    if (w == NULL || (w->adopting && lease_open(w, &d->e) < 0) || may_delete(w, force, &d->e) < 0) {
        d->failed = true;
        loop_defer(all->o.loop, &d->later, tell_deleter);
        return;
    }
    list_add_tail(&w->deleters, &d->link);
    if (lease_event(w, WS_EV_DELETE, NULL, &d->e) < 0) {
        struct err e = d->e;

        lease_told_deleted(w, &e);
    }
}
