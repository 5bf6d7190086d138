/* conn.c - see conn.h: the life of a connection and its phases. */
#include "http/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "http/server.h"
#include "mem/mem.h"

static void on_io(struct loop_io *io, uint32_t events);
static void on_later(struct loop_later *l);
static void on_timer(struct loop_timer *t);

static struct loop *loop_of(const struct http_conn *c)
{
    return c->server->opts.loop;
}

/* ---- birth and death ---- */

int http_conn_new(struct http_server *s, int fd, struct err *e)
{
    autofd int owned = fd;
    struct http_conn *c = mem_zeroed(1, sizeof(*c));
    const char *why;

    c->server = s;
    buf_init(&c->in, HTTP_READ_SIZE + HTTP_HEAD_MAX);
    buf_init(&c->out, HTTP_BACKLOG_MAX);
    buf_init(&c->extra, HTTP_EXTRA_MAX);
    if (loop_io_start(s->opts.loop, &c->io, fd, EPOLLIN, on_io, e) < 0) {
        free(c);
        return -1;
    }
    take_fd(&owned);
    list_add_tail(&s->conns, &c->link);
    s->nconns++;
    http_conn_deadline(c, &c->read_due_ns, HTTP_IDLE_MS);
    why = http_crowd_admit(c);
    if (why != NULL)
        http_conn_refuse(c, 503, why);
    return 0;
}

/* The handler is told at most once, and only while its answer has not ended. */
static void tell_gone(struct http_conn *c)
{
    struct http_req *r = &c->req;
    bool owed = r->active;

    r->active = false;
    if (owed && r->on_gone != NULL)
        r->on_gone(r, r->gone_arg);
}

void http_conn_free(struct http_conn *c)
{
    struct http_server *s = c->server;
    int fd = c->io.fd;

    c->broken = true;
    tell_gone(c);
    http_file_drop(c);
    http_ws_free(c);
    http_tunnel_free(c);
    http_request_reset(c);
    http_crowd_leave(c);
    loop_undefer(&c->later);
    loop_timer_stop(s->opts.loop, &c->timer);
    loop_io_stop(s->opts.loop, &c->io);
    drop_fd(&fd);
    list_del(&c->link);
    buf_free(&c->in);
    buf_free(&c->out);
    buf_free(&c->extra);
    buf_free(&c->collected);
    free(c->head);
    free(c);
    s->nconns--;
    http_server_shrunk(s);
}

void http_conn_break(struct http_conn *c)
{
    c->broken = true;
    loop_defer(loop_of(c), &c->later, on_later);
}

void http_conn_kick(struct http_conn *c)
{
    if (!c->busy)
        loop_defer(loop_of(c), &c->later, on_later);
}

void http_conn_linger(struct http_conn *c)
{
    c->phase = PHASE_LINGER;
    c->send_due_ns = 0;
    if (c->eof || shutdown(c->io.fd, SHUT_WR) < 0) {
        http_conn_break(c);
        return;
    }
    http_conn_deadline(c, &c->read_due_ns, HTTP_LINGER_MS);
}

bool http_conn_is_idle(const struct http_conn *c)
{
    return c->phase == PHASE_HEAD && c->in.len == 0 && c->out.len == 0 && !c->busy;
}

/* ---- refusal ---- */

static const struct refusal {
    int status;
    enum err_kind kind;
} refusals[] = {
    {400, ERR_INVALID},   {405, ERR_METHOD},      {408, ERR_TIMEOUT},     {413, ERR_TOO_LARGE},
    {414, ERR_TOO_LARGE}, {417, ERR_UNSUPPORTED}, {426, ERR_INVALID},     {431, ERR_TOO_LARGE},
    {500, ERR_INTERNAL},  {501, ERR_UNSUPPORTED}, {503, ERR_UNAVAILABLE}, {505, ERR_UNSUPPORTED},
};

void http_conn_refuse(struct http_conn *c, int status, const char *why)
{
    const char *code = err_code(ERR_INVALID);
    char body[512];
    int n;

    http_crowd_busy(c);
    tell_gone(c);
    if (c->broken)
        return;
    if (c->req.reply != REPLY_NONE) {
        http_conn_break(c);
        return;
    }
    if (c->req.id[0] == '\0')
        http_server_next_id(c->server, c->req.id);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (refusals[i].status == status)
            code = err_code(refusals[i].kind);
    /* `why` is our own text and needs no escaping. */
    n = snprintf(body, sizeof(body),
                 "{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"request_id\":\"%s\"}}", code,
                 why, c->req.id);
    c->req.keep_alive = false;
    if (status == 503)
        http_reply_header(&c->req, "Retry-After", "1");
    c->phase = PHASE_BODY; /* later bytes of this connection cannot be parsed */
    c->req.body.use = BODY_UNASKED;
    http_reply(&c->req, status, "application/json", body, (size_t)n);
}

