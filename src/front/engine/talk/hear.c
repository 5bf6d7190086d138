/* hear.c - what an init says: taken apart, held against what may come, and
 * told to whoever talks. None of it is believed. */
#include "front/engine/talk/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"

static void line_nonsense(struct line *c, const struct err *what)
{
    struct err e;

    err_set(&e, ERR_UNRESPONSIVE, "sandbox %s: invalid answer from its init: %s", c->peer->id,
            what->msg);
    line_fail(c, &e);
}

static void heard_hello(struct line *c, uint16_t type, const union talk_msg *m)
{
    struct err e;

    if (type != INIT_HELLO) {
        err_set(&e, ERR_INVALID, "no hello");
        line_nonsense(c, &e);
        return;
    }
    c->peer->version = m->init_hello.version;
    if (!init_is_understood(m->init_hello.version)) {
        err_set(&e, ERR_UNSUPPORTED,
                "sandbox %s was started by another version of Cove (its init speaks protocol %u, "
                "this one %u to %u); it can be listed, stopped and deleted",
                c->peer->id, m->init_hello.version, INIT_VERSION_OLDEST, INIT_VERSION);
        line_fail(c, &e);
        return;
    }
    c->state = LINE_OPEN;
    if (c->talk != NULL)
        talk_arm(c->talk);
    line_push(c);
}

static enum talk_step step_of(const struct talk_kind *k, uint16_t type)
{
    if (type == INIT_FAIL)
        return TALK_LAST;
    for (size_t i = 0; i < ARRAY_LEN(k->answers); i++)
        if (k->answers[i].type == type)
            return k->answers[i].step;
    return 0;
}

/* Failures that an init may speak of; what else it claims is our judgement to make. */
static const bool init_may_say[ERR_KIND_COUNT] = {
    [ERR_INVALID] = true,      [ERR_DENIED] = true,      [ERR_NOT_FOUND] = true,
    [ERR_TIMEOUT] = true,      [ERR_CONFLICT] = true,    [ERR_GONE] = true,
    [ERR_PRECONDITION] = true, [ERR_TOO_LARGE] = true,   [ERR_CANNOT_START] = true,
    [ERR_LIMIT] = true,        [ERR_UNSUPPORTED] = true, [ERR_DISK_FULL] = true,
    [ERR_UNAVAILABLE] = true,
};

void talk_failure(const struct init_fail *m, struct err *ret)
{
    enum err_kind kind = err_from_code(m->code);

    err_set(ret, init_may_say[kind] ? kind : ERR_INTERNAL, "%s", m->message);
    ret->sys = (int)m->sys;
}

static void said_fail(struct talk *t, const struct init_fail *m)
{
    struct err e;

    talk_failure(m, &e);
    t->ops->on_fail(t, &e);
}

/* The connection is given back before the last answer is told, so that whoever
 * is told may use it for the next request. */
static int deliver(struct line *c, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct talk *t = c->talk;
    enum talk_step step = step_of(t->kind, type);

    if (step == 0)
        return err_set(e, ERR_INVALID, "an answer of type %u to a request of type %u", type,
                       t->kind->request);
    if (step == TALK_MORE) {
        t->heard = true;
        talk_count(t, false);
        talk_arm(t);
        return t->ops->on_msg(t, type, m, e);
    }
    talk_detach(t);
    line_release(c);
    if (type == INIT_FAIL)
        said_fail(t, &m->init_fail);
    else if (t->ops->on_msg(t, type, m, e) < 0) {
        t->why = *e;
        err_set(&t->why, ERR_UNRESPONSIVE, "sandbox %s: invalid answer from its init: %s",
                t->peer->id, e->msg);
        loop_defer(t->hub->loop, &t->later, talk_tell);
    }
    return 0;
}

