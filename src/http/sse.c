/* sse.c - server-sent events on a chunked answer. An event goes from here through
 * http_write_pieces() (reply.c) to send.c, which writes to the socket. */
#include <string.h>

#include "base/own.h"
#include "http/conn.h"

static void on_silence(struct loop_timer *t)
{
    struct http_req *r = CONTAINER_OF(t, struct http_req, sse);
    uint64_t now = loop_now_ns(http_loop(r));

    /* An event only moves sse_due_ns; the timer itself is moved when it fires. */
    if (now >= r->sse_due_ns) {
        http_write(r, ":\n\n", 3);
        r->sse_due_ns = now + HTTP_SSE_KEEPALIVE_MS * 1000000ull;
    }
    loop_timer_set(http_loop(r), t, (r->sse_due_ns - now) / 1000000u, on_silence);
}

void http_sse_begin(struct http_req *r)
{
    http_reply_header(r, "Cache-Control", "no-store");
    http_reply_begin(r, 200, "text/event-stream");
    if (http_conn_of(r)->broken)
        return;
    r->sse_due_ns = loop_now_ns(http_loop(r)) + HTTP_SSE_KEEPALIVE_MS * 1000000ull;
    loop_timer_set(http_loop(r), &r->sse, HTTP_SSE_KEEPALIVE_MS, on_silence);
}

static bool has_break(const char *p, size_t n)
{
    return memchr(p, '\n', n) != NULL || memchr(p, '\r', n) != NULL;
}

/* A field with a line break would be read as two fields: omit it. */
static void add_field(struct buf *b, const char *name, const char *value)
{
    if (value == NULL || has_break(value, strlen(value)))
        return;
    buf_adds(b, name);
    buf_adds(b, value);
    buf_addc(b, '\n');
}

void http_sse_event(struct http_req *r, const char *id, const char *event, const char *data,
                    size_t len)
{
    static char end[] = "\n\n";
    struct buf *b = &http_conn_of(r)->server->event;
    struct iovec iov[3] = {{0}};

    buf_clear(b);
    add_field(b, "id: ", id);
    add_field(b, "event: ", event);
    buf_adds(b, "data: ");
    if (has_break(data, len))
        for (size_t i = 0; i < len; i++) { /* CR LF, LF and CR each end a line for the reader */
            if (data[i] == '\r' && i + 1 < len && data[i + 1] == '\n')
                continue;
            if (data[i] == '\n' || data[i] == '\r')
                buf_adds(b, "\ndata: ");
            else
                buf_addc(b, data[i]);
        }
    else
        iov[1] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    if (b->failed) {
        http_conn_break(http_conn_of(r));
        return;
    }
    iov[0] = (struct iovec){.iov_base = buf_data(b), .iov_len = b->len};
    iov[2] = (struct iovec){.iov_base = end, .iov_len = 2};
    http_write_pieces(r, iov, ARRAY_LEN(iov));
    r->sse_due_ns = loop_now_ns(http_loop(r)) + HTTP_SSE_KEEPALIVE_MS * 1000000ull;
    if (b->cap > HTTP_READ_SIZE)
        buf_free(b);
}
