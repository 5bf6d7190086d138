/* envelope.c - what is needed to bring a workspace back elsewhere, and bringing it back. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/workspace/internal.h"

int workspace_envelope_of(struct workspaces *all, const char *key, const char *name,
                          struct workspace_envelope *ret, struct err *e)
{
    struct workspace *w = lease_find(all, key, name, e);
    const struct archive *a = NULL;
    char owner[ARCHIVE_OWNER_MAX + 1];

    if (w == NULL)
        return -1;
    lease_owner(w->seq, owner);
    if (w->digest[0] != '\0')
        a = engine_archive_get(all->o.engine, key, owner, w->digest);
    *ret = (struct workspace_envelope){.backend = w->backend->kind->name,
                                       .sandbox = w->sandbox,
                                       .spec = w->spec,
                                       .space = a != NULL ? a->space : "",
                                       .digest = a != NULL ? a->digest : "",
                                       .epoch = w->epoch,
                                       .route = w->route,
                                       .policy = w->policy};
    return 0;
}

/* ---- adopt ---- */

/* Until it is complete its row says that it is being deleted: that is what a restart makes of a half
 * one. */
static void complete(struct workspace *w, const char *digest, engine_done_cb *cb, void *arg)
{
    struct err e;

    w->adopting = false;
    str_fmt(w->digest, sizeof(w->digest), "%.64s", digest);
    w->state = w->sandbox[0] != '\0' ? WS_DRAINING : WS_COLD;
    if (lease_save(w, &e) == 0) {
        lease_sweep_soon(w->all);
        cb(arg, NULL);
        return;
    }
    w->state = WS_DELETING;
    lease_operate(w);
    cb(arg, &e);
}

static void on_adopted(void *arg, const struct archive *a, const struct err *e)
{
    struct op *o = arg;
    engine_done_cb *cb = o->cb;
    void *cb_arg = o->arg;
    struct workspace *w = lease_op_end(o);

    if (w != NULL && a != NULL) {
        complete(w, a->digest, cb, cb_arg);
        return;
    }
    if (w != NULL) {
        w->adopting = false;
        w->sandbox[0] = '\0'; /* it is not ours to delete */
        lease_operate(w);
    }
    cb(cb_arg, e);
}

static bool is_taken(struct workspaces *all, const char *sandbox)
{
    struct workspace *w;

    LIST_EACH (&all->list, w, struct workspace, link)
        if (strcmp(w->sandbox, sandbox) == 0)
            return true;
    return false;
}

static int check(struct workspaces *all, const char *key, const char *name,
                 const struct workspace_envelope *from, struct err *e)
{
    struct err none;

    if (lease_find(all, key, name, &none) != NULL)
        return err_set(e, ERR_CONFLICT, "there is a workspace %s already; delete it first", name);
    if (from->sandbox[0] != '\0' && is_taken(all, from->sandbox))
        return err_set(e, ERR_CONFLICT, "the sandbox %s is that of another workspace",
                       from->sandbox);
    return 0;
}

void workspace_adopt(struct workspaces *all, const char *key, const char *name,
                     const struct workspace_envelope *from, engine_done_cb *cb, void *arg)
{
    struct workspace_make m = {
        .spec = from->spec, .backend = from->backend, .policy = from->policy};
    char owner[ARCHIVE_OWNER_MAX + 1];
    struct workspace *w;
    struct op *o;
    struct err e;

    if (check(all, key, name, from, &e) < 0 ||
        lease_insert(all, key, name, &m, WS_DELETING, &w, &e) < 0) {
        cb(arg, &e);
        return;
    }
    w->epoch = from->epoch;
    w->route = from->route;
    if (w->backend->kind->local &&
        engine_get((struct ref){all->o.engine, key, from->sandbox}) != NULL)
        str_fmt(w->sandbox, sizeof(w->sandbox), "%.128s", from->sandbox);
    if (from->digest[0] == '\0') {
        complete(w, "", cb, arg);
        return;
    }
    w->adopting = true;
    lease_owner(w->seq, owner);
    o = lease_op(w, WS_OP_NONE);
    o->cb = cb;
    o->arg = arg;
    engine_archive_adopt(all->o.engine, key, owner, from->space, from->digest, on_adopted, o);
}