/* ---- time ----
 * A deadline moves with every request; its timer is set again only if it would fire
 * too late, and when it fires too early. */

static void arm(struct http_conn *c)
{
    uint64_t a = c->read_due_ns, b = c->send_due_ns, now = loop_now_ns(loop_of(c));
    uint64_t due = a == 0 || (b != 0 && b < a) ? b : a;

    if (due == 0 || (c->timer.slot != 0 && c->timer.due_ns <= due))
        return;
    if (loop_timer_set(loop_of(c), &c->timer, due > now ? (due - now + 999999u) / 1000000u : 0,
                       on_timer) < 0)
        http_conn_break(c);
}

void http_conn_deadline(struct http_conn *c, uint64_t *due_ns, uint64_t after_ms)
{
    *due_ns = loop_now_ns(loop_of(c)) + after_ms * 1000000u;
    arm(c);
}

static void on_timer(struct loop_timer *t)
{
    struct http_conn *c = CONTAINER_OF(t, struct http_conn, timer);
    uint64_t now = loop_now_ns(loop_of(c));

    if (c->broken)
        return;
    if (c->send_due_ns != 0 && c->send_due_ns <= now) {
        http_conn_break(c);
    } else if (c->read_due_ns != 0 && c->read_due_ns <= now) {
        c->read_due_ns = 0;
        if (c->phase == PHASE_HEAD && !http_conn_is_idle(c))
            http_conn_refuse(c, 408, "the head took too long");
        else if (c->phase == PHASE_BODY)
            http_conn_refuse(c, 408, "the body took too long");
        else if (c->phase != PHASE_WS || !http_ws_late(c))
            http_conn_break(c);
    }
    arm(c);
}

/* ---- phases ----
 * Each takes bytes from p and returns whether another step may follow. */

static int take_head(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    struct http_fault f;
    size_t len;
    bool first;
    int r;

    if (n >= 2 && !c->skipped && memcmp(p, "\r\n", 2) == 0) {
        c->skipped = true;
        *used = 2;
        return 1;
    }
    if (n == 0 || (n == 1 && p[0] == '\r' && !c->skipped)) {
        if (c->eof)
            http_conn_break(c);
        return 0;
    }
    first = c->scanned == 0;
    r = http_head_end(p, n, &c->scanned, &len, &f);
    if (r > 0) {
        *used = len;
        http_request_take(c, p, len);
    } else if (r < 0) {
        http_conn_refuse(c, f.status, f.why);
    } else if (c->eof) {
        http_conn_break(c);
    } else if (first) {
        http_conn_deadline(c, &c->read_due_ns, HTTP_HEAD_MS);
    }
    return r != 0;
}

static void trim(struct buf *b)
{
    if (b->cap > HTTP_KEEP_MAX && b->len == 0)
        buf_free(b);
}

static void next_request(struct http_conn *c)
{
    http_request_reset(c);
    c->phase = PHASE_HEAD;
    c->scanned = 0;
    c->skipped = false;
    trim(&c->in);
    trim(&c->out);
    trim(&c->extra);
    buf_clear(&c->collected);
    trim(&c->collected);
    if (c->head_cap > HTTP_KEEP_MAX) {
        free(take_ptr(&c->head));
        c->head_cap = 0;
    }
    http_conn_deadline(c, &c->read_due_ns, HTTP_IDLE_MS);
    http_crowd_idle(c);
    if (c->server->draining)
        http_conn_break(c);
}

/* Called when the kernel has taken the answer: decides what happens to the connection,
 * with `n` bytes unused. */
static int after_reply(struct http_conn *c, size_t n)
{
    struct http_req *r = &c->req;

    if (r->reply != REPLY_ENDED || c->out.len > 0)
        return 0;
    if (!r->keep_alive) {
        if (c->phase == PHASE_WAIT && n == 0)
            http_conn_break(c);
        else
            http_conn_linger(c);
        return 1;
    }
    if (c->phase == PHASE_WAIT)
        next_request(c);
    else
        r->body.use = BODY_DISCARD;
    return 1;
}

