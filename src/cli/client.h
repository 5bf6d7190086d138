/* client.h - the CLI's half of HTTP: one request per connection, blocking.
 *
 * Answers are read with the same strict parser the server reads requests with.
 * Failures come in three sorts, and who retries must know which: the server said
 * no (its own kind and message), it could not be reached at all (nothing was
 * sent), or the connection broke afterwards (it may have been done). */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define CLIENT_BODY_MAX (64u << 20) /* an answer that is read whole */
#define CLIENT_KEY_MAX 512
#define CLIENT_SILENCE_MS 45000 /* a stream says something every 15 s, or is broken */

struct server {
    char host[256], port[8];
    char key[CLIENT_KEY_MAX];
};

/* COVE_URL and COVE_API_KEY, else what /run/cove/default says (root's). */
int server_find(struct server *ret, struct err *e);
int server_parse_url(struct server *s, const char *url, struct err *e);

/* All are ERR_UNAVAILABLE; errno tells them apart. */
bool client_is_unreached(const struct err *e); /* no connection: nothing was sent */
bool client_is_broken(const struct err *e);    /* sent, and no whole answer came */

/* Who presses Ctrl-C does not wait for a server that is silent: once `fd` is readable (and
 * from client_hurry(true) on) it may be silent for CLIENT_PATIENCE_MS, also in the middle of
 * an answer that is read whole and while it does not take what is sent. */
#define CLIENT_PATIENCE_MS 3000
void client_leave_when(int fd);
void client_hurry(bool on);
bool client_is_left(const struct err *e); /* it had them; ERR_UNAVAILABLE too */

struct call {
    const char *method, *path; /* path with its query, already encoded */
    json_t *json;              /* borrowed; or... */
    const void *body;          /* ...bytes, or neither */
    size_t len;
    const char *accept; /* NULL: application/json */
    /* ...or bytes that come one piece at a time, sent in chunks: the next one, 0 at
     * the end, -1 with `e`. Points to what lives until the next call. */
    ssize_t (*next)(void *arg, const char **ret, struct err *e);
    void *arg;
    const char *ws_key; /* ask for a WebSocket: the key of the handshake; or NULL */
};

struct reply; /* an answer whose head has been read */

/* On success *ret belongs to the caller until reply_free(), also when the
 * status is an error. */
int reply_open(const struct server *s, const struct call *c, struct reply **ret, struct err *e);
/* The same in two steps: the first returns when the request is sent, the second waits
 * for the head. Between them reply_fd() becomes readable. */
int reply_ask(const struct server *s, const struct call *c, struct reply **ret, struct err *e);
int reply_head(struct reply *r, struct err *e);
void reply_free(struct reply *r);
int reply_status(const struct reply *r);
bool reply_is_sse(const struct reply *r);
int reply_fd(const struct reply *r); /* for poll() */

enum reply_event { REPLY_BROKEN = -1, REPLY_END, REPLY_DATA, REPLY_MORE };
/* Of a 101: what the key was answered with, or "". */
const char *reply_ws_accept(const struct reply *r);
/* What was received behind the head; after 101 that is no longer HTTP. Points into r. */
size_t reply_rest(struct reply *r, const char **ret);
/* The next piece of the body (points into r until the next call). Never blocks:
 * REPLY_MORE means that nothing is there now; poll and call again. */
enum reply_event reply_read(struct reply *r, const char **ret_p, size_t *ret_n, struct err *e);
void reply_wait(const struct reply *r); /* for who has nothing else to listen to */
/* The rest of the body as JSON. If the status is not 2xx: -1 and what the server said. */
int reply_json(struct reply *r, json_t **ret, struct err *e);

/* A whole call. `ret` may be NULL; else *ret belongs to the caller (NULL when
 * the answer has no body). */
int client_call(const struct server *s, const char *method, const char *path, json_t *body,
                json_t **ret, struct err *e);

#define autoreply __attribute__((cleanup(reply_drop)))
void reply_drop(struct reply **r);

#endif
