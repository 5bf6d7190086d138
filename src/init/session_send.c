/* session_send.c - the bytes of a call on their way to the shell, see session.h. */
#include <errno.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session.h"

static void send_ready(struct loop_io *io, uint32_t events)
{
    (void)events;
    session_send(CONTAINER_OF(io, struct session, send.io));
}

static void send_later(struct session *s)
{
    struct err e;

    if (s->send.io.cb == NULL &&
        loop_io_start(s->all->procs->loop, &s->send.io, s->send.fd, EPOLLOUT, send_ready, &e) < 0)
        session_end(s, "out of memory");
}

/* Whoever does not read is for a timeout to stop. */
void session_send(struct session *s)
{
    struct call *c = s->call;

    while (c != NULL && c->sent < c->bytes.len) {
        ssize_t n = write(s->send.fd, buf_data(&c->bytes) + c->sent, c->bytes.len - c->sent);

        if (n < 0 && errno == EAGAIN) {
            send_later(s);
            return;
        }
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    loop_io_stop(s->all->procs->loop, &s->send.io);
}
