/* cove.c - the backend `cove`: sandboxes of this server's own engine.
 *
 * A sandbox carries its mark in the data of its plane, so that one that was made for a row which
 * was never written is found at the next start. It has no lifetime of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives.h"
#include "front/engine/process.h"
#include "front/workspace/backend.h"
#include "mem/mem.h"

struct cove {
    struct backend head;
    struct engine *engine;
    struct loop *loop;
    struct list asks; /* under way */
};

/* One call of the engine, and who is to be told. */
struct ask {
    struct list link;
    struct cove *b;
    struct loop_later later;
    char key[ENGINE_KEY_MAX + 1], id[ENGINE_ID_MAX + 1], mark[BACKEND_MARK_MAX + 1];
    engine_done_cb *done;
    backend_made_cb *made;
    backend_archived_cb *archived;
    backend_busy_cb *busy;
    bool found;
    void *arg;
};

static struct ask *ask_new(struct backend *head, const char *key, const char *id, void *arg)
{
    struct cove *b = CONTAINER_OF(head, struct cove, head);
    struct ask *a = mem_zeroed(1, sizeof(*a));

    a->b = b;
    a->arg = arg;
    str_fmt(a->key, sizeof(a->key), "%s", key);
    str_fmt(a->id, sizeof(a->id), "%.32s", id);
    list_add_tail(&b->asks, &a->link);
    return a;
}

static void ask_free(struct ask *a)
{
    loop_undefer(&a->later);
    list_del(&a->link);
    free(a);
}

static struct ref ref_of(const struct ask *a)
{
    return (struct ref){a->b->engine, a->key, a->id};
}

static void tell_done(struct ask *a, const struct err *e)
{
    engine_done_cb *cb = a->done;
    void *arg = a->arg;

    ask_free(a);
    cb(arg, e);
}

static void done_later(struct loop_later *l)
{
    tell_done(CONTAINER_OF(l, struct ask, later), NULL);
}

static int cove_open(const struct backend_opts *o, struct backend **ret, struct err *e)
{
    struct cove *b = mem_zeroed(1, sizeof(*b));

    (void)e;
    b->head.kind = &backend_cove;
    b->engine = o->engine;
    b->loop = o->loop;
    list_init(&b->asks);
    *ret = &b->head;
    return 0;
}

/* The engine is freed before: what it had under way calls nothing any more. */
static void cove_free(struct backend *head)
{
    struct cove *b = CONTAINER_OF(head, struct cove, head);
    struct ask *a;

    while ((a = LIST_FIRST(&b->asks, struct ask, link)) != NULL)
        ask_free(a);
    free(b);
}

static void on_made(void *arg, const struct sandbox *s, const struct err *e)
{
    struct ask *a = arg;
    backend_made_cb *cb = a->made;
    void *cb_arg = a->arg;
    char id[ENGINE_ID_MAX + 1] = "";

    if (s != NULL)
        str_fmt(id, sizeof(id), "%s", s->id);
    ask_free(a);
    cb(cb_arg, s != NULL ? id : NULL, e);
}

static struct create_opts options(const struct backend_spec *s)
{
    struct create_opts o = *s->create;

    o.key = s->key;
    o.name = NULL;
    o.plane = s->mark;
    o.timeout_ms = 0;
    o.idle_ms = 0;
    o.auto_resume = true;
    return o;
}

static void cove_create(struct backend *b, const struct backend_spec *s, backend_made_cb *cb,
                        void *arg)
{
    struct ask *a = ask_new(b, s->key, "", arg);
    struct create_opts o = options(s);

    a->made = cb;
    engine_create(a->b->engine, &o, on_made, a);
}

static void cove_restore(struct backend *b, const struct backend_spec *s, backend_made_cb *cb,
                         void *arg)
{
    struct ask *a = ask_new(b, s->key, "", arg);
    struct create_opts o = options(s);
    struct archive_restore r = {
        .owner = s->owner, .digest = s->digest, .any_base = s->any_base, .create = &o};

    a->made = cb;
    engine_archive_restore(a->b->engine, s->key, &r, on_made, a);
}

static void cove_resume(struct backend *b, const char *key, const char *id, backend_made_cb *cb,
                        void *arg)
{
    struct ask *a = ask_new(b, key, id, arg);

    a->made = cb;
    engine_connect(ref_of(a), true, 0, on_made, a);
}

