/* lease.c - the change of states, and the operations on the backend that it begins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/workspace/internal.h"
#include "mem/mem.h"

void lease_row(const struct workspace *w, struct store_workspace *row)
{
    *row = (struct store_workspace){.seq = w->seq,
                                    .key = w->key,
                                    .name = w->name,
                                    .state = w->state,
                                    .epoch = w->epoch,
                                    .route = w->route,
                                    .backend = w->backend->kind->name,
                                    .sandbox = w->sandbox,
                                    .spec = w->spec,
                                    .digest = w->digest,
                                    .reason = w->reason,
                                    .grace_ms = w->policy.grace_ms,
                                    .archive_ms = w->policy.archive_ms,
                                    .background = w->policy.background,
                                    .created_ms = w->created_ms,
                                    .changed_ms = w->changed_ms,
                                    .used_ms = w->used_ms};
}

int lease_save(struct workspace *w, struct err *e)
{
    struct store_workspace row;

    lease_row(w, &row);
    return store_workspace_set(w->all->o.store, &row, e);
}

static void say(struct workspace *w, enum ws_state from)
{
    char data[512];

    if (strcmp(ws_states[from].shown, ws_states[w->state].shown) == 0)
        return;
    snprintf(data, sizeof(data),
             "{\"workspace\":\"%s\",\"state\":\"%s\",\"was\":\"%s\",\"epoch\":%llu}", w->name,
             ws_states[w->state].shown, ws_states[from].shown, (unsigned long long)w->epoch);
    engine_say(w->all->o.engine, w->key, w->sandbox, "workspace.changed", data);
}

/* What the row becomes. */
static void apply(struct workspace *w, enum ws_state next, const struct ws_news *n)
{
    if (w->state == WS_WARMING && next == WS_WARM)
        w->epoch++;
    if (n->sandbox != NULL)
        str_fmt(w->sandbox, sizeof(w->sandbox), "%.128s", n->sandbox);
    if (n->digest != NULL)
        str_fmt(w->digest, sizeof(w->digest), "%.64s", n->digest);
    if (n->e != NULL)
        str_fmt(w->reason, sizeof(w->reason), "%.400s", n->e->msg);
    else if (next == WS_WARM || w->state == WS_PAUSING || w->state == WS_REMOVING)
        w->reason[0] = '\0'; /* else it is only tried again */
    if (next == WS_COLD || next == WS_UNDOING)
        w->sandbox[0] = '\0';
    w->state = next;
    w->changed_ms = clock_real_ms();
}

/* All that a change of the row can change. */
struct before {
    enum ws_state state;
    uint64_t epoch, changed_ms;
    char sandbox[BACKEND_ID_MAX + 1], digest[65], reason[WS_REASON_MAX + 1];
};

static int change(struct workspace *w, enum ws_state next, const struct ws_news *n, struct err *e)
{
    struct before b = {w->state, w->epoch, w->changed_ms, "", "", ""};

    strcpy(b.sandbox, w->sandbox);
    strcpy(b.digest, w->digest);
    strcpy(b.reason, w->reason);
    apply(w, next, n);
    if (lease_save(w, e) == 0) {
        say(w, b.state);
        return 0;
    }
    w->state = b.state;
    w->epoch = b.epoch;
    w->changed_ms = b.changed_ms;
    strcpy(w->sandbox, b.sandbox);
    strcpy(w->digest, b.digest);
    strcpy(w->reason, b.reason);
    return err_wrap(e, "workspace %s", w->name);
}

int lease_event(struct workspace *w, enum ws_event ev, const struct ws_news *n, struct err *e)
{
    static const struct ws_news none = {0};
    const struct ws_step *s = &ws_steps[w->state][ev];
    enum ws_state from = w->state;

    if (n == NULL)
        n = &none;
    if (s->tell == WS_NEVER)
        return 0;
    if (s->tell == WS_LATER) {
        w->doomed = true;
        return 0;
    }
    if (s->next != from) {
        if (change(w, s->next, n, e) < 0) {
            lease_refuse(w, e);
            return -1;
        }
        w->op_runs = false;
        w->failed_ms = 0;
    }
    if (ev == WS_EV_FAIL)
        w->failed_ms = clock_real_ms();
    if (s->tell == WS_SERVE)
        lease_serve(w);
    else if (s->tell == WS_REFUSE && n->e != NULL)
        lease_refuse(w, n->e);
    if (w->state == WS_DELETING && from != WS_DELETING) {
        err_set(e, ERR_GONE, "workspace %s was deleted", w->name);
        lease_refuse(w, e);
    }
    if (ev == WS_EV_FAIL && s->next == from) { /* again at a sweep */
        if (w->doomed && n->e != NULL)
            lease_told_deleted(w, n->e);
        return 0;
    }
    if (w->doomed && s->next != from && ws_steps[w->state][WS_EV_DELETE].tell != WS_LATER) {
        w->doomed = false;
        return lease_event(w, WS_EV_DELETE, NULL, e);
    }
    if (w->state == WS_COLD && !list_empty(&w->waiters))
        return lease_event(w, WS_EV_USE, NULL, e);
    lease_operate(w);
    lease_sweep_soon(w->all);
    return 0;
}

