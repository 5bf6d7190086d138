/* talk.c - see talk.h. Talks, the peers they are with, and the hub of them all. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/engine/talk/internal.h"

#define TALK_CONNECT_MS 10000 /* to hello, also for talks that have no deadline */

/* ---- the end of a talk ---- */

static void tell_quiet(struct loop_later *l)
{
    struct talk_peer *p = CONTAINER_OF(l, struct talk_peer, quiet);

    if (p->on_quiet != NULL)
        p->on_quiet(p);
}

void talk_count(struct talk *t, bool starting)
{
    struct talk_peer *p = t->peer;

    if (t->starting == starting)
        return;
    t->starting = starting;
    p->nstarts += starting ? 1u : -1u;
    if (p->nstarts == 0 && p->on_quiet != NULL)
        loop_defer(p->hub->loop, &p->quiet, tell_quiet);
}

void talk_detach(struct talk *t)
{
    talk_count(t, false);
    if (t->line != NULL) {
        t->peer->used_ms = clock_real_ms();
        t->peer->nlasting -= t->kind->lasts;
    }
    t->line = NULL;
    list_del(&t->link);
    loop_timer_stop(t->hub->loop, &t->deadline);
}

void talk_tell(struct loop_later *l)
{
    struct talk *t = CONTAINER_OF(l, struct talk, later);
    struct err why = t->why; /* the callback frees the talk */

    t->ops->on_fail(t, &why);
}

void talk_fail(struct talk *t, const struct err *why)
{
    struct line *c = t->line;

    t->why = *why;
    talk_detach(t);
    if (c != NULL) {
        c->talk = NULL;
        line_close(c);
    }
    loop_defer(t->hub->loop, &t->later, talk_tell);
}

static void on_deadline(struct loop_timer *timer)
{
    struct talk *t = CONTAINER_OF(timer, struct talk, deadline);
    struct err e;

    err_set(&e, ERR_UNRESPONSIVE, "sandbox %s: its init did not answer in time", t->peer->id);
    talk_fail(t, &e);
}

/* Our own back-pressure is not the init's silence. */
void talk_arm(struct talk *t)
{
    uint64_t ms = t->deadline_ms;

    if (t->line != NULL && t->line->state != LINE_OPEN && (ms == 0 || ms > TALK_CONNECT_MS))
        ms = TALK_CONNECT_MS;
    if (ms == 0 || t->paused)
        loop_timer_stop(t->hub->loop, &t->deadline);
    else
        loop_timer_set(t->hub->loop, &t->deadline, ms, on_deadline);
}

/* ---- talks ---- */

static int talk_put(struct talk *t, uint16_t type, const void *msg, struct err *e)
{
    struct line *c = t->line;

    if (wire_put(&c->out, init_msg(type), t->seq, msg, e) < 0)
        return -1;
    return line_flush(c, e);
}

void talk_begin(struct talk *t, struct talk_peer *p, const struct talk_kind *kind, const void *msg,
                uint64_t deadline_ms, const struct talk_ops *ops)
{
    struct err e;

    *t = (struct talk){.hub = p->hub, .peer = p, .kind = kind, .ops = ops};
    t->deadline_ms = deadline_ms;
    list_init(&t->link);
    if (kind->lasts && p->nlasting >= TALK_LASTING_MAX)
        err_set(&e, ERR_LIMIT, "%u calls to sandbox %s are waiting already; try again", p->nlasting,
                p->id);
    else
        t->line = line_get(p, &e);
    if (t->line == NULL) {
        talk_fail(t, &e);
        return;
    }
    p->nlasting += kind->lasts;
    list_add_tail(&p->talks, &t->link);
    p->used_ms = clock_real_ms();
    t->line->talk = t;
    t->seq = ++t->line->seq;
    talk_count(t, kind->starts && !p->held);
    if (talk_put(t, kind->request, msg, &e) < 0) {
        talk_fail(t, &e);
        return;
    }
    talk_arm(t);
    line_wait(t->line);
}