static void on_archived(void *arg, const struct archive *got, const struct err *e)
{
    struct ask *a = arg;
    backend_archived_cb *cb = a->archived;
    void *cb_arg = a->arg;
    struct backend_archive out;

    ask_free(a);
    if (got != NULL)
        out = (struct backend_archive){
            .digest = got->digest, .bytes = got->bytes, .entries = got->entries};
    cb(cb_arg, got != NULL ? &out : NULL, e);
}

static void cove_archive(struct backend *b, const char *key, const char *id, const char *owner,
                         const char *spec, backend_archived_cb *cb, void *arg)
{
    struct ask *a = ask_new(b, key, id, arg);
    struct archive_opts o = {.owner = owner, .spec = spec};

    a->archived = cb;
    engine_archive(ref_of(a), &o, on_archived, a);
}

static void on_paused(void *arg, const struct sandbox *s, const struct err *e)
{
    (void)s;
    tell_done(arg, e);
}

static void cove_pause(struct backend *b, const char *key, const char *id, engine_done_cb *cb,
                       void *arg)
{
    struct ask *a = ask_new(b, key, id, arg);
    const struct sandbox *s = engine_get(ref_of(a));

    a->done = cb;
    if (s != NULL && (s->state == SANDBOX_PAUSED || s->state == SANDBOX_STOPPED))
        loop_defer(a->b->loop, &a->later, done_later);
    else
        engine_pause(ref_of(a), true, on_paused, a);
}

static void on_removed(void *arg, const struct err *e)
{
    tell_done(arg, e != NULL && e->kind != ERR_NOT_FOUND ? e : NULL);
}

static void cove_remove(struct backend *b, const char *key, const char *id, engine_done_cb *cb,
                        void *arg)
{
    struct ask *a = ask_new(b, key, id, arg);

    a->done = cb;
    engine_delete(ref_of(a), on_removed, a);
}

/* ---- what a kill interrupted ---- */

static void find_marked(void *arg, const struct sandbox *s)
{
    struct ask *a = arg;

    if (a->found || strcmp(s->key, a->key) != 0 || strcmp(s->plane, a->mark) != 0)
        return;
    a->found = true;
    str_fmt(a->id, sizeof(a->id), "%s", s->id);
}

static void undo_next(struct loop_later *l);

static void on_undone(void *arg, const struct err *e)
{
    struct ask *a = arg;

    if (e != NULL && e->kind != ERR_NOT_FOUND)
        tell_done(a, e);
    else
        loop_defer(a->b->loop, &a->later, undo_next);
}

static void undo_next(struct loop_later *l)
{
    struct ask *a = CONTAINER_OF(l, struct ask, later);

    a->found = false;
    engine_each(a->b->engine, find_marked, a);
    if (a->found)
        engine_delete(ref_of(a), on_undone, a);
    else
        tell_done(a, NULL);
}

static void cove_undo(struct backend *b, const char *key, const char *mark, engine_done_cb *cb,
                      void *arg)
{
    struct ask *a = ask_new(b, key, "", arg);

    a->done = cb;
    str_fmt(a->mark, sizeof(a->mark), "%.128s", mark);
    loop_defer(a->b->loop, &a->later, undo_next);
}

/* ---- background processes ---- */

static void look(void *arg, const struct process_info *p)
{
    struct ask *a = arg;

    a->found = a->found || p->state == PROCESS_RUNNING;
}

static void on_looked(void *arg, const struct err *e)
{
    struct ask *a = arg;
    backend_busy_cb *cb = a->busy;
    void *cb_arg = a->arg;
    bool found = a->found;

    ask_free(a);
    cb(cb_arg, found, e);
}

static void cove_busy(struct backend *b, const char *key, const char *id, backend_busy_cb *cb,
                      void *arg)
{
    struct ask *a = ask_new(b, key, id, arg);

    a->busy = cb;
    process_list(ref_of(a), look, on_looked, a);
}

const struct backend_kind backend_cove = {
    .name = "cove",
    .local = true,
    .archives = true,
    .open = cove_open,
    .free = cove_free,
    .create = cove_create,
    .restore = cove_restore,
    .resume = cove_resume,
    .archive = cove_archive,
    .pause = cove_pause,
    .remove = cove_remove,
    .undo = cove_undo,
    .busy = cove_busy,
};
