/* channel.c - what init and the shell of a session say to each other (shell/call.h): calls on
 * their way to it, and its replies.
 *
 * At most one reply per call is taken, and only in a state that listens (life.c). */
#include <errno.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session/session.h"

#define DROPS_MAX 16 /* times REPLY_MAX: what a pipe holds */

static void reply_ready(struct loop_io *io, uint32_t events);

int channel_open(struct session *s, struct err *e)
{
    if (s->reply.fd < 0)
        s->reply.fd = session_dir_replies(&s->dir, e);
    if (s->send.fd < 0)
        s->send.fd = session_dir_calls(&s->dir, e);
    if (s->reply.fd < 0 || s->send.fd < 0)
        return -1;
    if (s->reply.io.cb != NULL)
        return 0;
    return loop_io_start(s->all->procs->loop, &s->reply.io, s->reply.fd, EPOLLIN, reply_ready, e);
}

void channel_close(struct session *s)
{
    loop_io_stop(s->all->procs->loop, &s->reply.io);
    drop_fd(&s->reply.fd);
    buf_free(&s->reply.text);
    loop_io_stop(s->all->procs->loop, &s->send.io);
    drop_fd(&s->send.fd);
    for (int i = 0; i < 2; i++)
        drop_fd(&s->outputs[i].fd);
}

/* ---- calls ---- */

static void send_ready(struct loop_io *io, uint32_t events)
{
    (void)events;
    channel_send(CONTAINER_OF(io, struct session, send.io));
}

/* A shell that does not read is interrupted when the time of the call is over. */
void channel_send(struct session *s)
{
    struct loop *loop = s->all->procs->loop;
    struct call *c = s->call;
    struct err e;

    while (c != NULL && c->sent < c->bytes.len) {
        ssize_t n = write(s->send.fd, buf_data(&c->bytes) + c->sent, c->bytes.len - c->sent);

        if (n < 0 && errno == EAGAIN) {
            if (s->send.io.cb == NULL &&
                loop_io_start(loop, &s->send.io, s->send.fd, EPOLLOUT, send_ready, &e) < 0)
                session_fail(s, "out of memory");
            return;
        }
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    loop_io_stop(loop, &s->send.io);
}

/* ---- replies ---- */

static void parse(struct session *s)
{
    static const enum session_event events[REPLY_KINDS] = {
        [REPLY_READY] = ON_READY, [REPLY_DONE] = ON_DONE,  [REPLY_LEFT] = ON_LEFT,
        [REPLY_EXIT] = ON_EXIT,   [REPLY_QUIET] = ON_EXIT,
    };

    while (s->reply.fd >= 0 && session_listens(s->state) && s->reply.text.len > 0) {
        struct session_news n = {0};
        size_t used;
        int ret = reply_read(buf_data(&s->reply.text), s->reply.text.len, &n.reply, &used);

        if (ret < 0)
            session_fail(s, "the shell sent a malformed reply");
        if (ret <= 0)
            return;
        buf_consume(&s->reply.text, used);
        session_event(s, events[n.reply.kind], &n);
    }
}

/* While the FIFO is watched everything in it was read already. */
void channel_drop(struct session *s)
{
    char drop[REPLY_MAX];

    buf_clear(&s->reply.text);
    for (int i = 0; s->reply.io.cb == NULL && i < DROPS_MAX; i++)
        if (read(s->reply.fd, drop, sizeof(drop)) <= 0)
            return;
}

void channel_hear(struct session *s)
{
    size_t room = REPLY_MAX - s->reply.text.len;
    char *at;
    ssize_t n;

    if (s->reply.fd < 0)
        return;
    at = buf_room(&s->reply.text, room);
    n = at != NULL ? read(s->reply.fd, at, room) : -1;
    if (n > 0)
        buf_added(&s->reply.text, (size_t)n);
    if (session_listens(s->state))
        parse(s);
    else
        buf_clear(&s->reply.text);
}

static void reply_ready(struct loop_io *io, uint32_t events)
{
    struct session *s = CONTAINER_OF(io, struct session, reply.io);
    bool listened = session_listens(s->state);

    (void)events;
    channel_hear(s);
    if (!listened)
        loop_io_stop(s->all->procs->loop, io);
}
