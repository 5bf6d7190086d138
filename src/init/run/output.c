/* output.c - from the two pipes of a process into its ring, see proc.h.
 *
 * The process waits for the owner of its output: when the ring is full of bytes that the
 * owner has not taken, the pipes are not read. Without an owner the oldest bytes are dropped.
 * The end comes when the root has ended and what was in the pipes at that moment is in the
 * ring; a background child that keeps them open delays nothing, its later output goes to the
 * same ring. With INIT_START_WHOLE the end waits for that child, unless it is told to end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/own.h"
#include "init/run/proc.h"

#define READ_MAX (256u << 10)
#define READS_PER_TURN 4
#define PIPE_FLOOD (64u << 10) /* what a pipe holds at first: a read of so much is a flood */
#define PIPE_HELD (1u << 20)   /* more than a pipe can hold */
#define RETRY_MS 50            /* when there is no memory at all */
#define TTY_FLOOD 2048u        /* of the 4096 bytes that a terminal gives at once */
#define TTY_HELD (64u << 10)   /* more than the kernel can hold of what was printed */

static void pipe_ready(struct loop_io *io, uint32_t events);

static struct proc *proc_of(struct outpipe *o)
{
    return CONTAINER_OF(o - (o->stream == INIT_STDERR), struct proc, out[0]);
}

