/* ws.c - WebSocket: a strict handshake, then libwslay between the connection's
 * bytes and messages. wslay never sees the socket: it is fed what was received,
 * and all its output goes into the connection's queue at once, so its own queue is
 * empty between calls. */
#include <linux/sockios.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <wslay/wslay.h>

#include "base/own.h"
#include "base/str.h"
#include "http/conn.h"
#include "mem/mem.h"

#define WS_CLOSE_MS 5000 /* for the peer to take more, or to answer our close frame */
#define WS_REASON_MAX 123

struct http_ws {
    struct http_conn *conn;
    wslay_event_context_ptr ctx;
    struct http_ws_ops ops;
    void *arg;
    const char *src; /* points into what was just received */
    size_t nsrc;
    size_t untaken; /* bytes not taken at the last check after our close frame was queued */
    bool paused, pinged;
};

/* ---- between wslay and the connection ---- */

static ssize_t give(wslay_event_context_ptr ctx, uint8_t *to, size_t room, int flags, void *arg)
{
    struct http_ws *ws = arg;
    size_t n = ws->nsrc < room ? ws->nsrc : room;

    (void)flags;
    if (n == 0 || ws->paused) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, ws->src, n);
    ws->src += n;
    ws->nsrc -= n;
    return (ssize_t)n;
}

static ssize_t collect(wslay_event_context_ptr ctx, const uint8_t *p, size_t n, int flags,
                       void *arg)
{
    struct http_ws *ws = arg;

    (void)ctx, (void)flags;
    http_send(ws->conn, &(struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n}, 1);
    return (ssize_t)n;
}

static void message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                    void *arg)
{
    struct http_ws *ws = arg;

    (void)ctx;
    if (m->opcode == WSLAY_TEXT_FRAME || m->opcode == WSLAY_BINARY_FRAME)
        ws->ops.on_message(ws, m->opcode == WSLAY_BINARY_FRAME, (const char *)m->msg, m->msg_length,
                           ws->arg);
}

/* After every message: wslay would send a close frame before data still queued. */
static void flush(struct http_ws *ws)
{
    if (ws->conn->broken)
        return;
    if (wslay_event_send(ws->ctx) < 0 || http_ws_backlog(ws) > HTTP_BACKLOG_MAX)
        http_conn_break(ws->conn);
}

/* ---- the end ---- */

void http_ws_free(struct http_conn *c)
{
    struct http_ws *ws = take_ptr(&c->ws);
    bool peers;

    if (ws == NULL)
        return;
    /* the code of the peer's close frame; else of ours if the peer broke the protocol; else 1006 */
    peers = wslay_event_get_close_received(ws->ctx) || !wslay_event_get_close_sent(ws->ctx) ||
            wslay_event_want_read(ws->ctx);
    ws->ops.on_close(ws,
                     peers ? wslay_event_get_status_code_received(ws->ctx)
                           : wslay_event_get_status_code_sent(ws->ctx),
                     ws->arg);
    wslay_event_context_free(ws->ctx);
    free(ws);
}

static bool is_over(const struct http_ws *ws)
{
    return wslay_event_get_close_sent(ws->ctx) && !wslay_event_want_read(ws->ctx);
}

/* ---- called by the connection ---- */

bool http_ws_wants_input(const struct http_conn *c)
{
    return !c->ws->paused && c->out.len < HTTP_BACKLOG_HIGH && !is_over(c->ws);
}

void http_ws_drained(struct http_conn *c)
{
    if (c->ws->ops.on_drain != NULL && !is_over(c->ws))
        c->ws->ops.on_drain(c->ws, c->ws->arg);
}

static void expect_life(struct http_ws *ws, uint64_t ms)
{
    if (!wslay_event_get_close_sent(ws->ctx))
        http_conn_deadline(ws->conn, &ws->conn->read_due_ns, ms);
}

/* While we do not read, silence of the peer means nothing; the send deadline finds a peer
 * that does not read either. */
bool http_ws_late(struct http_conn *c)
{
    struct http_ws *ws = c->ws;
    struct wslay_event_msg ping = {.opcode = WSLAY_PING};
    size_t before = ws->untaken;

    if (wslay_event_get_close_sent(ws->ctx)) {
        /* it is queued after earlier data: a peer that reads slowly has not seen it yet */
        ws->untaken = http_ws_untaken(ws);
        if (ws->untaken >= before)
            return false;
        http_conn_deadline(c, &c->read_due_ns, WS_CLOSE_MS);
        return true;
    }
    if (ws->pinged && http_ws_wants_input(c))
        return false;
    if (http_ws_wants_input(c) && wslay_event_queue_msg(ws->ctx, &ping) == 0) {
        ws->pinged = true;
        flush(ws);
    }
    expect_life(ws, ws->pinged ? HTTP_WS_PONG_MS : HTTP_WS_IDLE_MS);
    return true;
}

int http_ws_take(struct http_conn *c, const char *p, size_t n, size_t *used)
{
    struct http_ws *ws = c->ws;

    if (n > 0 && http_ws_wants_input(c)) {
        ws->pinged = false;
        expect_life(ws, HTTP_WS_IDLE_MS);
        ws->src = p;
        ws->nsrc = n;
        if (wslay_event_recv(ws->ctx) < 0)
            http_conn_break(c);
        *used = n - ws->nsrc;
        ws->nsrc = 0;
    }
    flush(ws);
    if (c->broken)
        return 0;
    if (is_over(ws)) {
        if (c->out.len > 0)
            http_send_flush(c);
        if (c->out.len > 0)
            return 0; /* called again when the kernel has taken the close frame */
        http_ws_free(c);
        http_conn_linger(c);
        return 1;
    }
    if (n == *used && c->eof)
        http_conn_break(c);
    return 0;
}

