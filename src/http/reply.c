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

/* False, and a log line, if an answer was begun before: a bug of ours, which must not
 * send a second answer. */
static bool begin(struct http_req *r, int status, const char *type, enum reply_state framing,
                  uint64_t length)
{
    struct http_conn *c = http_conn_of(r);
    struct buf *b = &c->out;
    bool unread, bodiless = status == 204 || status == 304;
    const char *reason = "Status";

    if (r->reply != REPLY_NONE || c->broken) {
        if (!c->broken)
            log_error("%s: answered twice; the second answer (%d) is dropped", r->id, status);
        return false;
    }
    r->reply = framing == REPLY_CHUNKED && c->msg.minor == 0 ? REPLY_RAW : framing;
    /* The request has a body that no handler reads and that may be too long to drain, or that the
     * client still holds back: then the answer says Connection: close. Also while the handler
     * streams the body: it may stop reading at the end of the answer, too late for that header. */
    unread = c->phase == PHASE_BODY && r->body.use != BODY_COLLECT &&
             (!r->body.continued || c->msg.chunked || (uint64_t)r->body.left > HTTP_DISCARD_MAX);
    r->keep_alive = r->keep_alive && !c->server->draining && r->reply != REPLY_RAW && !unread;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            reason = reasons[i].text;
    buf_add(b, "HTTP/1.1 ", 9);
    add_number(b, (uint64_t)status);
    buf_addc(b, ' ');
    buf_adds(b, reason);
    buf_add(b, "\r\n", 2);
    if (!r->bare) {
        add_header(b, "Date", http_server_date(c->server));
        add_header(b, "X-Request-Id", r->id);
    }
    if (type != NULL)
        add_header(b, "Content-Type", type);
    if (r->reply == REPLY_CHUNKED && !bodiless) {
        add_header(b, "Transfer-Encoding", "chunked");
    } else if (r->reply == REPLY_LENGTH && !bodiless) {
        buf_adds(b, "Content-Length: ");
        add_number(b, length);
        buf_add(b, "\r\n", 2);
    }
    buf_add(b, buf_data(&c->extra), c->extra.len);
    buf_clear(&c->extra);
    if (!r->keep_alive)
        add_header(b, "Connection", "close");
    else if (c->msg.minor == 0)
        add_header(b, "Connection", "keep-alive");
    buf_add(b, "\r\n", 2);
    r->reply_left = length;
    if (r->is_head || bodiless)
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

void http_write_pieces(struct http_req *r, const struct iovec *iov, size_t n)
{
    static char crlf[] = "\r\n";
    struct http_conn *c = http_conn_of(r);
    struct iovec v[HTTP_PIECES_MAX + 2];
    char line[20], *end = line;
    size_t len = 0;
    int shift = 60;

    for (size_t i = 0; i < n; i++)
        len += iov[i].iov_len;
    if (len == 0 || c->broken || r->reply == REPLY_MUTE)
        return;
    if (r->reply == REPLY_CHUNKED) {
        while (shift > 0 && (len >> shift) == 0)
            shift -= 4;
        for (; shift >= 0; shift -= 4)
            *end++ = "0123456789abcdef"[(len >> shift) & 15];
        end = stpcpy(end, crlf);
        v[0] = (struct iovec){.iov_base = line, .iov_len = (size_t)(end - line)};
        memcpy(v + 1, iov, n * sizeof(*iov));
        v[n + 1] = (struct iovec){.iov_base = crlf, .iov_len = 2};
        http_send(c, v, n + 2);
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
