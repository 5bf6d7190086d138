/* fdpass.c - see fdpass.h. */
#include "front/engine/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/files/fdpass_take.h"
#include "front/engine/files/internal.h"
#include "loop/job.h"
#include "mem/mem.h"

#define SEQ 1u

struct fd_call {
    struct engine *g;
    struct job job;
    struct loop_io io;
    struct loop_timer deadline, retry;
    struct loop_later later; /* a failure known at once */
    fd_cb *cb;               /* NULL: cancelled */
    void *arg;
    struct err why;
    char id[KEEPER_ID_MAX + 1];
    bool greeted; /* we know what its init speaks, and have asked */
    struct buf out;
    struct fd_taking in; /* the thread's, while it works */
};

static void receive(struct job *j)
{
    fd_take(&CONTAINER_OF(j, struct fd_call, job)->in);
}

static void close_both(struct job *j)
{
    struct fd_call *c = CONTAINER_OF(j, struct fd_call, job);

    fd_let_go(&c->in.passed);
    drop_fd(&c->in.fd);
}

/* ---- on the loop ---- */

static void call_free(struct job *w)
{
    struct fd_call *c = CONTAINER_OF(w, struct fd_call, job);

    buf_free(&c->out);
    free(c);
}

/* Also what was never heard may hold fds: closing the connection closes them. */
static void call_end(struct fd_call *c)
{
    loop_timer_stop(c->g->loop, &c->deadline);
    loop_timer_stop(c->g->loop, &c->retry);
    loop_undefer(&c->later);
    loop_io_stop(c->g->loop, &c->io);
    c->job.drop = call_free;
    c->job.lane = JOB_CLOSE;
    job_start(c->g->loop, &c->job, close_both, call_free);
}

/* Tells the caller; while the thread is at work, received() frees the rest. */
static void tell(struct fd_call *c, const struct err *e)
{
    fd_cb *cb = take_ptr(&c->cb);
    int fd = e == NULL ? take_fd(&c->in.passed) : -1;
    struct stat st = c->in.st;
    bool file = c->in.want == INIT_FD_FILE;
    void *arg = c->arg;

    if (!c->job.busy)
        call_end(c);
    cb(arg, fd, e == NULL && file ? &st : NULL, e);
}

static void fail(struct fd_call *c, enum err_kind kind, const char *what)
{
    struct err e;

    err_set(&e, kind, "sandbox %s: %s", c->id, what);
    tell(c, &e);
}

static void nonsense(struct fd_call *c, const char *what)
{
    struct err e;

    err_set(&e, ERR_UNRESPONSIVE, "sandbox %s: invalid answer from its init: %s", c->id, what);
    tell(c, &e);
}

static void on_deadline(struct loop_timer *t)
{
    fail(CONTAINER_OF(t, struct fd_call, deadline), ERR_UNRESPONSIVE, "did not answer in time");
}

static void on_failed(struct loop_later *l)
{
    struct fd_call *c = CONTAINER_OF(l, struct fd_call, later);
    struct err why = c->why;

    tell(c, &why);
}

