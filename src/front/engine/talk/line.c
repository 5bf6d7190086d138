/* line.c - connections to inits: made, kept for the next request, written to
 * without waiting, and closed. */
#include "front/engine/talk/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/own.h"
#include "base/str.h"

#define TALK_KEEP_OUT (64u << 10) /* a larger send buffer is given back once empty */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16; Debian 12's headers do not know it */
#endif

void line_free(struct line *c)
{
    loop_undefer(&c->again);
    buf_free(&c->left);
    buf_free(&c->out);
    free(c);
}

static void line_leave_idle(struct line *c)
{
    if (list_empty(&c->idle))
        return;
    list_del(&c->idle);
    c->peer->nidle--;
    c->hub->nidle--;
    loop_timer_stop(c->hub->loop, &c->timer);
}

void line_close(struct line *c)
{
    if (c->state == LINE_DEAD)
        return;
    line_leave_idle(c);
    c->state = LINE_DEAD;
    c->hub->nconns--;
    c->peer->nlines--;
    loop_timer_stop(c->hub->loop, &c->timer);
    loop_io_stop(c->hub->loop, &c->io);
    drop_fd(&c->fd);
    if (!c->inside)
        line_free(c);
}

static void line_idle_over(struct loop_timer *t)
{
    line_close(CONTAINER_OF(t, struct line, timer));
}

void line_release(struct line *c)
{
    struct talk_peer *p = c->peer;

    c->talk = NULL;
    if (c->out.len > 0 || c->fed || p->nidle >= TALK_IDLE_MAX || c->hub->nidle >= TALK_IDLE_TOTAL) {
        line_close(c);
        return;
    }
    loop_io_set(c->hub->loop, &c->io, EPOLLIN);
    list_add_head(&p->idle, &c->idle);
    p->nidle++;
    c->hub->nidle++;
    if (loop_timer_set(c->hub->loop, &c->timer, TALK_IDLE_MS, line_idle_over) < 0)
        line_close(c);
}

void line_fail(struct line *c, const struct err *why)
{
    if (c->talk != NULL)
        talk_fail(c->talk, why);
    else
        line_close(c);
}

/* ---- out ---- */

/* Until the version is known nothing is asked: an init of another one might
 * understand something else. */
static bool line_may_send(const struct line *c)
{
    bool begun = c->talk != NULL && c->talk->sent;

    if (c->peer->held && !begun)
        return false;
    return c->state == LINE_OPEN ||
           (c->state == LINE_SILENT && init_is_understood(c->peer->version));
}

void line_wait(struct line *c)
{
    const struct talk *t = c->talk;
    bool in = t == NULL || !t->paused;
    bool out = line_may_send(c) && (c->out.len > 0 || (t != NULL && t->fed));

    loop_io_set(c->hub->loop, &c->io,
                (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0));
}

int line_flush(struct line *c, struct err *e)
{
    while (c->out.len > 0 && line_may_send(c)) {
        ssize_t n = send(c->fd, buf_data(&c->out), c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            return err_set(e, ERR_GONE, "sandbox %s: its init closed the connection", c->peer->id);
        buf_consume(&c->out, (size_t)n);
        if (c->talk != NULL)
            c->talk->sent = true;
    }
    if (c->out.len == 0 && c->out.cap > TALK_KEEP_OUT)
        buf_free(&c->out);
    return 0;
}

void line_push(struct line *c)
{
    struct err e;

    if (line_flush(c, &e) < 0)
        line_fail(c, &e);
    else
        line_wait(c);
}

void line_drain(struct line *c)
{
    struct talk *t;

    line_push(c);
    t = c->talk;
    if (c->state == LINE_DEAD || t == NULL || !t->fed || c->out.len > 0)
        return;
    t->fed = false;
    line_wait(c);
    if (t->ops->on_drain != NULL)
        t->ops->on_drain(t);
}

/* ---- connecting ---- */

static void line_retry(struct loop_timer *t);

int talk_connect(const struct talk_hub *h, int fd, const char *id)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    str_fmt(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", h->run_fd, id);
    return connect(fd, (struct sockaddr *)&a, sizeof(a));
}

int talk_unreachable(const char *id, int sys, struct err *e)
{
    if (sys == ECONNREFUSED || sys == ENOENT)
        return err_set(e, ERR_GONE, "sandbox %s: its init has ended", id);
    return err_set(e, ERR_UNRESPONSIVE, "sandbox %s: its init cannot be reached: %s", id,
                   strerror(sys));
}

static int line_try(struct line *c, struct err *e)
{
    int off = 0;

    /* Before anybody can send one: an fd is taken only where fdpass.c asked for it. */
    setsockopt(c->fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
    if (talk_connect(c->hub, c->fd, c->peer->id) < 0) {
        if (errno == EAGAIN)
            return loop_timer_set(c->hub->loop, &c->timer, TALK_RETRY_MS, line_retry) < 0
                       ? err_set(e, ERR_INTERNAL, "out of memory")
                       : 0;
        return talk_unreachable(c->peer->id, errno, e);
    }
    c->state = LINE_SILENT;
    return loop_io_start(c->hub->loop, &c->io, c->fd, EPOLLIN, line_on_io, e);
}

static void line_retry(struct loop_timer *t)
{
    struct line *c = CONTAINER_OF(t, struct line, timer);
    struct err e;

    if (line_try(c, &e) < 0)
        line_fail(c, &e);
    else if (c->state == LINE_SILENT)
        line_push(c);
}

static struct line *line_new(struct talk_peer *p, struct err *e)
{
    struct line *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    *c = (struct line){.hub = p->hub, .peer = p, .io.fd = -1};
    list_init(&c->idle);
    buf_init(&c->left, TALK_IN_MAX);
    buf_init(&c->out, TALK_OUT_MAX);
    p->hub->nconns++;
    p->nlines++;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        err_set(e, ERR_UNAVAILABLE, "too many connections to sandboxes: %s; try again",
                strerror(errno));
    if (c->fd < 0 || line_try(c, e) < 0) {
        line_close(c);
        return NULL;
    }
    return c;
}

struct line *line_get(struct talk_peer *p, struct err *e)
{
    struct line *c = LIST_FIRST(&p->idle, struct line, idle);

    if (c != NULL) {
        line_leave_idle(c);
        return c;
    }
    if (p->nlines < TALK_LINES_MAX)
        return line_new(p, e);
    err_set(e, ERR_LIMIT, "%u calls to sandbox %s are open already; try again", p->nlines, p->id);
    return NULL;
}
