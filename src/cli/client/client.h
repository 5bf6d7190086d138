/* client.h - a blocking HTTP/1.1 client: one request per connection.
 *
 * Answers are read with the strict parser that the server uses for requests. There are three
 * kinds of failures, and code that retries must tell them apart: the server refused (its own
 * kind and message), it could not be reached (nothing was sent), or the connection broke
 * after the request was sent (it may have been executed). */
#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define CLIENT_BODY_MAX (64u << 20) /* bytes of a JSON answer */
#define CLIENT_KEY_MAX 512
#define CLIENT_SILENCE_MS 45000 /* then a stream is broken: the server sends every 15 s */

struct server {
    char host[256], port[8];
    char key[CLIENT_KEY_MAX];
    char as[CLIENT_KEY_MAX]; /* id of the key that calls act for (--as); "": our own */
};

/* From COVE_URL and COVE_API_KEY; else from the context that --context or COVE_CONTEXT names, or
 * the current one; else from /run/cove/default, which only root can read. */
int server_find(struct server *ret, struct err *e);
/* The server of one context of contexts_load(). */
int server_from_context(struct server *s, json_t *contexts, const char *name, struct err *e);
int server_parse_url(struct server *s, const char *url, struct err *e);

/* All are ERR_UNAVAILABLE; e->sys tells them apart. */
bool client_is_unreached(const struct err *e); /* not connected: nothing was sent */
bool client_is_broken(const struct err *e);    /* sent, but no complete answer came */

/* After Ctrl-C the user should not wait for a silent server: once `fd` is readable, or after
 * client_hurry(true), every wait for the server ends after CLIENT_PATIENCE_MS. */
#define CLIENT_PATIENCE_MS 3000
void client_leave_when(int fd);
void client_hurry(bool on);
bool client_is_left(const struct err *e); /* such a wait ended */

struct call {
    const char *method, *path; /* path with its query, already encoded */
    json_t *json;              /* borrowed; or... */
    const void *body;          /* ...bytes, or neither */
    size_t len;
    const char *accept; /* NULL: application/json */
    /* ...or pieces, sent in chunked encoding. Returns the length of the next piece, 0 at the
     * end, -1 with `e`; *ret is valid until the next call. */
    ssize_t (*next)(void *arg, const char **ret, struct err *e);
    void *arg;
    const char *ws_key;  /* of a WebSocket handshake; or NULL */
    const char *last_id; /* Last-Event-ID of a stream that goes on; or NULL */
};

struct reply; /* an answer whose head has been read */

/* On success *ret belongs to the caller until reply_free(). An error status is a success
 * here. */
int reply_open(const struct server *s, const struct call *c, struct reply **ret, struct err *e);
/* The same in two steps: reply_ask() sends the request, reply_head() waits for the head of the
 * answer. Between them poll reply_fd(). */
int reply_ask(const struct server *s, const struct call *c, struct reply **ret, struct err *e);
int reply_head(struct reply *r, struct err *e);
void reply_free(struct reply *r);
int reply_status(const struct reply *r);
bool reply_is_sse(const struct reply *r);
int reply_fd(const struct reply *r); /* for poll() */

enum reply_event { REPLY_BROKEN = -1, REPLY_END, REPLY_DATA, REPLY_MORE };
/* The Sec-WebSocket-Accept of a 101, or "". */
const char *reply_ws_accept(const struct reply *r);
/* Bytes received after the head of a 101: WebSocket frames. Points into r. */
size_t reply_rest(struct reply *r, const char **ret);
/* The next piece of the body; points into r until the next call. Never blocks: after
 * REPLY_MORE poll and call again. */
enum reply_event reply_read(struct reply *r, const char **ret_p, size_t *ret_n, struct err *e);
void reply_wait(const struct reply *r); /* polls only this reply */
/* The rest of the body as JSON. If the status is not 2xx: -1 and the server's error. */
int reply_json(struct reply *r, json_t **ret, struct err *e);

/* Turns {"code","message"...}, the `error` of an answer or an event, into `e`. Returns -1. */
int client_refused(json_t *error, struct err *e);

/* A whole call. `ret` may be NULL; else *ret belongs to the caller, NULL if the answer has no
 * body. */
int client_call(const struct server *s, const char *method, const char *path, json_t *body,
                json_t **ret, struct err *e);

/* A whole list: every page of `path` (which has a query already), as one object whose only
 * field `key` is the array of all items. *ret belongs to the caller. */
int client_list(const struct server *s, const char *path, const char *key, json_t **ret,
                struct err *e);

#define autoreply __attribute__((cleanup(reply_drop)))
void reply_drop(struct reply **r);

#endif
