/* waiter.c - see internal.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

struct waiter *waiter_new(struct engine *g, engine_done_cb *done, engine_sandbox_cb *got, void *arg)
{
    struct waiter *w = mem_zeroed(1, sizeof(*w));

    *w = (struct waiter){.g = g, .done = done, .got = got, .arg = arg};
    list_init(&w->link);
    return w;
}

static void tell_snapshot(struct waiter *w)
{
    const struct snapshot *s = w->failed ? NULL : snap_pub(w->g, w->id);

    if (!w->failed && s == NULL)
        err_set(&w->e, ERR_GONE, "snapshot %s was deleted", w->id);
    w->snapped(w->arg, s, s == NULL ? &w->e : NULL);
}

static void tell(struct loop_later *l)
{
    struct waiter *w = CONTAINER_OF(l, struct waiter, later);
    struct box *b = w->got != NULL && !w->failed ? box_find(w->g, w->id) : NULL;

    list_del(&w->link);
    if (w->got != NULL && !w->failed && b == NULL) {
        err_set(&w->e, ERR_GONE, "sandbox %s was deleted", w->id);
        w->failed = true;
    }
    if (w->snapped != NULL)
        tell_snapshot(w);
    else if (w->got != NULL)
        w->got(w->arg, w->failed ? NULL : &b->pub, w->failed ? &w->e : NULL);
    else
        w->done(w->arg, w->failed ? &w->e : NULL);
    free(w);
}

void waiter_answer(struct waiter *w, const char *id, const struct err *e)
{
    if (w == NULL)
        return;
    w->failed = e != NULL;
    if (e != NULL)
        w->e = *e;
    str_fmt(w->id, sizeof(w->id), "%.*s", (int)KEEPER_ID_MAX, id);
    list_del(&w->link);
    list_add_tail(&w->g->answers, &w->link);
    loop_defer(w->g->loop, &w->later, tell);
}

void waiter_fail(struct waiter *w, enum err_kind kind, const char *fmt, ...)
{
    char text[256];
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(&e, kind, "%s", text);
    waiter_answer(w, "", &e);
}