/* ---- operations ---- */

struct op *lease_op(struct workspace *w, enum ws_op what)
{
    struct op *o = mem_zeroed(1, sizeof(*o));

    *o = (struct op){.w = w, .all = w->all, .no = ++w->op_no, .what = what, .seq = w->seq};
    strcpy(o->key, w->key);
    list_add_tail(&w->all->ops, &o->link);
    w->op_runs = true;
    return o;
}

struct workspace *lease_op_end(struct op *o)
{
    struct workspace *w = o->w;
    bool late = w == NULL || w->op_no != o->no;

    list_del(&o->link);
    free(o);
    if (late)
        return NULL;
    w->op_runs = false;
    return w;
}

static void report(struct workspace *w, const struct ws_news *n)
{
    enum ws_event ev = n->e == NULL ? WS_EV_DONE : WS_EV_FAIL;
    struct err e;

    /* the rule of backend.h */
    if (n->e != NULL && n->e->kind == ERR_NOT_FOUND && w->state == WS_WAKING)
        ev = WS_EV_LOST;
    if (n->e != NULL)
        log_warn("workspace %s of %s, %s: %s", w->name, w->key, ws_states[w->state].name,
                 n->e->msg);
    if (lease_event(w, ev, n, &e) < 0) {
        log_error("%s", e.msg);
        w->failed_ms = clock_real_ms();
    }
}

static void on_done(void *arg, const struct err *e)
{
    struct workspace *w = lease_op_end(arg);

    if (w != NULL && w->state == WS_DELETING && e == NULL)
        lease_forget(w);
    else if (w != NULL) {
        report(w, &(struct ws_news){.e = e});
        if (e != NULL && w->state == WS_DELETING)
            lease_told_deleted(w, e);
    }
}

static void on_made(void *arg, const char *id, const struct err *e)
{
    struct workspace *w = lease_op_end(arg);

    if (w != NULL)
        report(w, &(struct ws_news){.sandbox = id, .e = e});
}

static void on_unwanted(void *arg, const struct err *e)
{
    (void)arg;
    if (e != NULL)
        log_error("the archive of a workspace that was deleted stays: %s", e->msg);
}

/* The archive is good, but not all that its sandbox has. */
static void keep_archive(struct workspace *w, const char *digest)
{
    struct err e;

    str_fmt(w->digest, sizeof(w->digest), "%.64s", digest);
    if (lease_save(w, &e) < 0)
        log_error("workspace %s: %s", w->name, e.msg);
}

/* Whether a client used its sandbox by its id since its archive began. */
static bool is_stale(const struct workspace *w, uint64_t changed_ms)
{
    const struct sandbox *s = lease_sandbox(w);

    return s != NULL && (s->state == SANDBOX_RUNNING || s->changed_ms != changed_ms);
}

/* Also if the workspace is in use again, or deleted. */
static void on_archived(void *arg, const struct backend_archive *a, const struct err *e)
{
    struct op o = *(struct op *)arg;
    struct workspace *w = lease_op_end(arg);
    char owner[ARCHIVE_OWNER_MAX + 1];
    struct err why;

    if (o.w != NULL)
        o.w->archivings--;
    if (a != NULL && (o.w == NULL || o.w->state == WS_DELETING)) {
        lease_owner(o.seq, owner);
        engine_archives_delete(o.all->o.engine, o.key, owner, a->digest, on_unwanted, NULL);
    } else if (w == NULL && o.w != NULL && a != NULL)
        keep_archive(o.w, a->digest);
    else if (w != NULL && a != NULL && is_stale(w, o.changed_ms)) {
        keep_archive(w, a->digest);
        w->used_ms = clock_real_ms();
        if (lease_event(w, WS_EV_USE, NULL, &why) < 0)
            log_error("%s", why.msg);
    } else if (w != NULL)
        report(w, &(struct ws_news){.digest = a != NULL ? a->digest : NULL, .e = e});
}

static void begin_archive(struct workspace *w, const char *owner)
{
    const struct sandbox *s = lease_sandbox(w);
    struct op *o = lease_op(w, WS_OP_ARCHIVE);

    o->changed_ms = s != NULL ? s->changed_ms : 0;
    w->archivings++;
    w->backend->kind->archive(w->backend, w->key, w->sandbox, owner, w->spec, on_archived, o);
}

