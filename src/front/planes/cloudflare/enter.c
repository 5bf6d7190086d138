/* enter.c - from the id in a path to a sandbox that runs.
 *
 * An id is a name within its key: the first call that uses it makes the sandbox, and
 * one that was stopped meanwhile is booted again. */
#include <stdlib.h>

#include "front/planes/cloudflare/inside.h"

#define BOOTS_MAX 2 /* of one call: what dies as soon as it runs is not booted for ever */

struct entry {
    struct call *c;
    int boots;
    void (*go)(struct call *c, const void *in);
};

const char *bridge_id(const struct call *c)
{
    const struct sandbox *s = engine_by_name(c->plane->engine, c->key, call_param(c, 0));

    return s == NULL ? "" : s->id;
}

static void on_there(void *arg, const struct sandbox *s, const struct err *e)
{
    struct entry *y = arg;
    struct call *c = y->c;

    if (s != NULL && s->state != SANDBOX_RUNNING && c->r != NULL && y->boots++ < BOOTS_MAX) {
        engine_resume(c->plane->engine, c->key, s->id, RESUME_AS_MADE, 0, on_there, y);
        return;
    }
    if (call_told(c)) {
        if (s == NULL)
            call_fail(c, e);
        else
            y->go(c, c->in);
    }
    free(y);
}

static void wait_for_it(struct call *c, void (*go)(struct call *c, const void *in))
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
    *y = (struct entry){.c = c, .go = go};
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
        wait_for_it(c, go);
}
