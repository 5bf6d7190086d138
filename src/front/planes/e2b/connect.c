/* connect.c - see connect.h. */
#include "front/planes/e2b/connect.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/surface.h"
#include "http/http.h"
#include "json/write.h"

enum { FLAG_COMPRESSED = 1, FLAG_END = 2 };

/* ---- errors ---- */

/* clang-format off */
static const struct {
    const char *code;
    int status;
} codes[ERR_KIND_COUNT] = {
    [ERR_INTERNAL]     = {"internal",            500},
    [ERR_INVALID]      = {"invalid_argument",    400},
    [ERR_UNAUTHORIZED] = {"unauthenticated",     401},
    [ERR_DENIED]       = {"permission_denied",   403},
    [ERR_NOT_FOUND]    = {"not_found",           404},
    [ERR_METHOD]       = {"unimplemented",       405},
    [ERR_TIMEOUT]      = {"deadline_exceeded",   504},
    [ERR_CONFLICT]     = {"already_exists",      409},
    [ERR_GONE]         = {"unavailable",         503},
    [ERR_FENCED]       = {"failed_precondition", 409},
    [ERR_PRECONDITION] = {"failed_precondition", 400},
    [ERR_TOO_LARGE]    = {"resource_exhausted",  429},
    [ERR_MEDIA]        = {"unknown",             415},
    [ERR_RANGE]        = {"out_of_range",        400},
    [ERR_CANNOT_START] = {"invalid_argument",    400},
    [ERR_LIMIT]        = {"resource_exhausted",  429},
    [ERR_UNSUPPORTED]  = {"unimplemented",       501},
    [ERR_REMOTE]       = {"unavailable",         503},
    [ERR_UNAVAILABLE]  = {"unavailable",         503},
    [ERR_UNRESPONSIVE] = {"deadline_exceeded",   504},
    [ERR_DISK_FULL]    = {"internal",            500}, /* the others mean another thing to clients */
};
/* clang-format on */

const char *connect_code(const struct err *e)
{
    return codes[e->kind].code;
}

int connect_status(const struct err *e)
{
    return codes[e->kind].status;
}

static void put_error(struct json_w *w, const struct err *e)
{
    jw_open(w);
    jw_kstr(w, "code", connect_code(e));
    jw_kstr(w, "message", e->kind == ERR_INTERNAL ? "internal error" : e->msg);
    jw_close(w);
}

void connect_write_error(const struct err *e, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    put_error(&w, e);
}

/* ---- requests ---- */

bool connect_is_rpc(const struct call *c)
{
    const char *path = c->row != NULL ? c->row->route.path : "/";
    size_t n = strcspn(path + 1, "/");

    return memchr(path + 1, '.', n) != NULL;
}

bool connect_is_stream(const struct call *c)
{
    return c->row != NULL && c->row->body != NULL && c->row->body->unwrap == connect_unwrap;
}

static uint32_t length_of(const unsigned char *p)
{
    return (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
}

int connect_unwrap(const char **p, size_t *n, struct err *e)
{
    const unsigned char *head = (const unsigned char *)*p;

    if (*n < CONNECT_ENVELOPE || length_of(head) != *n - CONNECT_ENVELOPE)
        return err_set(e, ERR_INVALID, "protocol error: expected one enveloped message");
    if ((head[0] & FLAG_COMPRESSED) != 0)
        return err_set(e, ERR_UNSUPPORTED, "compressed messages are not supported");
    *p += CONNECT_ENVELOPE;
    *n -= CONNECT_ENVELOPE;
    return 0;
}

static uint64_t number_in(struct call *c, const char *header, uint64_t max, uint64_t otherwise)
{
    const char *text = c->r != NULL ? http_header(c->r, header) : NULL;
    uint64_t v;

    return text != NULL && str_u64(text, max, &v) == 0 ? v : otherwise;
}

uint64_t connect_timeout_ms(struct call *c)
{
    return number_in(c, "Connect-Timeout-Ms", CONNECT_TIMEOUT_MAX_MS, 0);
}

/* ---- streams ---- */

static void put(struct call *c, unsigned char flags, const struct buf *message)
{
    autobuf struct buf out = BUF_INIT(CONNECT_ENVELOPE + CONNECT_MESSAGE_MAX);
    uint32_t n = (uint32_t)message->len;
    char head[CONNECT_ENVELOPE] = {(char)flags, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8),
                                   (char)n};

    buf_add(&out, head, sizeof(head));
    buf_add(&out, buf_data(message), message->len);
    if (message->failed || out.failed)
        call_cut(c);
    else
        call_write(c, buf_data(&out), out.len);
}

static void ping(struct loop_timer *t);

static void ping_later(struct connect_stream *s)
{
    loop_timer_set(s->c->loop, &s->ping, s->ping_ms, ping);
}

static void ping(struct loop_timer *t)
{
    struct connect_stream *s = CONTAINER_OF(t, struct connect_stream, ping);
    autobuf struct buf message = BUF_INIT(256);

    buf_adds(&message, s->keepalive);
    connect_send(s, &message);
}

static void time_is_over(struct loop_timer *t)
{
    struct connect_stream *s = CONTAINER_OF(t, struct connect_stream, limit);
    struct err e;

    err_set(&e, ERR_TIMEOUT, "the client's deadline is exceeded");
    connect_fail(s->c, &e);
}

void connect_begin(struct connect_stream *s, struct call *c, const char *keepalive, bool limited)
{
    uint64_t limit = connect_timeout_ms(c);

    s->c = c;
    s->keepalive = keepalive;
    s->ping_ms = 1000 * number_in(c, "Keepalive-Ping-Interval", CONNECT_PING_MAX_S, CONNECT_PING_S);
    if (s->ping_ms == 0)
        s->ping_ms = 1000 * CONNECT_PING_S;
    if (c->r != NULL)
        http_eof_is_gone(c->r); /* nothing may have to be sent for long, and so be noticed */
    call_begin_bytes(c, CONNECT_TYPE);
    ping_later(s);
    if (limited && limit != 0)
        loop_timer_set(c->loop, &s->limit, limit, time_is_over);
}

void connect_send(struct connect_stream *s, struct buf *message)
{
    if (s->c->r == NULL)
        return;
    put(s->c, 0, message);
    if (s->c->r != NULL)
        ping_later(s);
}

/* Of the client's end: what the engine still owes is waited for elsewhere. */
static void end(struct call *c, const struct err *e)
{
    autobuf struct buf message = BUF_INIT(8u << 10);
    struct json_w w;

    if (c->r == NULL)
        return;
    jw_init(&w, &message);
    jw_open(&w);
    if (e != NULL) {
        jw_key(&w, "error");
        put_error(&w, e);
    }
    jw_close(&w);
    put(c, FLAG_END, &message);
    call_end(c);
}

void connect_end(struct connect_stream *s)
{
    end(s->c, NULL);
}

void connect_fail(struct call *c, const struct err *e)
{
    if (!c->streaming)
        call_begin_bytes(c, CONNECT_TYPE);
    end(c, e);
}

void connect_drop(struct connect_stream *s)
{
    if (s->c == NULL)
        return;
    loop_timer_stop(s->c->loop, &s->ping);
    loop_timer_stop(s->c->loop, &s->limit);
}
