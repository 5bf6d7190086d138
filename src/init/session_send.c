/* session_send.c - the text of a call on its way to the shell, see session.h.
 *
 * The shell says that it is ready before it opens c, and then waits there for somebody to
 * write. Whoever comes too soon finds nobody: then c is opened for both ends, so that
 * what is written stays, and is let go of only when the shell has taken it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session.h"

#define SEND_MS 2000u        /* for a shell to come to where it reads */
#define SEND_PIPE (64 << 10) /* as pipes are */

static void send_more(struct session *s);

/* The shell reads: what it was given early is with it now. Whoever said something before
 * that was not heard, and nobody since. */
static void send_ready(struct loop_io *io, uint32_t events)
{
    struct session *s = CONTAINER_OF(io, struct session, send.io);
    struct err e;

    (void)events;
    if (s->send.early) {
        s->send.early = false;
        fcntl(s->send.fd, F_SETPIPE_SZ, SEND_PIPE);
        s->state = SESSION_BUSY;
        if (s->stop == 0)
            loop_timer_stop(s->all->procs->loop, &s->timer);
        if (session_listen(s, &e) < 0)
            session_end(s, "it could not be listened to: %s", e.msg);
    }
    send_more(s);
}

static void send_later(struct session *s)
{
    struct err e;

    if (s->send.io.cb == NULL &&
        loop_io_start(s->all->procs->loop, &s->send.io, s->send.fd, EPOLLOUT, send_ready, &e) < 0)
        session_end(s, "out of memory");
}

static void sent(struct session *s)
{
    loop_io_stop(s->all->procs->loop, &s->send.io);
    drop_fd(&s->send.fd);
}

/* An end of the pipe that nobody reads any more is for the reaper, or a timeout, to
 * explain. */
static void send_more(struct session *s)
{
    struct call *c = s->call;

    while (c != NULL && c->sent < c->script.len) {
        ssize_t n = write(s->send.fd, buf_data(&c->script) + c->sent, c->script.len - c->sent);

        if (n > 0)
            c->sent += (size_t)n;
        if (n < 0 && errno != EAGAIN)
            break;
        if (n < 0 || s->send.early) {
            send_later(s);
            return;
        }
    }
    sent(s);
}

/* A paused sandbox is not late. */
static void on_unread(struct loop_timer *t)
{
    struct session *s = CONTAINER_OF(t, struct session, timer);
    uint64_t frozen = groups_frozen_ms(&s->all->procs->groups);

    if (frozen == s->frozen_ms || loop_timer_set(s->all->procs->loop, t, SEND_MS, on_unread) < 0)
        session_end(s, "its shell does not read commands any more");
    s->frozen_ms = frozen;
}

/* It said that it is ready, and waits for a command or is on its way to there. */
static int open_command(struct session *s, struct err *e)
{
    s->send.fd = session_dir_command(&s->dir, false);
    s->send.early = s->send.fd < 0 && errno == ENXIO;
    if (!s->send.early) {
        s->state = SESSION_BUSY;
        return s->send.fd < 0 ? err_sys(e, "c") : 0;
    }
    s->send.fd = session_dir_command(&s->dir, true);
    s->frozen_ms = groups_frozen_ms(&s->all->procs->groups);
    if (s->send.fd < 0 || loop_timer_set(s->all->procs->loop, &s->timer, SEND_MS, on_unread) < 0)
        return err_sys(e, "c");
    return 0;
}

int session_send(struct session *s, struct err *e)
{
    if (open_command(s, e) < 0)
        return -1;
    send_more(s);
    return 0;
}