/* A new socket takes any request whole. */
static int ask(struct fd_call *c)
{
    ssize_t n = send(c->in.fd, buf_data(&c->out), c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

    c->greeted = true;
    return n == (ssize_t)c->out.len ? 0 : -1;
}

/* Each returns WIRE_GONE once the caller was told, which ends the call. */
static enum wire_next heard_hello(struct fd_call *c, const struct init_hello *m)
{
    if (!init_is_understood(m->version))
        fail(c, ERR_UNSUPPORTED, "its init was started by another version of Cove");
    else if (!c->greeted && ask(c) < 0)
        fail(c, ERR_GONE, "its init closed the connection");
    else
        return WIRE_NEXT;
    return WIRE_GONE;
}

static enum wire_next heard_fd(struct fd_call *c, const struct init_fd *m)
{
    if (c->in.passed < 0 || c->in.overfull || m->kind != c->in.want)
        nonsense(c, "not the one fd that was asked for");
    else if (c->in.wrong != NULL)
        nonsense(c, c->in.wrong);
    else
        tell(c, NULL);
    return WIRE_GONE;
}

static enum wire_next heard_fail(struct fd_call *c, const struct init_fail *m)
{
    struct err e;

    talk_failure(m, &e);
    tell(c, &e);
    return WIRE_GONE;
}

static enum wire_next heard(void *arg, const struct wire_head *head, const char *body,
                            struct err *e)
{
    const struct wire_msg *m = init_msg(head->type);
    struct fd_call *c = arg;
    union talk_msg msg;

    if (m == NULL || wire_get(m, body, head->len, &msg, e) < 0)
        nonsense(c, "a malformed message");
    else if (head->type == INIT_HELLO)
        return heard_hello(c, &msg.init_hello);
    else if (!c->greeted || head->seq != SEQ)
        nonsense(c, "an answer without a request");
    else if (head->type == INIT_FAIL)
        return heard_fail(c, &msg.init_fail);
    else if (head->type == INIT_FD)
        return heard_fd(c, &msg.init_fd);
    else
        nonsense(c, "an answer without a file descriptor");
    return WIRE_GONE;
}

static void on_io(struct loop_io *io, uint32_t events);

static void listen_again(struct fd_call *c)
{
    struct err e;

    if (c->in.closed)
        fail(c, ERR_GONE, "its init closed the connection");
    else if (c->in.got == FD_ANSWER_MAX)
        nonsense(c, "more bytes than an answer has");
    else if (loop_io_start(c->g->loop, &c->io, c->in.fd, EPOLLIN, on_io, &e) < 0)
        tell(c, &e);
}

static void received(struct job *w)
{
    struct fd_call *c = CONTAINER_OF(w, struct fd_call, job);
    struct buf in = {.mem = c->in.bytes, .len = c->in.got, .max = FD_ANSWER_MAX};
    struct err e;
    int ret;

    if (c->cb == NULL) {
        call_end(c);
        return;
    }
    ret = wire_pump(&in, WIRE_FRAME_MAX, heard, c, &e);
    if (ret > 0)
        return;
    if (ret < 0) {
        nonsense(c, e.msg);
        return;
    }
    memmove(c->in.bytes, buf_data(&in), in.len);
    c->in.got = in.len;
    listen_again(c);
}

/* Not watched meanwhile: a hang-up would be told again and again. */
static void on_io(struct loop_io *io, uint32_t events)
{
    struct fd_call *c = CONTAINER_OF(io, struct fd_call, io);

    (void)events;
    loop_io_stop(c->g->loop, &c->io);
    job_start(c->g->loop, &c->job, receive, received);
}

static void dial(struct fd_call *c);

static void on_retry(struct loop_timer *t)
{
    dial(CONTAINER_OF(t, struct fd_call, retry));
}

static void fail_later(struct fd_call *c, const struct err *e)
{
    c->why = *e;
    loop_defer(c->g->loop, &c->later, on_failed);
}

static void dial(struct fd_call *c)
{
    struct err e;

    if (talk_connect(c->g->hub, c->in.fd, c->id) < 0) {
        if (errno == EAGAIN && loop_timer_set(c->g->loop, &c->retry, TALK_RETRY_MS, on_retry) == 0)
            return;
        talk_unreachable(c->id, errno, &e);
        fail_later(c, &e);
        return;
    }
    if (c->greeted && ask(c) < 0)
        err_set(&c->why, ERR_GONE, "sandbox %s: its init closed the connection", c->id);
    else if (loop_io_start(c->g->loop, &c->io, c->in.fd, EPOLLIN, on_io, &c->why) == 0)
        return;
    e = c->why;
    fail_later(c, &e);
}

static int call_begin(struct fd_call *c, struct box *b, uint16_t request, const void *msg,
                      uint64_t timeout_ms, struct err *e)
{
    str_fmt(c->id, sizeof(c->id), "%s", b->pub.id);
    b->peer.used_ms = clock_real_ms();
    c->greeted = init_is_understood(b->peer.version);
    if (wire_put(&c->out, init_msg(request), SEQ, msg, e) < 0)
        return -1;
    c->in.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->in.fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "too many connections to sandboxes: %s; try again",
                       strerror(errno));
    if (loop_timer_set(c->g->loop, &c->deadline, timeout_ms, on_deadline) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    dial(c);
    return 0;
}

static struct fd_call *call_new(struct engine *g, enum init_fd_kind want, const char *key,
                                fd_cb *cb, void *arg)
{
    struct fd_call *c = mem_zeroed(1, sizeof(*c));

    c->g = g;
    c->in.want = want;
    c->in.any_file = g->o.host;
    c->job.share = job_share(key);
    c->cb = cb;
    c->arg = arg;
    c->in.fd = c->in.passed = c->io.fd = -1;
    buf_init(&c->out, WIRE_FRAME_MAX);
    return c;
}

struct fd_call *fd_open(const struct file_at *at, fd_cb *cb, void *arg)
{
    struct fd_call *c = call_new(at->ref.engine, INIT_FD_FILE, at->ref.key, cb, arg);
    struct file_kept k;
    struct err e;
    struct box *b = file_keep(at, &k, &e);
    struct init_open m = {.path = k.path, .user = k.user, .root = at->as_root};

    if (b == NULL || call_begin(c, b, INIT_OPEN, &m, FD_DEADLINE_MS, &e) < 0)
        fail_later(c, &e);
    return c;
}

struct fd_call *fd_connect(struct ref ref, unsigned port, uint64_t timeout_ms, fd_cb *cb, void *arg)
{
    struct fd_call *c = call_new(ref.engine, INIT_FD_SOCKET, ref.key, cb, arg);
    struct err e;
    struct box *b = box_running(ref, &e);
    struct init_connect m = {.port = port, .timeout_ms = timeout_ms};

    if (b == NULL || call_begin(c, b, INIT_CONNECT, &m, timeout_ms + FD_DEADLINE_MS, &e) < 0)
        fail_later(c, &e);
    return c;
}

void fd_cancel(struct fd_call *c)
{
    if (c == NULL)
        return;
    c->cb = NULL;
    if (!c->job.busy || job_cancel(c->g->loop, &c->job))
        call_end(c);
    else
        loop_timer_stop(c->g->loop, &c->deadline);
}

struct closing {
    struct job job;
    int fd;
};

static void close_run(struct job *j)
{
    fd_let_go(&CONTAINER_OF(j, struct closing, job)->fd);
}

static void close_done(struct job *j)
{
    free(CONTAINER_OF(j, struct closing, job));
}

void fd_close(struct engine *g, int fd, const char *key)
{
    struct closing *c;

    if (fd < 0)
        return;
    c = mem_zeroed(1, sizeof(*c));
    c->fd = fd;
    c->job.drop = close_done;
    c->job.lane = JOB_CLOSE;
    c->job.share = job_share(key);
    job_start(g->loop, &c->job, close_run, close_done);
}
