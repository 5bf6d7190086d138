/* ws.h - the client side of a WebSocket (libwslay), on a socket that the caller polls.
 *
 * Never blocks: ws_pump() sends and receives what it can. */
#ifndef CLI_CLIENT_WS_H
#define CLI_CLIENT_WS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/client/client.h"

#define WS_QUEUE_HIGH (256u << 10) /* ws_queued() at which the caller should stop sending */
#define WS_KEY_SIZE 25             /* of a handshake, with its NUL */

struct ws;

struct ws_ops {
    void (*on_message)(void *arg, bool binary, const char *p, size_t n);
};

/* A fresh key for struct call.ws_key. */
int ws_make_key(char out[WS_KEY_SIZE], struct err *e);
/* From a reply whose head was read. If it is not 101: -1 and the server's error. Takes `r`,
 * also on failure. */
int ws_new(struct reply *r, const char *key, const struct ws_ops *ops, void *arg, struct ws **ret,
           struct err *e);
void ws_free(struct ws *w);

int ws_fd(const struct ws *w);
bool ws_wants_to_write(const struct ws *w);
size_t ws_queued(const struct ws *w);
void ws_send(struct ws *w, bool binary, const void *p, size_t n);
void ws_ping(struct ws *w);
void ws_close(struct ws *w, int code);
/* Sends and receives without blocking, and calls on_message; *ret_heard: something came.
 * -1: closed; ws_close_code() is then the code of the peer (1006: none). */
int ws_pump(struct ws *w, bool *ret_heard);
int ws_close_code(const struct ws *w);

#endif
