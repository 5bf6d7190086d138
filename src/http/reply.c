/* reply.c - answers: head, framing, end. */
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "http/conn.h"
#include "http/server.h"

/* clang-format off */
static const struct {
    int status;
    const char *text;
} reasons[] = {
    {101, "Switching Protocols"},
    {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"}, {206, "Partial Content"},
    {207, "Multi-Status"},
    {301, "Moved Permanently"}, {302, "Found"}, {303, "See Other"}, {304, "Not Modified"},
    {307, "Temporary Redirect"}, {308, "Permanent Redirect"},
    {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
    {405, "Method Not Allowed"}, {406, "Not Acceptable"}, {408, "Request Timeout"}, {409, "Conflict"},
    {410, "Gone"}, {411, "Length Required"}, {412, "Precondition Failed"}, {413, "Content Too Large"},
    {414, "URI Too Long"}, {415, "Unsupported Media Type"}, {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"}, {422, "Unprocessable Content"}, {426, "Upgrade Required"},
    {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"}, {501, "Not Implemented"}, {502, "Bad Gateway"},
    {503, "Service Unavailable"}, {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};
/* clang-format on */

static const char *reason(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Status";
}

/* ---- the head ---- */

static bool is_printable(const char *s)
{
    for (; *s != '\0'; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static void add_header(struct buf *b, const char *name, const char *value)
{
    buf_adds(b, name);
    buf_add(b, ": ", 2);
    buf_adds(b, value);
    buf_add(b, "\r\n", 2);
}

static void add_number(struct buf *b, uint64_t v)
{
    char text[STR_DEC_MAX];

    buf_add(b, text, str_dec(text, v));
}

void http_reply_header(struct http_req *r, const char *name, const char *value)
{
    struct http_conn *c = http_conn_of(r);

    if (!is_printable(name) || !is_printable(value)) {
        log_warn("%s: answer header %s dropped: control character in it", r->id, name);
        return;
    }
    add_header(&c->extra, name, value);
    if (c->extra.failed) {
        log_warn("%s: answer headers dropped: larger than %u bytes", r->id, HTTP_HEAD_MAX);
        c->extra.failed = false;
    }
}

void http_reply_bare(struct http_req *r)
{
    r->bare = true;
}

/* True if the request has a body that no handler reads and that may be too long to drain,
 * or that the client still holds back: then the answer says Connection: close. Also while
 * the handler streams the body: it may stop reading at the end of the answer, too late
 * for that header. */
static bool leaves_body_behind(const struct http_conn *c)
{
    const struct http_req *r = &c->req;

    if (c->phase != PHASE_BODY || r->body.use == BODY_COLLECT)
        return false;
    return !r->body.continued || c->msg.chunked || (uint64_t)r->body.left > HTTP_DISCARD_MAX;
}

static void add_framing(struct http_conn *c, int status, uint64_t length)
{
    struct buf *b = &c->out;

    if (status == 204 || status == 304)
        return;
    if (c->req.reply == REPLY_CHUNKED) {
        buf_adds(b, "Transfer-Encoding: chunked\r\n");
    } else if (c->req.reply == REPLY_LENGTH) {
        buf_adds(b, "Content-Length: ");
        add_number(b, length);
        buf_add(b, "\r\n", 2);
    }
}

static void add_connection(struct http_conn *c)
{
    if (!c->req.keep_alive)
        buf_adds(&c->out, "Connection: close\r\n");
    else if (c->msg.minor == 0)
        buf_adds(&c->out, "Connection: keep-alive\r\n");
}

/* False, and a log line, if an answer was begun before: a bug of ours, which must not
 * send a second answer. */
static bool begin(struct http_req *r, int status, const char *type, enum reply_state framing,
                  uint64_t length)
{
    struct http_conn *c = http_conn_of(r);
    struct buf *b = &c->out;

    if (r->reply != REPLY_NONE || c->broken) {
        if (!c->broken)
            log_error("%s: answered twice; the second answer (%d) is dropped", r->id, status);
        return false;
    }
    r->reply = framing == REPLY_CHUNKED && c->msg.minor == 0 ? REPLY_RAW : framing;
    r->keep_alive =
        r->keep_alive && !c->server->draining && r->reply != REPLY_RAW && !leaves_body_behind(c);
    buf_add(b, "HTTP/1.1 ", 9);
    add_number(b, (uint64_t)status);
    buf_addc(b, ' ');
    buf_adds(b, reason(status));
    buf_add(b, "\r\n", 2);
    if (!r->bare) {
        add_header(b, "Date", http_server_date(c->server));
        add_header(b, "X-Request-Id", r->id);
    }
    if (type != NULL)
        add_header(b, "Content-Type", type);
    add_framing(c, status, length);
    buf_add(b, buf_data(&c->extra), c->extra.len);
    buf_clear(&c->extra);
    add_connection(c);
    buf_add(b, "\r\n", 2);
    r->reply_left = length;
    if (r->is_head || status == 204 || status == 304)
        r->reply = REPLY_MUTE;
    return true;
}

/* ---- the body ---- */

void http_reply_sent(struct http_req *r)
{
    struct http_conn *c = http_conn_of(r);

    r->reply = REPLY_ENDED;
    r->active = false;
    r->body.use = BODY_UNASKED;
    r->body.paused = false;
    c->read_due_ns = 0;
    loop_timer_stop(c->server->opts.loop, &r->sse);
    http_conn_kick(c);
}

void http_reply(struct http_req *r, int status, const char *type, const void *body, size_t len)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)body, .iov_len = len};

    r->body.use = BODY_UNASKED;
    if (!begin(r, status, type, REPLY_LENGTH, len))
        return;
    http_send_now(http_conn_of(r), &iov, r->reply != REPLY_MUTE);
    http_reply_sent(r);
}

/* The head waits for the first bytes of the body or the end of this turn. */
void http_reply_begin(struct http_req *r, int status, const char *type)
{
    if (begin(r, status, type, REPLY_CHUNKED, 0))
        http_conn_kick(http_conn_of(r));
}

void http_reply_begin_length(struct http_req *r, int status, const char *type, uint64_t length)
{
    if (begin(r, status, type, REPLY_LENGTH, length))
        http_conn_kick(http_conn_of(r));
}

static size_t chunk_line(char out[20], size_t n)
{
    static const char hex[] = "0123456789abcdef";
    char *p = out;
    int shift = 60;

    while (shift > 0 && (n >> shift) == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        *p++ = hex[(n >> shift) & 15];
    *p++ = '\r';
    *p++ = '\n';
    return (size_t)(p - out);
}

static void write_chunk(struct http_conn *c, const struct iovec *iov, size_t n, size_t len)
{
    static char crlf[] = "\r\n";
    char line[20];
    struct iovec v[HTTP_PIECES_MAX + 2] = {{.iov_base = line, .iov_len = chunk_line(line, len)}};

    memcpy(v + 1, iov, n * sizeof(*iov));
    v[n + 1] = (struct iovec){.iov_base = crlf, .iov_len = 2};
    http_send(c, v, n + 2);
}

void http_write_pieces(struct http_req *r, const struct iovec *iov, size_t n)
{
    struct http_conn *c = http_conn_of(r);
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += iov[i].iov_len;
    if (len == 0 || c->broken || r->reply == REPLY_MUTE)
        return;
    if (r->reply == REPLY_CHUNKED) {
        write_chunk(c, iov, n, len);
    } else if (r->reply == REPLY_RAW) {
        http_send(c, iov, n);
    } else if (r->reply == REPLY_LENGTH && len <= r->reply_left) {
        r->reply_left -= len;
        http_send(c, iov, n);
    } else {
        log_error("%s: %zu bytes written that no answer has room for", r->id, len);
        http_conn_break(c);
    }
}

void http_write(struct http_req *r, const void *p, size_t n)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};

    http_write_pieces(r, &iov, 1);
}

size_t http_backlog(const struct http_req *r)
{
    return http_conn_of(r)->out.len;
}

void http_on_drain(struct http_req *r, void (*cb)(struct http_req *r, void *arg), void *arg)
{
    r->on_drain = cb;
    r->drain_arg = arg;
}

void http_reply_end(struct http_req *r)
{
    static char last[] = "0\r\n\r\n";
    struct iovec iov = {.iov_base = last, .iov_len = sizeof(last) - 1};

    if (r->reply == REPLY_NONE || r->reply == REPLY_ENDED) {
        if (!http_conn_of(r)->broken) /* a broken connection could not begin its answer */
            log_error("%s: an answer ended that was not begun", r->id);
        return;
    }
    if (r->reply == REPLY_LENGTH && r->reply_left > 0) {
        log_error("%s: the answer is %llu bytes short", r->id, (unsigned long long)r->reply_left);
        http_reply_abort(r);
        return;
    }
    http_send_now(http_conn_of(r), &iov, r->reply == REPLY_CHUNKED);
    http_reply_sent(r);
}

void http_reply_abort(struct http_req *r)
{
    struct http_conn *c = http_conn_of(r);

    http_reply_sent(r);
    if (!c->blocked)
        http_send_flush(c); /* send the bytes queued before the failure */
    http_conn_break(c);
}
