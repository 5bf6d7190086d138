/* output.c - from the two pipes of a process into its ring, see proc.h.
 *
 * The owner of the output holds the process back: when the ring is full of bytes
 * it has not taken, the pipes are left alone until it takes some. Without an owner
 * the oldest bytes go. The end comes when the root has ended and what was in the
 * pipes at that moment is in the ring; a background child that keeps them open
 * delays nothing, its later output goes to the same ring. Unless it was started with
 * INIT_START_WHOLE: then the end waits for that child, until it is told to end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/own.h"
#include "init/proc.h"

#define READ_MAX (256u << 10)
#define READS_PER_TURN 4
#define PIPE_FLOOD (64u << 10) /* what a pipe holds at first: a read of that much is a flood */
#define PIPE_HELD (1u << 20)   /* more than a pipe can hold */
#define RETRY_MS 50            /* when there is no memory at all */
#define TTY_FLOOD 2048u        /* of the 4096 bytes that a terminal gives at once */
#define TTY_HELD (64u << 10)   /* more than the kernel can hold back of what was printed */

static void pipe_ready(struct loop_io *io, uint32_t events);

static struct proc *proc_of(struct outpipe *o)
{
    return CONTAINER_OF(o - (o->stream == INIT_STDERR), struct proc, out[0]);
}

int output_open(struct proc *p, int ret_write[2], struct err *e)
{
    for (int i = 0; i < 2; i++) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
            return err_set(e, ERR_UNAVAILABLE, "no more pipes: %s",
                           errno == EMFILE || errno == ENFILE ? "too many open files"
                                                              : "out of memory");
        p->out[i].fd = fds[0];
        ret_write[i] = fds[1];
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

/* A session's shell comes late to its pipes, and may open them more than once. One that had an
 * end in between would not be read any more, and the shell wait for ever. */
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

/* Out of the epoll set, not merely waiting for nothing: a pipe whose writers are
 * gone reports that in every turn. */
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

/* Its end is the end of its pipes and not what was in them at some moment. */
static bool is_whole(const struct proc *p)
{
    return (p->flags & INIT_START_WHOLE) != 0 && !p->cut;
}

static void end_if_drained(struct proc *p)
{
    if (p->output == OUTPUT_DRAINING && p->out[0].left == 0 && p->out[1].left == 0)
        proc_output_ended(p);
}

static void took(struct proc *p, struct outpipe *o, const char *at, size_t n)
{
    if ((p->flags & INIT_START_LOG) != 0)
        journal_take(&p->all->journal, p, &o->part, o->stream, at, n);
    ring_added(&p->ring, o->stream, n);
    o->left -= n < o->left ? n : o->left;
    if (n >= PIPE_FLOOD && !o->grown) {
        o->grown = true;
        fcntl(o->fd, F_SETPIPE_SZ, PIPE_GROWN);
    }
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
        took(p, o, at, (size_t)n);
        if (o->last && (size_t)n < want)
            o->left = 0;
        proc_changed(p);
        return (size_t)n == want || (proc_is_term(p) && n >= TTY_FLOOD);
    }
    /* Less than FIONREAD had promised: the tenant may open the pipe by its /proc
     * name and read from it too. */
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

/* A pipe that nobody holds any more is read to its end; not for ever, since a session's
 * may be opened again by its name. */
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

/* One that was made larger holds more memory than it should while nothing runs. */
static void finish_pipe(struct proc *p, struct outpipe *o)
{
    if (p->session != 0 && !o->grown)
        o->done = take_fd(&o->fd);
    close_pipe(p, o);
}

/* FIONREAD of a terminal does not count what a worker of the kernel has not yet moved
 * to where it can be read, but a read waits for that worker: so until EAGAIN. */
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
    for (int i = 0; i < 2; i++)
        if (p->out[i].last && p->out[i].left == 0)
            finish_pipe(p, &p->out[i]);
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