void http_ws_goodbye(struct http_conn *c)
{
    http_ws_close(c->ws, WSLAY_CODE_GOING_AWAY, "the server is stopping");
}

/* ---- the handshake ---- */

/* base64(SHA-1(key + a fixed GUID)). */
int http_ws_accept_key(const char *key, char out[HTTP_WS_ACCEPT_SIZE])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[24 + sizeof(guid)];
    unsigned char digest[20];
    autobuf struct buf raw = BUF_INIT(64), b64 = BUF_INIT(64);

    if (strlen(key) != 24 || str_unbase64(&raw, key, 24) < 0 || raw.len != 16)
        return -1;
    str_fmt(text, sizeof(text), "%s%s", key, guid);
    if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha1(), NULL) != 1 ||
        str_base64(&b64, digest, sizeof(digest)) < 0)
        return -1;
    str_fmt(out, HTTP_WS_ACCEPT_SIZE, "%s", buf_cstr(&b64));
    return 0;
}

/* 0, or the status of the refusal. */
static int judge(struct http_req *r, char accept[HTTP_WS_ACCEPT_SIZE], const char **why)
{
    const char *version = http_header(r, "Sec-WebSocket-Version");
    const char *key = http_header(r, "Sec-WebSocket-Key");
    const char *upgrade = http_header(r, "Upgrade");
    struct http_conn *c = http_conn_of(r);

    *why = "this path speaks WebSocket";
    if (upgrade == NULL || !http_list_has(upgrade, strlen(upgrade), "websocket") || !c->msg.upgrade)
        return 426;
    *why = "a WebSocket handshake is a GET of HTTP/1.1 without a body";
    if (strcmp(r->head.method.p, "GET") != 0 || c->msg.minor == 0 || r->head.has_body)
        return 400;
    *why = "only WebSocket version 13 is spoken here";
    if (version == NULL || strcmp(version, "13") != 0)
        return 426;
    *why = "Sec-WebSocket-Key is not 16 bytes in base64";
    return key == NULL || http_ws_accept_key(key, accept) < 0 ? 400 : 0;
}

static struct http_ws *refuse(struct http_req *r, int status, const char *why)
{
    r->on_gone = NULL;
    if (status == 426) {
        http_reply_header(r, "Upgrade", "websocket");
        http_reply_header(r, "Sec-WebSocket-Version", "13");
    }
    http_conn_refuse(http_conn_of(r), status, why);
    return NULL;
}

struct http_ws *http_ws_accept(struct http_req *r, const char *protocol,
                               const struct http_ws_ops *ops, void *arg)
{
    static const struct wslay_event_callbacks cb = {
        .recv_callback = give, .send_callback = collect, .on_msg_recv_callback = message};
    struct http_conn *c = http_conn_of(r);
    struct buf *b = &c->out;
    char accept[HTTP_WS_ACCEPT_SIZE];
    const char *why;
    struct http_ws *ws;
    int status = judge(r, accept, &why);

    if (status != 0)
        return refuse(r, status, why);
    ws = mem_zeroed(1, sizeof(*ws));
    if (wslay_event_context_server_init(&ws->ctx, &cb, ws) != 0) {
        free(ws);
        return refuse(r, 500, "out of memory");
    }
    wslay_event_config_set_max_recv_msg_length(ws->ctx, HTTP_WS_MESSAGE_MAX);
    ws->conn = c;
    ws->ops = *ops;
    ws->arg = arg;
    c->ws = ws;
    r->active = false;
    r->reply = REPLY_ENDED;
    c->phase = PHASE_WS;
    buf_adds(b, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Accept: ");
    buf_adds(b, accept);
    if (protocol != NULL) {
        buf_adds(b, "\r\nSec-WebSocket-Protocol: ");
        buf_adds(b, protocol);
    }
    buf_adds(b, "\r\n");
    buf_add(b, buf_data(&c->extra), c->extra.len);
    buf_adds(b, "\r\n");
    buf_clear(&c->extra);
    http_send_flush(c);
    expect_life(ws, HTTP_WS_IDLE_MS);
    http_conn_kick(c);
    return ws;
}

/* ---- called by the owner ---- */

void http_ws_send(struct http_ws *ws, bool binary, const void *p, size_t n)
{
    struct wslay_event_msg m = {
        .opcode = binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, .msg = p, .msg_length = n};
    int r = ws->conn->broken ? 0 : wslay_event_queue_msg(ws->ctx, &m);

    /* Nothing is sent after a close frame; not an error. */
    if (r < 0 && r != WSLAY_ERR_NO_MORE_MSG)
        http_conn_break(ws->conn);
    flush(ws);
}

size_t http_ws_backlog(const struct http_ws *ws)
{
    return ws->conn->out.len + wslay_event_get_queued_msg_length(ws->ctx);
}

size_t http_ws_untaken(const struct http_ws *ws)
{
    int held = 0;

    if (ioctl(ws->conn->io.fd, SIOCOUTQ, &held) < 0)
        held = 0;
    return http_ws_backlog(ws) + (size_t)held;
}

void http_ws_pause(struct http_ws *ws, bool paused)
{
    ws->paused = paused;
    http_conn_kick(ws->conn);
}

void http_ws_close(struct http_ws *ws, int code, const char *reason)
{
    size_t n = reason != NULL ? strlen(reason) : 0;

    if (n > WS_REASON_MAX)
        n = str_utf8_whole(reason, WS_REASON_MAX);
    wslay_event_queue_close(ws->ctx, (uint16_t)code, (const uint8_t *)reason, n);
    flush(ws);
    ws->untaken = http_ws_untaken(ws);
    http_conn_deadline(ws->conn, &ws->conn->read_due_ns, WS_CLOSE_MS);
    http_conn_kick(ws->conn);
}
