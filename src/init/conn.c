/* conn.c - see conn.h. */
#include "init/conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "init/serve_state.h"

#define CONN_READ 4096u  /* when the size of the next frame is not known yet */
#define CONN_KEEP 16384u /* an empty buffer larger than this is given back after the talk */
#define CONN_FRAMES_PER_TURN 16
#define LIST_BATCH (64u << 10) /* records queued before the socket must take some */

static void conn_ready(struct loop_io *io, uint32_t events);

static bool is_typing(const struct conn *c)
{
    return (c->talk == TALK_OWN || c->talk == TALK_VIEW) && c->watch.proc != NULL;
}

/* Not while a reader is busy with something else: a talk that takes no input
 * leaves it in the socket. Unless nobody holds its other end: then it is taken now, and
 * a socket holds less than there is room for above STDIN_QUEUE_HIGH. */
static bool takes_input(const struct conn *c)
{
    if (c->talk == TALK_NONE || c->talk == TALK_UPLOAD)
        return true;
    return is_typing(c) && (c->hung || c->watch.proc->in.queue.len <= STDIN_QUEUE_HIGH);
}

static void conn_free(struct loop_later *l)
{
    struct conn *c = CONTAINER_OF(l, struct conn, later);

    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

void conn_close(struct conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    c->talk = TALK_NONE;
    proc_watch_stop(&c->watch);
    wait_free(c);
    loop_timer_stop(c->serve->loop, &c->timer);
    loop_io_stop(c->serve->loop, &c->io);
    loop_undefer(&c->soon);
    drop_fd(&c->fd);
    drop_fd(&c->pass_fd);
    list_del(&c->link);
    c->serve->nconns--;
    loop_defer(c->serve->loop, &c->later, conn_free);
}

/* With the fd that waits, if one does: the kernel takes it with the first byte. */
static ssize_t push_iov(struct conn *c, struct iovec *iov, size_t n)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
    struct cmsghdr *h;

    if (c->pass_fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &c->pass_fd, sizeof(int));
    }
    return sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t conn_push(struct conn *c, const struct iovec *iov, size_t n)
{
    size_t had = c->out.len, all = had, k = had > 0;
    struct iovec v[3] = {{buf_data(&c->out), had}};
    ssize_t sent;

    for (size_t i = 0; i < n; i++) {
        all += iov[i].iov_len;
        v[k++] = iov[i];
    }
    sent = push_iov(c, v, k);
    if (sent < 0 && errno != EAGAIN) {
        if (is_typing(c) && (errno == EPIPE || errno == ECONNRESET))
            c->hung = c->full = true;
        else
            conn_close(c);
        return -1;
    }
    c->full = sent < (ssize_t)all;
    if (sent < 0)
        return -1;
    drop_fd(&c->pass_fd);
    buf_consume(&c->out, (size_t)sent < had ? (size_t)sent : had);
    return (size_t)sent > had ? sent - (ssize_t)had : -1;
}

static void conn_flush(struct conn *c)
{
    loop_undefer(&c->soon);
    while (!c->closing && !c->full && c->out.len > 0)
        conn_push(c, NULL, 0);
    if (c->out.len == 0 && c->out.cap > CONN_KEEP)
        buf_free(&c->out);
}

static void want(struct conn *c, uint32_t events)
{
    loop_io_set(c->serve->loop, &c->io, events);
}

static void conn_update(struct conn *c)
{
    uint32_t events = c->io.events & EPOLLIN;

    if (c->closing)
        return;
    if (takes_input(c))
        events = EPOLLIN;
    if (c->full || c->blocked)
        events |= EPOLLOUT;
    want(c, events);
}

static void flush_now(struct loop_later *l)
{
    struct conn *c = CONTAINER_OF(l, struct conn, soon);

    conn_flush(c);
    conn_update(c);
}

static void flush_soon(struct conn *c)
{
    if (c->out.len > 0 && !c->full)
        loop_defer(c->serve->loop, &c->soon, flush_now);
}

void conn_send(struct conn *c, uint16_t type, const void *msg)
{
    struct err e;

    if (c->closing)
        return;
    if (wire_put(&c->out, init_msg(type), c->seq, msg, &e) < 0)
        conn_close(c);
    else
        flush_soon(c);
}

void conn_queue(struct conn *c, const struct iovec *iov, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add(&c->out, iov[i].iov_base, iov[i].iov_len);
    if (c->out.failed)
        conn_close(c);
    else
        flush_soon(c);
}

void conn_hold(struct conn *c)
{
    loop_undefer(&c->soon);
}

bool conn_has_room(struct conn *c)
{
    if (c->out.len > LIST_BATCH)
        conn_flush(c);
    return !c->closing && !c->full;
}

static void input_later(struct loop_later *l);

/* Requests may be in the buffer already, and then no event announces them. */
static void resume_input(struct conn *c)
{
    if (c->in.len > 0 && !c->serving && takes_input(c))
        loop_defer(c->serve->loop, &c->later, input_later);
}

/* Not in the middle of a talk: what came in large pieces goes on coming so. */
static void give_back(struct conn *c)
{
    if (c->talk == TALK_NONE && c->in.len == 0 && c->in.cap > CONN_KEEP)
        buf_free(&c->in);
}

void conn_done(struct conn *c)
{
    if (!c->closing)
        conn_flush(c);
    if (c->closing)
        return;
    proc_watch_stop(&c->watch);
    wait_free(c);
    loop_timer_stop(c->serve->loop, &c->timer);
    c->talk = TALK_NONE;
    c->blocked = false;
    give_back(c);
    resume_input(c);
    conn_update(c);
}