static int take_body(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    if (c->req.reply == REPLY_ENDED && c->req.body.use != BODY_DISCARD)
        return after_reply(c, n);
    return http_body_take(c, p, n, used);
}

static int take_nothing(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    (void)p, (void)used;
    return c->req.reply == REPLY_ENDED ? after_reply(c, n) : http_body_finish(c);
}

static int throw_away(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    (void)p;
    *used = n;
    c->lingered += n;
    if (c->eof)
        http_conn_break(c);
    return 0;
}

static int (*const take[PHASE_COUNT])(struct http_conn *c, const char *p, size_t n,
                                      size_t *used) = {
    [PHASE_HEAD] = take_head,    [PHASE_BODY] = take_body,  [PHASE_WAIT] = take_nothing,
    [PHASE_LINGER] = throw_away, [PHASE_WS] = http_ws_take, [PHASE_TUNNEL] = http_tunnel_take,
};

static size_t step(struct http_conn *c, const char *p, size_t n)
{
    size_t at = 0;

    while (!c->broken) {
        size_t used = 0;
        int again = take[c->phase](c, p + at, n - at, &used);

        at += used;
        if (!again)
            break;
    }
    return at;
}

/* ---- events of the socket ---- */

/* Also without a reader, one read is taken in, to notice a reset and to have a pipelined
 * request ready; the kernel holds the rest. */
static bool wants_input(const struct http_conn *c)
{
    if (c->eof)
        return false;
    switch (c->phase) {
    case PHASE_HEAD:
        return true;
    case PHASE_LINGER: /* beyond that its sending blocks, and the peer reads our answer */
        return c->lingered <= HTTP_LINGER_MAX;
    case PHASE_BODY:
        return !c->req.body.paused && (c->in.len == 0 || c->req.body.use != BODY_UNASKED);
    case PHASE_WS:
        return http_ws_wants_input(c);
    case PHASE_TUNNEL:
        return http_tunnel_wants_input(c);
    default:
        return c->in.len == 0;
    }
}

/* Bytes just received are used where they lie; only what is left is copied. */
static void run(struct http_conn *c, const char *p, size_t n)
{
    size_t used;

    c->busy = true;
    if (c->in.len > 0) {
        if (buf_add(&c->in, p, n) < 0)
            http_conn_break(c);
        used = step(c, buf_data(&c->in), c->in.len);
        buf_consume(&c->in, used);
    } else {
        used = step(c, p, n);
        if (used < n && !c->broken && buf_add(&c->in, p + used, n - used) < 0)
            http_conn_break(c);
    }
    if (c->out.len > 0 && !c->blocked && !c->broken)
        http_send_flush(c);
    http_file_step(c);
    c->busy = false;
    if (!c->broken)
        loop_io_set(loop_of(c), &c->io,
                    (c->blocked ? EPOLLOUT : 0) | (wants_input(c) ? EPOLLIN : 0));
}

static void on_io(struct loop_io *io, uint32_t events)
{
    struct http_conn *c = CONTAINER_OF(io, struct http_conn, io);
    struct http_req *r = &c->req;
    ssize_t n;

    if (c->broken)
        return;
    if (events & (EPOLLHUP | EPOLLERR)) {
        http_conn_break(c);
        return;
    }
    if (events & EPOLLOUT) {
        c->blocked = false;
        http_send_flush(c);
        if (!c->broken && c->out.len <= HTTP_BACKLOG_LOW && r->above_low) {
            r->above_low = false;
            if (c->phase == PHASE_WS)
                http_ws_drained(c);
            else if (c->phase == PHASE_TUNNEL)
                http_tunnel_drained(c);
            else if (r->active && r->on_drain != NULL)
                r->on_drain(r, r->drain_arg);
        }
        run(c, "", 0);
    }
    if (!(events & EPOLLIN) || c->broken || !wants_input(c))
        return;
    n = recv(c->io.fd, c->server->read, HTTP_READ_SIZE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->eof = n == 0;
    if (n < 0 || (c->eof && r->active && r->eof_is_gone))
        http_conn_break(c);
    else
        run(c, c->server->read, (size_t)n);
}

static void on_later(struct loop_later *l)
{
    struct http_conn *c = CONTAINER_OF(l, struct http_conn, later);

    if (c->broken)
        http_conn_free(c);
    else
        run(c, "", 0);
}
