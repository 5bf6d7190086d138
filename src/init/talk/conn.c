/* conn.c - see conn.h. */
#include "init/talk/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"

#define CONN_READ 4096u  /* bytes, while the size of the next frame is not known */
#define CONN_KEEP 16384u /* an empty buffer larger than this is freed after the talk */
#define CONN_FRAMES_PER_TURN 16u
#define LIST_BATCH (64u << 10) /* records queued before the socket must take some */

static void input_later(struct loop_later *l);

/* ---- what it is ready for ---- */

static bool is_typing(const struct conn *c)
{
    return c->conns->talks[c->talk].input == INPUT_STDIN && c->watch.proc != NULL;
}

/* While the process does not read its stdin, what is typed stays in the socket. Unless the
 * front hung up: then it is taken now, and a socket holds less than there is room for above
 * STDIN_QUEUE_HIGH. */
static bool takes_input(const struct conn *c)
{
    if (c->conns->talks[c->talk].input == INPUT_REQUESTS)
        return true;
    return is_typing(c) &&
           (c->life == CONN_HUNG_UP || c->watch.proc->in.queue.len <= STDIN_QUEUE_HIGH);
}

static void update_events(struct conn *c)
{
    uint32_t events = takes_input(c) ? EPOLLIN : c->io.events & EPOLLIN;

    if (conn_is_closed(c))
        return;
    if (c->out_state != OUT_READY)
        events |= EPOLLOUT;
    loop_io_set(c->conns->loop, &c->io, events);
}

/* ---- the end ---- */

static void conn_free(struct loop_later *l)
{
    struct conn *c = CONTAINER_OF(l, struct conn, later);

    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

static void end_talk(struct conn *c)
{
    void (*free_detail)(void *) = c->conns->talks[c->talk].free;

    proc_watch_stop(&c->watch);
    if (c->detail != NULL)
        free_detail(take_ptr(&c->detail));
    list_del(&c->asking);
    loop_timer_stop(c->conns->loop, &c->timer);
    c->talk = TALK_NONE;
}

void conn_close(struct conn *c)
{
    if (conn_is_closed(c))
        return;
    c->life = CONN_CLOSED;
    end_talk(c);
    loop_io_stop(c->conns->loop, &c->io);
    loop_undefer(&c->soon);
    drop_fd(&c->fd);
    drop_fd(&c->pass_fd);
    list_del(&c->link);
    c->conns->count--;
    loop_defer(c->conns->loop, &c->later, conn_free);
}

/* ---- sending ---- */

/* The kernel takes pass_fd with the first byte. */
static ssize_t send_iov(struct conn *c, struct iovec *iov, size_t n)
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
    sent = send_iov(c, v, k);
    if (sent < 0 && errno != EAGAIN) {
        if (is_typing(c) && (errno == EPIPE || errno == ECONNRESET)) {
            c->life = CONN_HUNG_UP;
            c->out_state = OUT_FULL;
        } else {
            conn_close(c);
        }
        return -1;
    }
    if (sent < (ssize_t)all)
        c->out_state = OUT_FULL;
    if (sent < 0)
        return -1;
    drop_fd(&c->pass_fd);
    buf_consume(&c->out, (size_t)sent < had ? (size_t)sent : had);
    return (size_t)sent > had ? sent - (ssize_t)had : -1;
}

static void flush(struct conn *c)
{
    loop_undefer(&c->soon);
    while (conn_can_send(c) && c->out.len > 0)
        conn_push(c, NULL, 0);
    if (c->out.len == 0 && c->out.cap > CONN_KEEP)
        buf_free(&c->out);
}

static void flush_now(struct loop_later *l)
{
    struct conn *c = CONTAINER_OF(l, struct conn, soon);

    flush(c);
    update_events(c);
}

static void flush_soon(struct conn *c)
{
    if (c->out.len > 0 && c->out_state != OUT_FULL)
        loop_defer(c->conns->loop, &c->soon, flush_now);
}