void conn_pass(struct conn *c, enum init_fd_kind kind, int fd)
{
    struct init_fd m = {.kind = kind};

    drop_fd(&c->pass_fd);
    c->pass_fd = fd;
    conn_send(c, INIT_FD, &m);
    conn_done(c);
}

void conn_fail(struct conn *c, const struct err *e)
{
    char text[500 + 1];
    struct init_fail m = {.code = err_code(e->kind), .message = text, .sys = (uint32_t)e->sys};

    snprintf(text, sizeof(text), "%.500s", e->msg);
    conn_send(c, INIT_FAIL, &m);
    conn_done(c);
}

void conn_fail_gone(struct conn *c, const char *what)
{
    struct err e;

    err_set(&e, ERR_GONE, "%s", what);
    conn_fail(c, &e);
}

void conn_exit(struct conn *c)
{
    struct init_exit m;

    proc_fill_exit(c->watch.proc, &m);
    conn_send(c, INIT_EXIT, &m);
    conn_done(c);
}

static void no_pump(struct conn *c)
{
    (void)c;
}

static void (*const pumps[TALK_COUNT])(struct conn *c) = {
    [TALK_NONE] = no_pump,         [TALK_OWN] = stream_pump, [TALK_FOLLOW] = stream_pump,
    [TALK_LOOK] = stream_pump,     [TALK_LIST] = list_pump,  [TALK_WAIT] = wait_pump,
    [TALK_KILL] = kill_pump,       [TALK_PORT] = port_pump,  [TALK_LOG] = log_pump,
    [TALK_MONITOR] = no_pump,      [TALK_VIEW] = view_pump,  [TALK_CONNECT] = no_pump,
    [TALK_SESSION] = no_pump,      [TALK_UPLOAD] = no_pump,  [TALK_SESSIONS] = session_list_pump,
    [TALK_JOURNAL] = journal_pump,
};

void conn_pump(struct conn *c)
{
    if (c->closing)
        return;
    pumps[c->talk](c);
    if (c->closing)
        return;
    flush_soon(c);
    resume_input(c);
    conn_update(c);
}

static void watch_changed(struct proc_watch *w)
{
    struct conn *c = CONTAINER_OF(w, struct conn, watch);

    if (w->proc == NULL && c->talk != TALK_NONE)
        conn_fail_gone(c, "the process was forgotten");
    else
        conn_pump(c);
}

void conn_watch(struct conn *c, enum talk talk, struct proc *p, uint64_t cursor)
{
    c->talk = talk;
    proc_watch_start(&c->watch, p, cursor, watch_changed, talk == TALK_OWN);
    conn_pump(c);
}

/* How much to read: the rest of the frame whose head is there, or a little. */
static size_t read_size(const struct conn *c)
{
    struct wire_head h;
    size_t whole;

    if (c->in.len < WIRE_HEAD)
        return CONN_READ;
    memcpy(&h, buf_data(&c->in), WIRE_HEAD);
    whole = WIRE_HEAD + (size_t)h.len;
    return h.len <= WIRE_FRAME_MAX && whole > c->in.len ? whole - c->in.len : CONN_READ;
}

static void serve_input(struct conn *c)
{
    struct wire_head h;
    const char *body;
    struct err e;
    int n = 0, ret = 0;

    while (!c->closing && takes_input(c) && n++ < CONN_FRAMES_PER_TURN &&
           (ret = wire_peek(&c->in, &h, &body, &e)) > 0) {
        c->serving = true;
        serve_request(c, &h, body);
        c->serving = false;
        buf_consume(&c->in, WIRE_HEAD + (size_t)h.len);
    }
    if (c->closing)
        return;
    if (ret < 0) {
        conn_close(c);
        return;
    }
    c->more = n > CONN_FRAMES_PER_TURN;
    if (c->more)
        loop_defer(c->serve->loop, &c->later, input_later);
    give_back(c);
    conn_update(c);
}

static void input_later(struct loop_later *l)
{
    serve_input(CONTAINER_OF(l, struct conn, later));
}

static void conn_read(struct conn *c)
{
    size_t size = read_size(c);
    char *room;
    ssize_t n;

    if (c->more) /* what came before is served first; epoll will say it again */
        return;
    if (!takes_input(c)) {
        want(c, c->io.events & ~(uint32_t)EPOLLIN);
        return;
    }
    room = buf_room(&c->in, size);
    n = room == NULL ? -1 : recv(c->fd, room, size, MSG_DONTWAIT);
    if (n < 0 && room != NULL && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(c);
        return;
    }
    buf_added(&c->in, (size_t)n);
    serve_input(c);
}

static void conn_ready(struct loop_io *io, uint32_t events)
{
    struct conn *c = CONTAINER_OF(io, struct conn, io);

    c->hung |= (events & EPOLLHUP) != 0;
    if ((events & EPOLLIN) || (c->hung && is_typing(c)))
        conn_read(c);
    else if (events & (EPOLLHUP | EPOLLERR))
        conn_close(c);
    if (c->closing || (events & EPOLLOUT) == 0)
        return;
    c->full = false;
    conn_flush(c);
    if (!c->full)
        conn_pump(c);
    conn_update(c);
}

int conn_open(struct serve *s, int fd, struct err *e)
{
    struct conn *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    c->serve = s;
    c->fd = fd;
    c->pass_fd = -1;
    buf_init(&c->in, WIRE_HEAD + WIRE_FRAME_MAX + CONN_READ);
    buf_init(&c->out, CONN_OUT_MAX);
    list_init(&c->watch.link);
    list_init(&c->asking);
    if (loop_io_start(s->loop, &c->io, fd, EPOLLIN, conn_ready, e) < 0) {
        free(c);
        return -1;
    }
    list_add_tail(&s->conns, &c->link);
    s->nconns++;
    conn_send(c, INIT_HELLO, &s->hello);
    return 0;
}