static int frame(struct line *c, const struct wire_head *head, const char *body, struct err *e)
{
    const struct wire_msg *m = init_msg(head->type);
    union talk_msg msg;

    if (m == NULL)
        return err_set(e, ERR_INVALID, "an unknown message %u", head->type);
    if (wire_get(m, body, head->len, &msg, e) < 0)
        return -1;
    if (c->state == LINE_SILENT) {
        heard_hello(c, head->type, &msg);
        return 0;
    }
    if (c->talk == NULL)
        return err_set(e, ERR_INVALID, "%s without a request", m->name);
    if (head->seq != c->talk->seq)
        return err_set(e, ERR_INVALID, "%s to request %u instead of %u", m->name, head->seq,
                       c->talk->seq);
    return deliver(c, head->type, &msg, e);
}

static int too_long(const struct buf *in, struct err *e)
{
    struct wire_head head;

    if (in->len < WIRE_HEAD)
        return 0;
    memcpy(&head, buf_data(in), WIRE_HEAD);
    return head.len > TALK_FRAME_MAX ? err_set(e, ERR_INVALID, "a message of %u bytes", head.len)
                                     : 0;
}

/* Delivers every whole frame of `in`. A callback may pause, end or fail the
 * talk, or begin another one on this connection. */
static void parse(struct line *c, struct buf *in)
{
    struct wire_head head;
    const char *body;
    struct err e;

    c->inside = true;
    while (c->state != LINE_DEAD && !(c->talk != NULL && c->talk->paused)) {
        int r = too_long(in, &e) < 0 ? -1 : wire_peek(in, &head, &body, &e);

        if (r == 0)
            break;
        if (r < 0 || frame(c, &head, body, &e) < 0) {
            line_nonsense(c, &e);
            break;
        }
        buf_consume(in, WIRE_HEAD + head.len);
    }
    c->inside = false;
}

/* After parsing: what is left is the connection's to keep, or it is gone. */
static void settle(struct line *c, const struct buf *in)
{
    struct err e;

    if (c->state == LINE_DEAD) {
        line_free(c);
        return;
    }
    buf_clear(&c->left);
    if (in->len == 0) {
        buf_free(&c->left);
        return;
    }
    if (buf_add(&c->left, buf_data(in), in->len) < 0) {
        err_set(&e, ERR_INTERNAL, "sandbox %s: out of memory", c->peer->id);
        line_fail(c, &e);
    }
}

static void line_parse(struct line *c, size_t fresh)
{
    /* A view of the scratch, never grown and never freed. */
    struct buf in = {.mem = c->hub->scratch, .len = c->left.len + fresh, .max = TALK_IN_MAX};

    parse(c, &in);
    settle(c, &in);
}

void line_again(struct loop_later *l)
{
    struct line *c = CONTAINER_OF(l, struct line, again);

    if (c->left.len > 0)
        memcpy(c->hub->scratch, buf_data(&c->left), c->left.len);
    line_parse(c, 0);
}

static void line_read(struct line *c)
{
    char *scratch = c->hub->scratch;
    struct err e;
    ssize_t n;

    if (c->again.queued) /* what came before is parsed first; epoll will say it again */
        return;
    if (c->left.len > 0)
        memcpy(scratch, buf_data(&c->left), c->left.len);
    /* No ancillary buffer: an fd that an init sends is dropped by the kernel. */
    n = recv(c->fd, scratch + c->left.len, TALK_IN_MAX - c->left.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        err_set(&e, ERR_GONE, "sandbox %s: its init closed the connection", c->peer->id);
        line_fail(c, &e);
        return;
    }
    line_parse(c, (size_t)n);
}

void line_on_io(struct loop_io *io, uint32_t events)
{
    struct line *c = CONTAINER_OF(io, struct line, io);

    if (events & EPOLLOUT) {
        c->inside = true;
        line_drain(c);
        c->inside = false;
        if (c->state == LINE_DEAD) {
            line_free(c);
            return;
        }
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    /* A hang-up is reported whether we listen or not. What the peer still had to
     * say is read after the pause; until then the socket is not watched. */
    if (c->talk != NULL && c->talk->paused)
        loop_io_stop(c->hub->loop, &c->io);
    else
        line_read(c);
}
