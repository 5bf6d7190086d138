/* ws.h - the client's half of a WebSocket, on a socket that is polled.
 *
 * Strict in what it takes (libwslay), every frame masked with random bytes. It never
 * waits: ws_pump() does what can be done now. */
#ifndef CLI_WS_H
#define CLI_WS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/client.h"

#define WS_QUEUE_HIGH (256u << 10) /* queued: whoever sends should stop here */
#define WS_KEY_SIZE 25             /* of a handshake, with its NUL */

struct ws;

struct ws_ops {
    void (*on_message)(void *arg, bool binary, const char *p, size_t n);
};

/* A fresh key for struct call.ws_key. */
int ws_make_key(char out[WS_KEY_SIZE], struct err *e);
/* From an answer whose head was read. If it is not 101: -1 and what the server said.
 * Takes `r`, also on failure. */
int ws_new(struct reply *r, const char *key, const struct ws_ops *ops, void *arg, struct ws **ret,
           struct err *e);
void ws_free(struct ws *w);

int ws_fd(const struct ws *w);
bool ws_wants_to_write(const struct ws *w);
size_t ws_queued(const struct ws *w);
void ws_send(struct ws *w, bool binary, const void *p, size_t n);
void ws_ping(struct ws *w);
void ws_close(struct ws *w, int code);
/* Sends and receives what can be now, and tells what came; *ret_heard: something did.
 * -1 when it is over; ws_close_code() then says how (1006: without a word). */
int ws_pump(struct ws *w, bool *ret_heard);
int ws_close_code(const struct ws *w);

#endif
