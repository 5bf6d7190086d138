/* session_reply.c - what the shell of a session says, see reply.h: at most one reply
 * per call is taken, and only while one is expected. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session.h"

static void reply_ready(struct loop_io *io, uint32_t events);

int session_listen(struct session *s, struct err *e)
{
    if (s->reply.fd < 0)
        s->reply.fd = session_dir_reply(&s->dir, e);
    if (s->reply.fd < 0)
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

static void on_late_leave(struct loop_timer *t)
{
    struct session *s = CONTAINER_OF(t, struct session, timer);

    s->record.code = s->status;
    session_end(s, "its shell exited with %u, and then did not end", s->status);
}

static void leave(struct session *s, const struct reply *r)
{
    s->state = SESSION_LEAVING;
    s->status = r->status;
    loop_timer_set(s->all->procs->loop, &s->timer, SESSION_LEAVE_MS, on_late_leave);
}

static void on_unborn(struct loop_timer *t)
{
    struct session *s = CONTAINER_OF(t, struct session, timer);
    uint64_t frozen = groups_frozen_ms(&s->all->procs->groups);

    if (frozen == s->frozen_ms ||
        loop_timer_set(s->all->procs->loop, t, SESSION_BACK_MS, on_unborn) < 0)
        session_end(s, "its shell was ended by its command, and could not go on");
    s->frozen_ms = frozen;
}

/* Who does not come back to our loop must not be waited for for ever. */
static void await(struct session *s, enum session_state state)
{
    s->state = state;
    s->frozen_ms = groups_frozen_ms(&s->all->procs->groups);
    if (loop_timer_set(s->all->procs->loop, &s->timer, SESSION_BACK_MS, on_unborn) < 0)
        session_end(s, "out of memory");
}

/* Nothing of it may be killed or signalled until the child has a name. */
static void await_birth(struct session *s, const struct reply *r)
{
    (void)r;
    s->told = TOLD_HEARD;
    await(s, SESSION_EXITING);
}

/* One whose shell is being moved may be born on either side. */
static bool session_has(const struct session *s, pid_t pid)
{
    return group_has(s->group, pid) || (s->move.to != NULL && group_has(s->move.to, pid));
}

/* A child speaks for the session from now on. It must be one of its processes: its
 * pid is what gets moved and signalled. Its parent would wait for it, and has nothing
 * else to do: without it the child is ours. */
static bool take_over(struct session *s, const struct reply *r)
{
    int pidfd;

    s->record.restarts += s->call != NULL;
    if (s->record.restarts > SESSION_RESTARTS_MAX) {
        session_end(s, "its shell was ended by its commands %u times", s->record.restarts);
        return false;
    }
    pidfd = r->pid > 1 && r->pid != s->pid ? (int)syscall(SYS_pidfd_open, r->pid, 0) : -1;
    if (pidfd < 0 || !session_has(s, r->pid)) {
        drop_fd(&pidfd);
        session_end(s, "its shell lost track of itself");
        return false;
    }
    session_signal(s, SIGKILL);
    s->former = s->pid;
    s->pid = r->pid;
    s->record.pid = (uint32_t)r->pid;
    drop_fd(&s->pidfd);
    s->pidfd = pidfd;
    return true;
}

/* Without a call: the signal that stopped the last one came after it, or the call ended its
 * shell in a function, and the first child only leaves that. */
static void restart(struct session *s, const struct reply *r)
{
    s->status = r->status;
    await(s, SESSION_RESTARTING);
    if (s->state == SESSION_ENDED || !take_over(s, r))
        return;
    session_move_on(s);
    if (s->call != NULL)
        session_over(s, r->status);
}

static void unasked(struct session *s)
{
    session_end(s, "its shell answered what nobody had asked");
}

/* It may have left its call already, or even be in our loop, and leaves that. */
static void stopped(struct session *s, const struct reply *r)
{
    (void)r;
    if (s->state == SESSION_BUSY && s->told != TOLD_SENT) {
        unasked(s);
        return;
    }
    s->told = TOLD_HEARD;
    s->left = false;
    if (s->state == SESSION_SETTLING)
        await(s, SESSION_RESTARTING);
}

/* Once; by an error of its own, unless it was told to. */
static void left(struct session *s, const struct reply *r)
{
    (void)r;
    if (s->left) {
        unasked(s);
        return;
    }
    s->left = true;
    session_dir_spare(&s->dir);
}

static void ready(struct session *s, const struct reply *r)
{
    enum session_state was = s->state;

    session_dir_begun(&s->dir);
    s->state = s->told == TOLD_SENT ? SESSION_SETTLING : SESSION_IDLE;
    if (was == SESSION_RESTARTING)
        loop_timer_stop(s->all->procs->loop, &s->timer);
    if (was == SESSION_STARTING) {
        loop_timer_stop(s->all->procs->loop, &s->timer);
        session_answer(&s->askers, s);
        sessions_told(s->all, s, INIT_EVENT_SESSION_CREATED);
    }
    if (was == SESSION_BUSY) {
        s->status = r->status;
        session_over(s, r->status);
    }
    session_next(s);
}

#define IN(state) (1u << SESSION_##state)

/* What may be said when. */
static const struct {
    unsigned states;
    void (*act)(struct session *s, const struct reply *r);
} sayings[REPLY_KINDS] = {
    [REPLY_READY] = {IN(STARTING) | IN(BUSY) | IN(RESTARTING), ready},
    [REPLY_BIRTH] = {IN(BUSY) | IN(SETTLING) | IN(RESTARTING), await_birth},
    [REPLY_CHILD] = {IN(EXITING), restart},
    [REPLY_LEAVE] = {IN(BUSY), leave},
    [REPLY_LEFT] = {IN(BUSY) | IN(RESTARTING), left},
    [REPLY_STOP] = {IN(BUSY) | IN(SETTLING), stopped},
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
        int ret = reply_read(buf_data(&s->reply.text), s->reply.text.len, s->dir.path, &r, &used);

        if (ret < 0)
            session_end(s, "its shell answered nonsense");
        if (ret <= 0)
            return;
        buf_consume(&s->reply.text, used);
        heard(s, &r);
    }
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