static void mark_of(const struct workspace *w, char out[BACKEND_MARK_MAX + 1])
{
    str_fmt(out, BACKEND_MARK_MAX + 1, "workspace:%llu:%llu", (unsigned long long)w->seq,
            (unsigned long long)w->epoch);
}

void lease_owner(uint64_t seq, char out[ARCHIVE_OWNER_MAX + 1])
{
    str_fmt(out, ARCHIVE_OWNER_MAX + 1, "workspace:%llu", (unsigned long long)seq);
}

static void make_now(void *arg, const struct create_opts *create)
{
    struct op *o = arg;
    struct workspace *w = o->w;
    char mark[BACKEND_MARK_MAX + 1], owner[ARCHIVE_OWNER_MAX + 1];
    struct backend_spec s = {.key = w->key,
                             .mark = mark,
                             .spec = w->spec,
                             .owner = owner,
                             .digest = w->digest,
                             .any_base = true,
                             .create = create};

    mark_of(w, mark);
    lease_owner(w->seq, owner);
    if (w->digest[0] != '\0')
        w->backend->kind->restore(w->backend, &s, on_made, o);
    else
        w->backend->kind->create(w->backend, &s, on_made, o);
}

/* Nothing of an earlier try is there now. */
static void on_clear(void *arg, const struct err *e)
{
    struct op *o = arg;
    struct err why;

    if (e != NULL || o->w == NULL || o->w->op_no != o->no)
        on_made(o, NULL, e);
    else if (o->all->o.decode(o->all->o.config, o->w->spec, make_now, o, &why) < 0)
        on_made(o, NULL, &why);
}

void lease_operate(struct workspace *w)
{
    const struct backend_kind *k = w->backend->kind;
    char mark[BACKEND_MARK_MAX + 1], owner[ARCHIVE_OWNER_MAX + 1];
    enum ws_op what = ws_states[w->state].op;

    if (what == WS_OP_NONE || w->op_runs)
        return;
    mark_of(w, mark);
    lease_owner(w->seq, owner);
    switch (what) {
    case WS_OP_MAKE:
        k->undo(w->backend, w->key, mark, on_clear, lease_op(w, what));
        break;
    case WS_OP_UNDO:
        k->undo(w->backend, w->key, mark, on_done, lease_op(w, what));
        break;
    case WS_OP_PAUSE:
        k->pause(w->backend, w->key, w->sandbox, on_done, lease_op(w, what));
        break;
    case WS_OP_WAKE:
        k->resume(w->backend, w->key, w->sandbox, on_made, lease_op(w, what));
        break;
    case WS_OP_ARCHIVE:
        begin_archive(w, owner);
        break;
    case WS_OP_REMOVE:
        k->remove(w->backend, w->key, w->sandbox, on_done, lease_op(w, what));
        break;
    case WS_OP_NONE:
        break;
    }
}

/* ---- deletion ---- */

static void forgotten(void *arg, const struct err *e)
{
    struct workspace *w = lease_op_end(arg);
    char data[256];
    struct err why;

    if (w == NULL)
        return;
    if (e == NULL && store_workspace_delete(w->all->o.store, w->seq, &why) < 0)
        e = &why;
    if (e != NULL) {
        w->failed_ms = clock_real_ms();
        lease_told_deleted(w, e);
        return;
    }
    snprintf(data, sizeof(data), "{\"workspace\":\"%s\",\"epoch\":%llu}", w->name,
             (unsigned long long)w->epoch);
    engine_say(w->all->o.engine, w->key, "", "workspace.deleted", data);
    lease_told_deleted(w, NULL);
    lease_free(w);
}

void lease_forget(struct workspace *w)
{
    char owner[ARCHIVE_OWNER_MAX + 1];

    lease_owner(w->seq, owner);
    engine_archives_delete(w->all->o.engine, w->key, owner, NULL, forgotten,
                           lease_op(w, WS_OP_REMOVE));
}

/* Operations of one that is freed find nothing of it. */
void lease_free(struct workspace *w)
{
    struct holder *h;
    struct op *o;

    LIST_EACH (&w->all->ops, o, struct op, link)
        if (o->w == w)
            o->w = NULL;
    while ((h = LIST_FIRST(&w->holders, struct holder, link)) != NULL) {
        list_del(&h->link);
        free(h);
    }
    for (struct list *l = w->users.next; l != &w->users; l = l->next)
        CONTAINER_OF(l, struct workspace_use, link)->w = NULL;
    list_del(&w->users);
    list_del(&w->link);
    map_del(&w->all->names, &w->node);
    free(w->spec);
    free(w);
}
