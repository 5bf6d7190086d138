/* tunnel.c - a connection that is no longer HTTP: bytes in both directions, as
 * they are. */
#include <stdlib.h>

#include "base/own.h"
#include "http/conn.h"
#include "mem/mem.h"

struct http_tunnel {
    struct http_conn *conn;
    struct http_tunnel_ops ops;
    void *arg;
    bool paused, told_eof;
    bool ending; /* once everything queued is sent */
};

void http_tunnel_free(struct http_conn *c)
{
    struct http_tunnel *t = take_ptr(&c->tunnel);

    if (t == NULL)
        return;
    if (t->ops.on_close != NULL)
        t->ops.on_close(t, t->arg);
    free(t);
}

bool http_tunnel_wants_input(const struct http_conn *c)
{
    return !c->tunnel->paused && !c->tunnel->ending;
}

void http_tunnel_drained(struct http_conn *c)
{
    if (c->tunnel->ops.on_drain != NULL && !c->tunnel->ending)
        c->tunnel->ops.on_drain(c->tunnel, c->tunnel->arg);
}

int http_tunnel_take(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    struct http_tunnel *t = c->tunnel;

    if (t->ending) {
        *used = n;
        if (c->out.len > 0)
            http_send_flush(c);
        if (c->out.len > 0 || c->broken)
            return 0;
        http_tunnel_free(c);
        http_conn_linger(c);
        return 1;
    }
    if (t->paused)
        return 0;
    if (n > 0) {
        *used = n;
        t->ops.on_data(t, p, n, t->arg);
        return 1;
    }
    if (c->eof && !t->told_eof) {
        t->told_eof = true;
        t->ops.on_eof(t, t->arg);
        return 1;
    }
    return 0;
}

struct http_tunnel *http_tunnel_begin(struct http_req *r, const struct http_tunnel_ops *ops,
                                      void *arg)
{
    struct http_conn *c = http_conn_of(r);
    struct http_tunnel *t;
    struct buf *b = &c->out;

    if (r->reply != REPLY_NONE || c->broken) {
        http_reply_abort(r);
        return NULL;
    }
    t = mem_zeroed(1, sizeof(*t));
    *t = (struct http_tunnel){.conn = c, .ops = *ops, .arg = arg};
    c->tunnel = t;
    r->active = false;
    r->reply = REPLY_ENDED;
    c->phase = PHASE_TUNNEL;
    c->read_due_ns = 0;
    buf_adds(b, "HTTP/1.1 101 Switching Protocols\r\n");
    buf_add(b, buf_data(&c->extra), c->extra.len);
    buf_adds(b, "\r\n");
    buf_clear(&c->extra);
    http_conn_kick(c);
    return t;
}

void http_tunnel_send(struct http_tunnel *t, const void *p, size_t n)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};

    if (!t->ending)
        http_send(t->conn, &iov, 1);
}

size_t http_tunnel_backlog(const struct http_tunnel *t)
{
    return t->conn->out.len;
}

void http_tunnel_pause(struct http_tunnel *t, bool paused)
{
    t->paused = paused;
    http_conn_kick(t->conn);
}

void http_tunnel_end(struct http_tunnel *t)
{
    t->ending = true;
    http_conn_kick(t->conn);
}

void http_tunnel_abort(struct http_tunnel *t)
{
    http_conn_break(t->conn);
}
