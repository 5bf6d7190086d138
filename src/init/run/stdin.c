/* stdin.c - what the front writes into a process's stdin, see proc.h.
 *
 * A process that does not read fills its pipe and then our queue; then the owner's socket is
 * not read, and other writers get ERR_LIMIT. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/own.h"
#include "init/run/proc.h"

int stdin_open(struct proc *p, int *ret_read, struct err *e)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set(e, ERR_UNAVAILABLE, "start process: no pipe for its stdin: %s",
                       strerror(errno));
    *ret_read = fds[0];
    p->in.fd = fds[1];
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    return 0;
}

void stdin_close(struct proc *p)
{
    loop_io_stop(p->all->loop, &p->in.io);
    drop_fd(&p->in.fd);
    buf_free(&p->in.queue);
}

/* As much as the pipe takes. SIGPIPE is blocked in init: a closed reader is an EPIPE, and the
 * bytes are dropped. */
static size_t push(struct proc *p, const char *at, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(p->in.fd, at + done, len - done);

        if (n == 0 || (n < 0 && errno == EAGAIN))
            return done;
        if (n < 0) {
            stdin_close(p);
            return len;
        }
        done += (size_t)n;
    }
    return done;
}

static void stdin_ready(struct loop_io *io, uint32_t events)
{
    struct proc *p = CONTAINER_OF(io, struct proc, in.io);

    size_t n = push(p, buf_data(&p->in.queue), p->in.queue.len);

    (void)events;
    if (p->in.queue.len > 0)
        buf_consume(&p->in.queue, n);
    if (p->in.closing && p->in.queue.len == 0)
        stdin_close(p);
    if (p->in.queue.len == 0)
        loop_io_stop(p->all->loop, &p->in.io);
    if (p->in.queue.len <= STDIN_QUEUE_HIGH)
        proc_changed(p);
}

static void watch(struct proc *p)
{
    struct err e;

    if (p->in.io.cb != NULL)
        return;
    if (!p->in.grown) {
        p->in.grown = true;
        fcntl(p->in.fd, F_SETPIPE_SZ, PIPE_GROWN);
    }
    if (loop_io_start(p->all->loop, &p->in.io, p->in.fd, EPOLLOUT, stdin_ready, &e) < 0)
        stdin_close(p);
}

int stdin_add(struct proc *p, const struct wire_bytes *data, struct err *e)
{
    size_t n = 0;

    if (p->in.fd < 0 || p->in.closing)
        return err_set(e, ERR_GONE, "write to stdin of %s: it is closed", p->record.id);
    if (data->len > p->in.queue.max - p->in.queue.len)
        return err_set(e, ERR_LIMIT,
                       "write to stdin of %s: it has not read the last %zu bytes; try again later",
                       p->record.id, p->in.queue.len);
    if (p->in.queue.len == 0)
        n = push(p, data->p, data->len);
    if (n == data->len)
        return 0;
    if (buf_add(&p->in.queue, data->p + n, data->len - n) < 0) {
        p->in.queue.failed = false;
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    }
    watch(p);
    return 0;
}

void stdin_finish(struct proc *p)
{
    if (proc_is_term(p)) /* a terminal's stdin has no end */
        return;
    p->in.closing = true;
    if (p->in.fd >= 0 && p->in.queue.len == 0)
        stdin_close(p);
}
