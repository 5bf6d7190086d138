/* enter.c - from the id in a path to a sandbox that runs.
 *
 * An id is a name within its key: the first call that uses it makes the sandbox, one that
 * sleeps is woken, and one that was stopped meanwhile is booted again. */
#include <stdlib.h>

#include "base/str.h"
#include "front/engine/file.h"
#include "front/planes/cloudflare/internal.h"
#include "mem/mem.h"

#define BOOTS_MAX 2 /* of one call: a sandbox that dies at once is not booted again and again */

struct entry {
    struct call *c;
    int boots;
    void (*go)(struct call *c, const void *in);
};

static const struct sandbox *named(const struct call *c)
{
    return engine_by_name(c->ref.engine, c->ref.key, call_param(c, 0));
}

int cloudflare_resolve_name(struct call *c, struct err *e)
{
    const struct sandbox *s = named(c);

    (void)e;
    call_aim(c, NULL, s == NULL ? "" : s->id);
    return 0;
}

/* The engine has said its last of this entry. */
static void arrive(struct entry *y, const struct err *e)
{
    struct call *c = y->c;
    struct err gone;

    if (e == NULL)
        cloudflare_issued_forget(c);
    if (call_told(c)) {
        if (e == NULL && cloudflare_resolve_name(c, &gone) == 0 && *c->ref.id == '\0')
            e = (err_set(&gone, ERR_GONE, "sandbox %s was deleted", call_param(c, 0)), &gone);
        if (e != NULL)
            call_fail(c, e);
        else
            y->go(c, c->in);
    }
    free(y);
}

/* ---- a new one ---- */

struct preparing {
    struct engine *g;
    char id[ENGINE_ID_MAX + 1];
    engine_done_cb *done;
    void *arg;
};

static void on_directory(void *arg, const struct file_info *f)
{
    (void)arg;
    (void)f;
}

/* Errors are ignored: the next call reports them. */
static void on_ready(void *arg, const struct file_result *d, const struct err *e)
{
    struct preparing *p = arg;

    (void)d;
    (void)e;
    p->done(p->arg, NULL);
    free(p);
}

/* An image need not have it. */
static void on_owned(void *arg, const struct file_result *d, const struct err *e)
{
    static const struct file_work_ops ops = {.on_entry = on_directory, .on_done = on_ready};
    struct preparing *p = arg;
    const struct sandbox *s = engine_find(p->g, p->id);

    if (e != NULL && e->kind == ERR_NOT_FOUND && s != NULL)
        file_mkdir(&(struct file_at){sandbox_ref(p->g, s), CLOUDFLARE_ROOT, CLOUDFLARE_USER, false},
                   false, FILE_MODE_KEEP, &ops, p);
    else
        on_ready(p, d, e);
}

/* Commands run as root, and git refuses to work in directories of other users. */
static void own_workspace(struct engine *g, const struct sandbox *s, engine_done_cb *done,
                          void *arg)
{
    static const struct file_work_ops ops = {.on_entry = on_directory, .on_done = on_owned};
    struct preparing *p = mem_zeroed(1, sizeof(*p));

    *p = (struct preparing){.g = g, .done = done, .arg = arg};
    str_fmt(p->id, sizeof(p->id), "%s", s->id);
    file_chown(&(struct file_at){sandbox_ref(g, s), CLOUDFLARE_ROOT, CLOUDFLARE_USER, false}, "0:0",
               false, &ops, p);
}

/* ---- one that may have to be made or woken ---- */

static void ask(struct entry *y);

/* A call that came after a delete of the sandbox being created creates another. */
static void on_there(void *arg, const struct sandbox *s, const struct err *e)
{
    struct entry *y = arg;
    struct call *c = y->c;

    if (s == NULL && e->kind == ERR_GONE && y->boots == 0 && c->r != NULL)
        ask(y);
    else if (s != NULL && s->state != SANDBOX_RUNNING && c->r != NULL && y->boots++ < BOOTS_MAX)
        engine_resume(ref_with(c->ref, s->id), RESUME_AS_MADE, 0, on_there, y);
    else
        arrive(y, e);
}

static void ask(struct entry *y)
{
    struct call *c = y->c;
    struct create_opts o = {.key = c->ref.key,
                            .prepare = own_workspace,
                            .template = c->plane->config->cloudflare_template,
                            .idle_ms = c->plane->config->cloudflare_idle_ms,
                            .guarded = true,
                            .auto_resume = true};

    engine_named(c->plane->engine, call_param(c, 0), &o, on_there, y);
}

static void wait_for_it(struct call *c, void (*go)(struct call *c, const void *in))
{
    struct entry *y = mem_zeroed(1, sizeof(*y));

    *y = (struct entry){.c = c, .go = go};
    call_expect(c, &call_pending, NULL);
    ask(y);
}

void cloudflare_look(struct call *c, const void *in, void (*go)(struct call *c, const void *in))
{
    struct err e;

    if (named(c) != NULL) {
        cloudflare_enter(c, in, go);
        return;
    }
    err_set(&e, ERR_NOT_FOUND, "the sandbox does not exist: this id has not been used");
    call_fail(c, &e);
}

void cloudflare_enter(struct call *c, const void *in, void (*go)(struct call *c, const void *in))
{
    const struct sandbox *s = named(c);
    struct err e;

    call_keep_input(c);
    cloudflare_resolve_name(c, &e); /* a body may have come since */
    if (s != NULL && s->state == SANDBOX_RUNNING)
        go(c, in);
    else
        wait_for_it(c, go);
}
