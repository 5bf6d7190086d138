/* body.c - the body of a request: decoded, passed to the handler or discarded. */
#include "http/conn.h"

static void ask(struct http_req *r, enum body_use use)
{
    if (!r->active)
        return;
    r->body.use = use;
    http_conn_kick(http_conn_of(r));
}

void http_body_collect(struct http_req *r, size_t max,
                       void (*cb)(struct http_req *r, struct buf *body, void *arg), void *arg)
{
    struct http_conn *c = http_conn_of(r);

    r->body.on_all = cb;
    r->body.arg = arg;
    r->body.max = max;
    buf_clear(&c->collected);
    c->collected.max = max;
    ask(r, BODY_COLLECT);
}

void http_body_stream(struct http_req *r,
                      void (*on_data)(struct http_req *r, const char *p, size_t n, void *arg),
                      void (*on_end)(struct http_req *r, void *arg), void *arg)
{
    r->body.on_data = on_data;
    r->body.on_end = on_end;
    r->body.arg = arg;
    ask(r, BODY_STREAM);
}

void http_body_pause(struct http_req *r, bool paused)
{
    r->body.paused = paused;
    http_conn_kick(http_conn_of(r));
}

static void collect(struct http_conn *c, const char *p, size_t n)
{
    if (n > c->req.body.max - c->collected.len)
        http_conn_refuse(c, 413, "the body is too large");
    else if (buf_add(&c->collected, p, n) < 0)
        http_conn_refuse(c, 500, "out of memory");
}

static void discard(struct http_conn *c, const char *p, size_t n)
{
    (void)p;
    c->req.body.dropped += n;
    if (c->req.body.dropped > HTTP_DISCARD_MAX)
        http_conn_linger(c);
}

static void hand_on(struct http_conn *c, const char *p, size_t n)
{
    c->req.body.on_data(&c->req, p, n, c->req.body.arg);
}

static void (*const deliver[])(struct http_conn *c, const char *p, size_t n) = {
    [BODY_COLLECT] = collect, [BODY_STREAM] = hand_on, [BODY_DISCARD] = discard};

int http_body_take(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http_req *r = &c->req;
    struct http_str data = {.p = p};
    enum http_chunk_event ev = HTTP_CHUNK_DATA;
    struct http_fault f;

    if (r->body.use == BODY_UNASKED || r->body.paused) {
        c->read_due_ns = 0;
        return 0;
    }
    /* a Content-Length that is too large is refused before a byte of it is read */
    if (!c->msg.chunked && r->body.use == BODY_DISCARD &&
        (uint64_t)r->body.left > HTTP_DISCARD_MAX) {
        http_conn_linger(c);
        return 1;
    }
    if (!c->msg.chunked && r->body.use == BODY_COLLECT &&
        (uint64_t)r->head.content_length > r->body.max) {
        http_conn_refuse(c, 413, "the body is too large");
        return 1;
    }
    if (n == 0) {
        if (!r->body.continued && r->body.use != BODY_DISCARD) { /* the client may wait for it */
            r->body.continued = true;
            http_send_now(c, &(struct iovec){.iov_base = go_on, .iov_len = sizeof(go_on) - 1}, 1);
        }
        if (c->eof)
            http_conn_break(c);
        else if (c->read_due_ns == 0)
            http_conn_deadline(c, &c->read_due_ns, HTTP_BODY_MS);
        return 0;
    }
    r->body.continued = true;
    c->read_due_ns = 0;
    if (c->msg.chunked) {
        ev = http_chunk_next(&r->body.chunk, p, n, used, &data, &f);
    } else {
        data.len = *used = (uint64_t)r->body.left < n ? (size_t)r->body.left : n;
        r->body.left -= (int64_t)data.len;
    }
    if (ev == HTTP_CHUNK_BAD)
        http_conn_refuse(c, f.status, f.why);
    if (ev == HTTP_CHUNK_END || (!c->msg.chunked && r->body.left == 0))
        c->phase = PHASE_WAIT;
    if (ev == HTTP_CHUNK_DATA)
        deliver[r->body.use](c, data.p, data.len);
    return 1;
}

int http_body_finish(struct http_conn *c)
{
    struct http_req *r = &c->req;
    enum body_use use = r->body.use;

    if (use == BODY_UNASKED || (use == BODY_STREAM && r->body.paused))
        return 0;
    r->body.use = BODY_UNASKED;
    c->read_due_ns = 0;
    if (use == BODY_STREAM)
        r->body.on_end(r, r->body.arg);
    if (use != BODY_COLLECT)
        return 1;
    r->body.on_all(r, &c->collected, r->body.arg);
    buf_clear(&c->collected);
    if (c->collected.cap > HTTP_KEEP_MAX)
        buf_free(&c->collected);
    return 1;
}
