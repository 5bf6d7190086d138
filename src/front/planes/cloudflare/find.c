/* find.c - processes and terminals of a sandbox: all of them, or the one that a path
 * names. A sandbox that was never used has none, and is not made by looking. */
#include "base/own.h"
#include "front/planes/cloudflare/internal.h"
#include "front/planes/cloudflare/process.h"

#define LIST_BYTES_MAX (4u << 20)

/* ---- all ---- */

struct listing {
    struct call *c;
    struct buf rows;
    void (*add)(struct buf *rows, const struct process_info *p);
};

static void listing_drop(void *state)
{
    buf_free(&((struct listing *)state)->rows);
}

static void listed(void *arg, const struct process_info *p)
{
    struct listing *l = arg;

    if (l->c->r != NULL)
        l->add(&l->rows, p);
}

static void list_done(void *arg, const struct err *e)
{
    struct listing *l = arg;

    if (call_told(l->c))
        cloudflare_reply_list(l->c, &l->rows, e);
}

static void list_go(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_list(c->ref, listed, list_done, c->state);
}

void cloudflare_list(struct call *c, const void *in,
                     void (*add)(struct buf *rows, const struct process_info *p))
{
    struct listing *l = call_state(c, sizeof(*l), listing_drop);

    l->c = c;
    l->add = add;
    buf_init(&l->rows, LIST_BYTES_MAX);
    if (*c->ref.id == '\0')
        cloudflare_reply_list(c, &l->rows, NULL);
    else
        cloudflare_enter(c, in, list_go);
}

/* ---- one terminal ---- */

struct search {
    struct call *c;
    void (*then)(struct call *c, const struct process_info *p);
};

/* A process without a screen is none. */
static void found(void *arg, const struct process_info *p, const struct err *e)
{
    struct search *s = arg;
    struct call *c = s->c;
    struct err none;

    if (!call_told(c))
        return;
    if (p != NULL && p->cols != 0) {
        s->then(c, p);
        return;
    }
    err_set(&none, ERR_NOT_FOUND, "Terminal not found");
    call_fail(c, p != NULL || e->kind == ERR_NOT_FOUND ? &none : e);
}

static void find_go(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, call_param(c, 1), found, c->state);
}

void cloudflare_find_terminal(struct call *c, const void *in,
                              void (*then)(struct call *c, const struct process_info *p))
{
    struct search *s;
    struct err e;

    if (cloudflare_check_session(call_param(c, 1), &e) < 0) {
        err_set(&e, ERR_INVALID, "Invalid terminal ID format");
        call_fail(c, &e);
        return;
    }
    s = call_state(c, sizeof(*s), NULL);
    *s = (struct search){c, then};
    cloudflare_look(c, in, find_go);
}
