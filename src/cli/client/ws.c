/* ws.c - see ws.h. */
#include "cli/client/ws.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#include "base/own.h"
#include "base/str.h"
#include "http/http.h"
#include "mem/mem.h"

#define KEY_BYTES 16
#define MESSAGE_MAX (2u << 20) /* the server sends far smaller ones */
#define SWITCHING 101
#define PUMP_MAX (64u << 10) /* bytes per ws_pump(), so that it returns during a flood */

struct ws {
    struct reply *reply; /* owns the socket */
    wslay_event_context_ptr ctx;
    struct ws_ops ops;
    void *arg;
    const char *rest; /* received with the head; points into reply */
    size_t nrest;
    size_t left; /* of PUMP_MAX */
    bool heard, broken;
};

int ws_make_key(char out[WS_KEY_SIZE], struct err *e)
{
    autobuf struct buf b64 = BUF_INIT(64);
    unsigned char key[KEY_BYTES];

    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key) ||
        str_base64(&b64, key, sizeof(key)) < 0)
        return err_set(e, ERR_INTERNAL, "make a WebSocket key: no random bytes");
    str_fmt(out, WS_KEY_SIZE, "%s", buf_cstr(&b64));
    return 0;
}

/* ---- between wslay and the socket ---- */

static ssize_t would_block(wslay_event_context_ptr ctx)
{
    wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static ssize_t gone(wslay_event_context_ptr ctx, struct ws *w)
{
    w->broken = true;
    wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static ssize_t take(wslay_event_context_ptr ctx, uint8_t *to, size_t room, int flags, void *arg)
{
    struct ws *w = arg;
    ssize_t n = (ssize_t)(w->nrest < room ? w->nrest : room);

    (void)flags;
    room = room < w->left ? room : w->left;
    if (n > 0) {
        memcpy(to, w->rest, (size_t)n);
        w->rest += n;
        w->nrest -= (size_t)n;
    } else if (room == 0) {
        return would_block(ctx); /* the socket will say it again */
    } else {
        do
            n = recv(ws_fd(w), to, room, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno == EAGAIN)
            return would_block(ctx);
        if (n <= 0)
            return gone(ctx, w);
        w->left -= (size_t)n;
    }
    w->heard = true;
    return n;
}

static ssize_t give(wslay_event_context_ptr ctx, const uint8_t *p, size_t n, int flags, void *arg)
{
    struct ws *w = arg;
    ssize_t sent;

    (void)flags;
    do
        sent = send(ws_fd(w), p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN)
        return would_block(ctx);
    return sent < 0 ? gone(ctx, w) : sent;
}

static int mask(wslay_event_context_ptr ctx, uint8_t *to, size_t n, void *arg)
{
    (void)ctx, (void)arg;
    return getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

static void message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                    void *arg)
{
    struct ws *w = arg;

    (void)ctx;
    if (m->opcode == WSLAY_TEXT_FRAME || m->opcode == WSLAY_BINARY_FRAME)
        w->ops.on_message(w->arg, m->opcode == WSLAY_BINARY_FRAME, (const char *)m->msg,
                          m->msg_length);
}

/* ---- open and close ---- */

static int check_answer(struct reply *r, const char *key, struct err *e)
{
    char want[HTTP_WS_ACCEPT_SIZE];
    json_t *body = NULL;

    if (reply_status(r) != SWITCHING) {
        if (reply_json(r, &body, e) == 0) {
            json_decref(body);
            return err_set(e, ERR_INTERNAL, "the server did not switch to WebSocket");
        }
        return -1;
    }
    if (http_ws_accept_key(key, want) < 0 || strcmp(want, reply_ws_accept(r)) != 0)
        return err_set(e, ERR_INTERNAL,
                       "the server answered the WebSocket handshake with a wrong key");
    return 0;
}

int ws_new(struct reply *r, const char *key, const struct ws_ops *ops, void *arg, struct ws **ret,
           struct err *e)
{
    static const struct wslay_event_callbacks cb = {.recv_callback = take,
                                                    .send_callback = give,
                                                    .genmask_callback = mask,
                                                    .on_msg_recv_callback = message};
    autoreply struct reply *owned = r;
    struct ws *w;

    if (check_answer(r, key, e) < 0)
        return -1;
    w = mem_zeroed(1, sizeof(*w));
    if (wslay_event_context_client_init(&w->ctx, &cb, w) != 0) {
        free(w);
        return err_set(e, ERR_INTERNAL, "out of memory");
    }
    wslay_event_config_set_max_recv_msg_length(w->ctx, MESSAGE_MAX);
    w->reply = take_ptr(&owned);
    w->ops = *ops;
    w->arg = arg;
    w->nrest = reply_rest(r, &w->rest);
    *ret = w;
    return 0;
}

void ws_free(struct ws *w)
{
    if (w == NULL)
        return;
    wslay_event_context_free(w->ctx);
    reply_free(w->reply);
    free(w);
}

/* ---- use ---- */

int ws_fd(const struct ws *w)
{
    return reply_fd(w->reply);
}

bool ws_wants_to_write(const struct ws *w)
{
    return wslay_event_want_write(w->ctx);
}

size_t ws_queued(const struct ws *w)
{
    return wslay_event_get_queued_msg_length(w->ctx);
}

void ws_send(struct ws *w, bool binary, const void *p, size_t n)
{
    struct wslay_event_msg m = {
        .opcode = binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, .msg = p, .msg_length = n};
    int r = wslay_event_queue_msg(w->ctx, &m);

    w->broken |= r != 0 && r != WSLAY_ERR_NO_MORE_MSG;
}

void ws_ping(struct ws *w)
{
    wslay_event_queue_msg(w->ctx, &(struct wslay_event_msg){.opcode = WSLAY_PING});
}

void ws_close(struct ws *w, int code)
{
    wslay_event_queue_close(w->ctx, (uint16_t)code, NULL, 0);
}

int ws_pump(struct ws *w, bool *ret_heard)
{
    w->heard = false;
    w->left = PUMP_MAX;
    if (!w->broken && wslay_event_want_read(w->ctx) && wslay_event_recv(w->ctx) < 0)
        w->broken = true;
    if (!w->broken && wslay_event_want_write(w->ctx) && wslay_event_send(w->ctx) < 0)
        w->broken = true;
    *ret_heard = w->heard;
    if (w->broken)
        return -1;
    return wslay_event_want_read(w->ctx) || wslay_event_want_write(w->ctx) ? 0 : -1;
}

int ws_close_code(const struct ws *w)
{
    return wslay_event_get_close_received(w->ctx) ? wslay_event_get_status_code_received(w->ctx)
                                                  : WSLAY_CODE_ABNORMAL_CLOSURE;
}