int output_open(struct proc *p, int *ret_out, int *ret_err, struct err *e)
{
    for (int i = 0; i < 2; i++) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
            return err_set(e, ERR_UNAVAILABLE, "start process: no pipe for its output: %s",
                           strerror(errno));
        p->out[i].fd = fds[0];
        *(i == 0 ? ret_out : ret_err) = fds[1];
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

void output_take(struct proc *p, int i, int fd)
{
    p->out[i].fd = fd;
}

bool output_is_open(const struct proc *p)
{
    return p->out[0].fd >= 0 || p->out[1].fd >= 0;
}

static int watch_pipes(struct proc *p, void (*cb)(struct loop_io *, uint32_t), struct err *e)
{
    for (int i = 0; i < 2; i++) {
        struct outpipe *o = &p->out[i];

        if (o->fd >= 0 && o->io.cb == NULL &&
            loop_io_start(p->all->loop, &o->io, o->fd, EPOLLIN, cb, e) < 0)
            return -1;
    }
    return 0;
}

static void unwatch_pipes(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        loop_io_stop(p->all->loop, &p->out[i].io);
}

int output_start(struct proc *p, struct err *e)
{
    return watch_pipes(p, pipe_ready, e);
}

static void close_pipe(struct proc *p, struct outpipe *o)
{
    loop_io_stop(p->all->loop, &o->io);
    drop_fd(&o->fd);
    drop_fd(&o->hold);
    o->left = 0;
}

/* A session's shell opens its pipes late, and may do so more than once. If a pipe were closed
 * at an end in between, the shell would block in its next open. */
static void at_end(struct proc *p, struct outpipe *o)
{
    if (p->call != NULL && o->hold < 0)
        o->hold = p->hold(p, (int)(o - p->out));
    if (p->call == NULL || o->hold < 0)
        close_pipe(p, o);
}

void output_log_rest(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        journal_end(&p->all->journal, p, &p->out[i].part, p->out[i].stream);
}

void output_close(struct proc *p)
{
    for (int i = 0; i < 2; i++) {
        close_pipe(p, &p->out[i]);
        drop_fd(&p->out[i].done);
    }
}

static void retry(struct loop_timer *t)
{
    output_resume(CONTAINER_OF(t, struct proc, retry));
}

/* Out of the epoll set, not only waiting for nothing: a pipe without writers reports that in
 * every turn. */
static void pause_pipes(struct proc *p)
{
    p->paused = true;
    unwatch_pipes(p);
    if (p->owner == NULL)
        loop_timer_set(p->all->loop, &p->retry, RETRY_MS, retry);
}

static void start_now(struct loop_timer *t)
{
    struct proc *p = CONTAINER_OF(t, struct proc, retry);
    struct err e;

    if (output_start(p, &e) < 0)
        pause_pipes(p);
    proc_changed(p);
}

int output_start_late(struct proc *p, struct err *e)
{
    if (loop_timer_set(p->all->loop, &p->retry, OUTPUT_LATE_MS, start_now) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    return 0;
}

bool output_is_late(const struct proc *p)
{
    return p->output == OUTPUT_LIVE && p->retry.slot != 0 && !p->paused;
}

/* Its output ends when every writer has closed the pipes, not when the root ends. */
static bool is_whole(const struct proc *p)
{
    return (p->flags & INIT_START_WHOLE) != 0 && !p->cut;
}

static void end_if_drained(struct proc *p)
{
    if (p->output == OUTPUT_DRAINING && p->out[0].left == 0 && p->out[1].left == 0)
        proc_output_ended(p);
}

/* One read. True when there may be more. */
static bool read_some(struct proc *p, struct outpipe *o)
{
    size_t room, want;
    ssize_t n;
    char *at;

    room = ring_room(&p->ring, p->owner != NULL ? p->owner->cursor : p->ring.end, &at);
    if (room == 0) {
        pause_pipes(p);
        return false;
    }
    want = room < READ_MAX ? room : READ_MAX;
    n = read(o->fd, at, want);
    if (n > 0) {
        if ((p->flags & INIT_START_LOG) != 0)
            journal_take(&p->all->journal, p, &o->part, o->stream, at, (size_t)n);
        ring_added(&p->ring, o->stream, (size_t)n);
        o->left -= (size_t)n < o->left ? (size_t)n : o->left;
        if (n >= PIPE_FLOOD && !o->grown) {
            o->grown = true;
            fcntl(o->fd, F_SETPIPE_SZ, PIPE_GROWN);
        }
        if (o->last && (size_t)n < want)
            o->left = 0;
        proc_changed(p);
        return (size_t)n == want || (proc_is_term(p) && n >= TTY_FLOOD);
    }
    /* Less than FIONREAD said: the tenant may open the pipe by its /proc name and read from
     * it too. */
    if (!is_whole(p))
        o->left = 0;
    if (n == 0 || errno != EAGAIN)
        at_end(p, o);
    return false;
}

static void pipe_ready(struct loop_io *io, uint32_t events)
{
    struct outpipe *o = CONTAINER_OF(io, struct outpipe, io);
    struct proc *p = proc_of(o);

    if ((events & EPOLLIN) == 0)
        at_end(p, o);
    for (int i = 0; o->fd >= 0 && i < READS_PER_TURN && read_some(p, o); i++)
        ;
    end_if_drained(p);
}

static void drain_more(struct proc *p)
{
    for (int i = 0; i < 2; i++) {
        struct outpipe *o = &p->out[i];

        while (o->left > 0 && !p->paused && !is_whole(p))
            read_some(p, o);
    }
    end_if_drained(p);
}

/* How much to read before the end. FIONREAD of a terminal does not count what a kernel worker
 * has not moved yet to where it can be read, but a read waits for that worker: so until EAGAIN.
 * A pipe without a writer is read to its end; with a bound, since a session's FIFO may be
 * opened again by its name. */
static void measure(struct proc *p, struct outpipe *o, short now)
{
    int held = 0;

    o->last = (now & POLLHUP) != 0;
    if (proc_is_term(p))
        o->left = TTY_HELD;
    else if (is_whole(p))
        o->left = SIZE_MAX;
    else if ((now & POLLIN) != 0 && o->last)
        o->left = PIPE_HELD;
    else if ((now & POLLIN) != 0 && ioctl(o->fd, FIONREAD, &held) == 0)
        o->left = (size_t)held;
    else
        o->left = 0;
}

void output_drain(struct proc *p)
{
    struct pollfd now[2] = {{p->out[0].fd, POLLIN, 0}, {p->out[1].fd, POLLIN, 0}};
    struct err e;

    p->output = OUTPUT_DRAINING;
    for (int i = 0; i < 2; i++)
        drop_fd(&p->out[i].hold);
    if (!p->paused)
        loop_timer_stop(p->all->loop, &p->retry);
    poll(now, 2, 0);
    for (int i = 0; i < 2; i++)
        if (p->out[i].fd >= 0)
            measure(p, &p->out[i], now[i].revents);
    drain_more(p);
    for (int i = 0; i < 2; i++) {
        struct outpipe *o = &p->out[i];

        if (!o->last || o->left > 0)
            continue;
        if (p->session != 0 && !o->grown) /* a grown one would hold memory while idle */
            o->done = take_fd(&o->fd);
        close_pipe(p, o);
    }
    if (!p->paused && watch_pipes(p, pipe_ready, &e) < 0)
        pause_pipes(p);
}

void output_cut(struct proc *p)
{
    if (!is_whole(p))
        return;
    p->cut = true;
    if (p->output == OUTPUT_DRAINING)
        output_drain(p);
}

void output_resume(struct proc *p)
{
    struct err e;

    if (!p->paused)
        return;
    p->paused = false;
    if (watch_pipes(p, pipe_ready, &e) < 0)
        pause_pipes(p);
    else if (p->output == OUTPUT_DRAINING)
        drain_more(p);
}

static void sink_ready(struct loop_io *io, uint32_t events)
{
    struct outpipe *o = CONTAINER_OF(io, struct outpipe, io);
    struct proc *p = proc_of(o);
    ssize_t n = 0;

    if (events & EPOLLIN)
        n = splice(o->fd, NULL, p->all->null_fd, NULL, PIPE_GROWN, SPLICE_F_NONBLOCK);
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return;
    close_pipe(p, o);
    if (!output_is_open(p))
        proc_sink_closed(p);
}

void output_sink(struct proc *p)
{
    struct err e;

    unwatch_pipes(p);
    p->paused = false;
    if (watch_pipes(p, sink_ready, &e) < 0)
        output_close(p);
}