void conn_send(struct conn *c, uint16_t type, const void *msg)
{
    struct err e;

    if (conn_is_closed(c))
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

void conn_set_more(struct conn *c, bool more)
{
    if (c->out_state != OUT_FULL)
        c->out_state = more ? OUT_MORE : OUT_READY;
}

void conn_hold(struct conn *c)
{
    loop_undefer(&c->soon);
}

bool conn_has_room(struct conn *c)
{
    if (c->out.len > LIST_BATCH)
        flush(c);
    return conn_can_send(c);
}

/* ---- last answers ---- */

/* Requests may be in the buffer already, and then no event announces them. */
static void resume_input(struct conn *c)
{
    if (c->in.len > 0 && c->in_state != IN_SERVING && takes_input(c))
        loop_defer(c->conns->loop, &c->later, input_later);
}

/* Not during a talk: one that sent large frames goes on sending them. */
static void shrink_input(struct conn *c)
{
    if (c->talk == TALK_NONE && c->in.len == 0 && c->in.cap > CONN_KEEP)
        buf_free(&c->in);
}

void conn_done(struct conn *c)
{
    if (!conn_is_closed(c))
        flush(c);
    if (conn_is_closed(c))
        return;
    end_talk(c);
    conn_set_more(c, false);
    shrink_input(c);
    resume_input(c);
    update_events(c);
}

void conn_ok(struct conn *c, uint64_t value)
{
    struct init_ok m = {.value = value};

    conn_send(c, INIT_OK, &m);
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

void conn_fail_with(struct conn *c, enum err_kind kind, const char *fmt, ...)
{
    struct err e = {0};
    va_list ap;

    e.kind = kind;
    va_start(ap, fmt);
    vsnprintf(e.msg, sizeof(e.msg), fmt, ap);
    va_end(ap);
    conn_fail(c, &e);
}

void conn_exit(struct conn *c)
{
    struct init_exit m;

    proc_fill_exit(c->watch.proc, &m);
    conn_send(c, INIT_EXIT, &m);
    conn_done(c);
}

void conn_pass(struct conn *c, enum init_fd_kind kind, int fd)
{
    struct init_fd m = {.kind = kind};

    drop_fd(&c->pass_fd);
    c->pass_fd = fd;
    conn_send(c, INIT_FD, &m);
    conn_done(c);
}

/* ---- talks ---- */

void conn_begin(struct conn *c, enum talk talk, void *detail)
{
    c->talk = talk;
    c->detail = detail;
}

static void on_late(struct loop_timer *t)
{
    struct conn *c = CONTAINER_OF(t, struct conn, timer);

    conn_fail_with(c, ERR_TIMEOUT, "timed out after %llu ms waiting for %s",
                   (unsigned long long)c->timeout_ms, c->waits_for);
}

void conn_deadline(struct conn *c, uint64_t timeout_ms, const char *fmt, ...)
{
    va_list ap;

    if (timeout_ms == 0)
        return;
    va_start(ap, fmt);
    vsnprintf(c->waits_for, sizeof(c->waits_for), fmt, ap);
    va_end(ap);
    c->timeout_ms = timeout_ms < PROC_TIME_MAX ? timeout_ms : PROC_TIME_MAX;
    if (loop_timer_set(c->conns->loop, &c->timer, c->timeout_ms, on_late) < 0)
        conn_fail_with(c, ERR_UNAVAILABLE, "out of memory");
}

void conn_pump(struct conn *c)
{
    if (!conn_is_closed(c) && c->conns->talks[c->talk].pump != NULL)
        c->conns->talks[c->talk].pump(c);
    if (conn_is_closed(c))
        return;
    flush_soon(c);
    resume_input(c);
    update_events(c);
}

static void watch_changed(struct proc_watch *w)
{
    struct conn *c = CONTAINER_OF(w, struct conn, watch);

    if (w->proc == NULL && c->talk != TALK_NONE)
        conn_fail_with(c, ERR_GONE, "the record of the process was dropped, to make room");
    else
        conn_pump(c);
}

void conn_watch(struct conn *c, struct proc *p, uint64_t cursor)
{
    proc_watch_start(&c->watch, p, cursor, watch_changed, c->talk == TALK_OWN);
    conn_pump(c);
}

/* ---- input ---- */

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

struct turn {
    struct conn *c;
    unsigned frames; /* served in this turn */
};

static enum wire_next serve_frame(void *arg, const struct wire_head *h, const char *body,
                                  struct err *e)
{
    struct turn *t = arg;
    struct conn *c = t->c;

    (void)e;
    c->in_state = IN_SERVING;
    c->conns->request(c, h, body);
    c->in_state = IN_READY;
    return conn_is_closed(c) || !takes_input(c) || ++t->frames == CONN_FRAMES_PER_TURN ? WIRE_STOP
                                                                                       : WIRE_NEXT;
}

static void serve_input(struct conn *c)
{
    struct turn t = {.c = c};
    struct err e;
    int ret = 0;

    c->in_state = IN_READY;
    if (!conn_is_closed(c) && takes_input(c))
        ret = wire_pump(&c->in, WIRE_FRAME_MAX, serve_frame, &t, &e);
    if (conn_is_closed(c))
        return;
    if (ret < 0) {
        conn_close(c);
        return;
    }
    if (t.frames == CONN_FRAMES_PER_TURN) {
        c->in_state = IN_MORE;
        loop_defer(c->conns->loop, &c->later, input_later);
    }
    shrink_input(c);
    update_events(c);
}

static void input_later(struct loop_later *l)
{
    serve_input(CONTAINER_OF(l, struct conn, later));
}

static void conn_read(struct conn *c)
{
    struct err e;
    int got;

    if (c->in_state == IN_MORE) /* what came before is served first; epoll reports it again */
        return;
    if (!takes_input(c)) {
        loop_io_set(c->conns->loop, &c->io, c->io.events & ~(uint32_t)EPOLLIN);
        return;
    }
    got = wire_receive(c->fd, &c->in, read_size(c), &e);
    if (got < 0)
        conn_close(c);
    else if (got > 0)
        serve_input(c);
}

static void conn_ready(struct loop_io *io, uint32_t events)
{
    struct conn *c = CONTAINER_OF(io, struct conn, io);

    if (events & EPOLLHUP)
        c->life = CONN_HUNG_UP;
    if ((events & EPOLLIN) || (c->life == CONN_HUNG_UP && is_typing(c)))
        conn_read(c);
    else if (events & (EPOLLHUP | EPOLLERR))
        conn_close(c);
    if (conn_is_closed(c) || (events & EPOLLOUT) == 0)
        return;
    c->out_state = OUT_READY; /* a talk that has more says so again when it is pumped */
    flush(c);
    if (c->out_state != OUT_FULL)
        conn_pump(c);
    update_events(c);
}

int conn_open(struct conns *cs, int fd, struct err *e)
{
    struct conn *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    c->conns = cs;
    c->fd = fd;
    c->pass_fd = -1;
    buf_init(&c->in, WIRE_HEAD + WIRE_FRAME_MAX + CONN_READ);
    buf_init(&c->out, CONN_OUT_MAX);
    list_init(&c->watch.link);
    list_init(&c->asking);
    if (loop_io_start(cs->loop, &c->io, fd, EPOLLIN, conn_ready, e) < 0) {
        free(c);
        return -1;
    }
    list_add_tail(&cs->all, &c->link);
    cs->count++;
    conn_send(c, INIT_HELLO, &cs->hello);
    return 0;
}