void talk_begin_failed(struct talk *t, struct talk_hub *h, const struct talk_ops *ops,
                       const struct err *why)
{
    *t = (struct talk){.hub = h, .ops = ops};
    list_init(&t->link);
    talk_fail(t, why);
}

size_t talk_queued(const struct talk *t)
{
    return t->line == NULL ? 0 : t->line->out.len;
}

size_t talk_send(struct talk *t, uint16_t type, const void *msg)
{
    struct err e;

    if (t->line == NULL)
        return 0;
    t->fed = t->line->fed = true;
    if (talk_put(t, type, msg, &e) < 0) {
        talk_fail(t, &e);
        return 0;
    }
    line_wait(t->line);
    return t->line->out.len;
}

void talk_set_deadline(struct talk *t, uint64_t deadline_ms)
{
    t->deadline_ms = deadline_ms;
    if (t->line != NULL)
        talk_arm(t);
}

static void talk_hear_again(struct talk *t)
{
    struct line *c = t->line;
    struct err e;

    /* The peer hung up during the pause; see line_on_io(). */
    if (c->io.cb == NULL && c->state != LINE_WAITING &&
        loop_io_start(t->hub->loop, &c->io, c->fd, EPOLLIN, line_on_io, &e) < 0) {
        talk_fail(t, &e);
        return;
    }
    if (c->left.len > 0)
        loop_defer(t->hub->loop, &c->again, line_again);
    line_wait(c);
}

void talk_pause(struct talk *t, bool paused)
{
    if (t->line == NULL || t->paused == paused)
        return;
    t->paused = paused;
    talk_arm(t);
    if (paused)
        line_wait(t->line);
    else
        talk_hear_again(t);
}

void talk_end(struct talk *t)
{
    struct line *c = t->line;

    if (t->hub == NULL)
        return;
    loop_undefer(&t->later);
    talk_detach(t);
    if (c != NULL) {
        c->talk = NULL;
        line_close(c);
    }
}

/* ---- peers and the hub ---- */

void talk_peer_init(struct talk_peer *p, struct talk_hub *h, const char *id)
{
    *p = (struct talk_peer){.hub = h, .id = id};
    list_init(&p->talks);
    list_init(&p->idle);
}

void talk_peer_hold(struct talk_peer *p, bool held)
{
    struct talk *t;

    p->held = held;
    LIST_EACH (&p->talks, t, struct talk, link) {
        if (held ? !t->sent : t->kind->starts && !t->heard)
            talk_count(t, !held);
        line_push(t->line);
    }
}

bool talk_peer_waits(const struct talk_peer *p)
{
    for (const struct list *l = p->talks.next; l != &p->talks; l = l->next) {
        const struct talk *t = CONTAINER_OF(l, const struct talk, link);

        if (t->kind->starts && !t->sent)
            return true;
    }
    return false;
}

void talk_peer_refuse(struct talk_peer *p, const struct err *why)
{
    struct talk *t;

    LIST_EACH (&p->talks, t, struct talk, link)
        if (t->kind->starts && !t->sent)
            talk_fail(t, why);
}

void talk_peer_reset(struct talk_peer *p, const struct err *why)
{
    struct talk *t;
    struct line *c;

    while ((t = LIST_FIRST(&p->talks, struct talk, link)) != NULL)
        talk_fail(t, why);
    while ((c = LIST_FIRST(&p->idle, struct line, idle)) != NULL)
        line_close(c);
    p->version = 0;
    p->held = false;
}

struct talk_hub *talk_hub_new(struct loop *loop, int run_fd)
{
    struct talk_hub *h = malloc(sizeof(*h));

    if (h == NULL)
        return NULL;
    h->loop = loop;
    h->run_fd = run_fd;
    h->nconns = h->nidle = 0;
    return h;
}

void talk_hub_free(struct talk_hub *h)
{
    free(h);
}

size_t talk_hub_conns(const struct talk_hub *h)
{
    return h->nconns;
}
