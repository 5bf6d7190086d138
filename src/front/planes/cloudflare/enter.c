/* enter.c - from the id in a path to a sandbox that runs.
 *
 * An id is a name within its key: the first call that uses it makes the sandbox, one that
 * sleeps is woken, and one that was stopped meanwhile is booted again. */
#include <stdlib.h>

#include "front/planes/cloudflare/inside.h"

#define BOOTS_MAX 2 /* of one call: what dies as soon as it runs is not booted for ever */

struct entry {
    struct call *c;
    int boots;
    bool fresh; /* it was not there when the call came */
    void (*go)(struct call *c, const void *in);
};

const char *bridge_id(const struct call *c)
{
    const struct sandbox *s = engine_by_name(c->plane->engine, c->key, call_param(c, 0));

    return s == NULL ? "" : s->id;
}

/* The engine has said its last of this entry. */
static void arrive(struct entry *y, const struct err *e)
{
    if (call_told(y->c)) {
        if (e != NULL)
            call_fail(y->c, e);
        else
            y->go(y->c, y->c->in);
    }
    free(y);
}

/* ---- a new one ---- */

static void owned(void *arg, const struct init_exit *m)
{
    (void)m;
    arrive(arg, NULL);
}

static void not_owned(void *arg, const struct err *e)
{
    arrive(arg, e);
}

/* Root works here, and git refuses to in what is somebody else's. */
static void own_workspace(struct entry *y, const struct sandbox *s)
{
    static const struct process_ops ops = {.on_exit = owned, .on_fail = not_owned};
    static const char *const argv[] = {"chown", BRIDGE_USER ":" BRIDGE_USER, BRIDGE_ROOT, NULL};
    struct process_opts o = {.argv = argv, .user = BRIDGE_USER, .cwd = "/", .quiet = true};

    process_run(y->c->plane->engine, y->c->key, s->id, &o, true, &ops, y);
}

/* ---- one that may have to be made or woken ---- */

static void on_there(void *arg, const struct sandbox *s, const struct err *e)
{
    struct entry *y = arg;
    struct call *c = y->c;

    if (s == NULL)
        arrive(y, e);
    else if (s->state != SANDBOX_RUNNING && c->r != NULL && y->boots++ < BOOTS_MAX)
        engine_resume(c->plane->engine, c->key, s->id, RESUME_AS_MADE, 0, on_there, y);
    else if (y->fresh)
        own_workspace(y, s);
    else
        arrive(y, NULL);
}

static void wait_for_it(struct call *c, bool fresh, void (*go)(struct call *c, const void *in))
{
    struct create_opts o = {.key = c->key,
                            .template = c->plane->config->bridge_template,
                            .idle_ms = c->plane->config->bridge_idle_ms,
                            .auto_resume = true};
    struct entry *y = malloc(sizeof(*y));
    struct err e;

    if (y == NULL) {
        err_set(&e, ERR_INTERNAL, "out of memory");
        call_fail(c, &e);
        return;
    }
    *y = (struct entry){.c = c, .fresh = fresh, .go = go};
    call_expect(c, &call_pending, NULL);
    engine_named(c->plane->engine, call_param(c, 0), &o, on_there, y);
}

void bridge_look(struct call *c, const void *in, void (*go)(struct call *c, const void *in))
{
    struct err e;

    if (*bridge_id(c) != '\0') {
        bridge_enter(c, in, go);
        return;
    }
    err_set(&e, ERR_NOT_FOUND, "there is nothing here: this sandbox has not been used");
    call_fail(c, &e);
}

void bridge_enter(struct call *c, const void *in, void (*go)(struct call *c, const void *in))
{
    const struct sandbox *s = engine_by_name(c->plane->engine, c->key, call_param(c, 0));

    call_keep_input(c);
    if (s != NULL && s->state == SANDBOX_RUNNING)
        go(c, in);
    else
        wait_for_it(c, s == NULL, go);
}
