/* session_reply.c - what the shell of a session says, see reply.h: at most one reply
 * per call is taken, and only while one is expected. */
#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session.h"

#define DROPS_MAX 16 /* times REPLY_MAX: what a pipe holds */

static void reply_ready(struct loop_io *io, uint32_t events);

int session_listen(struct session *s, struct err *e)
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

void session_unlisten(struct session *s)
{
    loop_io_stop(s->all->procs->loop, &s->reply.io);
    drop_fd(&s->reply.fd);
    buf_free(&s->reply.text);
    loop_io_stop(s->all->procs->loop, &s->send.io);
    drop_fd(&s->send.fd);
    for (int i = 0; i < 2; i++)
        drop_fd(&s->out[i]);
}

static void ready(struct session *s, const struct reply *r)
{
    (void)r;
    s->state = SESSION_IDLE;
    loop_timer_stop(s->all->procs->loop, &s->timer);
    session_answer(&s->askers, s);
    sessions_told(s->all, s, INIT_EVENT_SESSION_CREATED);
    session_next(s);
}

static void done(struct session *s, const struct reply *r)
{
    s->state = SESSION_IDLE;
    s->leaving = REPLY_READY;
    session_over(s, r->status);
}

static void left(struct session *s, const struct reply *r)
{
    s->record.restarts += s->stop == 0;
    done(s, r);
}

static void unasked(struct session *s)
{
    session_end(s, "its shell answered what nobody had asked");
}

/* Its EXIT trap may run for as long as the call may. Once per call: whoever says it for ever
 * would have us listen for ever. */
static void leave(struct session *s, const struct reply *r)
{
    if (s->leaving != REPLY_READY)
        unasked(s);
    else
        s->leaving = r->kind;
}

#define IN(state) (1u << SESSION_##state)

/* What may be said when. */
static const struct {
    unsigned states;
    void (*act)(struct session *s, const struct reply *r);
} sayings[REPLY_KINDS] = {
    [REPLY_READY] = {IN(STARTING), ready}, [REPLY_DONE] = {IN(BUSY), done},
    [REPLY_LEFT] = {IN(BUSY), left},       [REPLY_EXIT] = {IN(BUSY), leave},
    [REPLY_QUIET] = {IN(BUSY), leave},
};

static void heard(struct session *s, const struct reply *r)
{
    if ((sayings[r->kind].states & 1u << s->state) != 0)
        sayings[r->kind].act(s, r);
    else
        unasked(s);
}

/* In no other state is it listened to: what comes unasked stays in the pipe, and is thrown
 * away before the next call. */
static bool expects(const struct session *s)
{
    unsigned any = 0;

    for (size_t i = 0; i < REPLY_KINDS; i++)
        any |= sayings[i].states;
    return (any & 1u << s->state) != 0;
}

static void parse(struct session *s)
{
    struct reply r;
    size_t used;

    while (s->reply.fd >= 0 && expects(s) && s->reply.text.len > 0) {
        int ret = reply_read(buf_data(&s->reply.text), s->reply.text.len, &r, &used);

        if (ret < 0)
            session_end(s, "its shell answered nonsense");
        if (ret <= 0)
            return;
        buf_consume(&s->reply.text, used);
        heard(s, &r);
    }
}

/* Whoever is still listened to has not said anything. */
void session_forget(struct session *s)
{
    char drop[REPLY_MAX];

    buf_clear(&s->reply.text);
    for (int i = 0; s->reply.io.cb == NULL && i < DROPS_MAX; i++)
        if (read(s->reply.fd, drop, sizeof(drop)) <= 0)
            return;
}

/* What is there, as far as it fits; false: nobody waits for it. */
static bool listen_to(struct session *s)
{
    size_t room = REPLY_MAX - s->reply.text.len;
    char *at = buf_room(&s->reply.text, room);
    ssize_t n = at != NULL ? read(s->reply.fd, at, room) : -1;

    if (n > 0)
        buf_added(&s->reply.text, (size_t)n);
    if (!expects(s)) {
        buf_clear(&s->reply.text);
        return false;
    }
    parse(s);
    return true;
}

void session_hear(struct session *s)
{
    if (s->reply.fd >= 0)
        listen_to(s);
}

static void reply_ready(struct loop_io *io, uint32_t events)
{
    struct session *s = CONTAINER_OF(io, struct session, reply.io);

    (void)events;
    if (!listen_to(s))
        loop_io_stop(s->all->procs->loop, &s->reply.io);
}
