/* call.h - one request, from its row to its last byte, freed exactly once.
 *
 * A call has two ends. The client's end closes when the answer is complete or the client
 * disconnects; then `r` is NULL and all functions that answer do nothing. The engine's end is open
 * while a callback may still come. When both are closed, the call and its state are freed at the
 * end of the turn of the loop, so the running code may still use them.
 *
 * A handler follows three rules and never frees anything:
 *   - before or with each call of the engine: call_expect();
 *   - first in the callback that answers it (for a stream: the last callback):
 *     if (!call_told(c)) return;   or call_got(), if the callback has an answer or an error
 *   - answer once.
 * If the client disconnects, calls of the engine are cancelled where possible, else their callback
 * is awaited. A disconnecting client kills nothing. */
#ifndef FRONT_PLANE_CALL_H
#define FRONT_PLANE_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "front/engine/engine.h"
#include "http/http.h"
#include "http/route.h"
#include "loop/loop.h"
#include "json/read.h"

struct building;
struct intake;
struct output;
struct plane;
struct process_output;
struct quota_user;
struct shape;
struct surface_row;

#define CALL_REQUEST_ID_MAX 40
#define WORKSPACE_CALL_MAX 63   /* bytes of the name of a workspace */
#define CALL_PIECE (128u << 10) /* of a long answer, queued at a time */

/* A kind of call of the engine, and how to cancel it when the client's end closes. Each is defined
 * where it is used, shared ones in call.c. */
struct call_source {
    void (*take_back)(void *handle);         /* NULL: its callback is awaited */
    void (*pause)(void *handle, bool pause); /* while the client does not read; or NULL */
};
extern const struct call_source call_pending; /* one callback, cannot be cancelled */
extern const struct call_source call_stream;  /* a struct process_stream */
extern const struct call_source call_wait;    /* a struct process_call */

enum call_accept { CALL_JSON, CALL_SSE, CALL_RAW };

struct call {
    struct plane *plane;
    struct http_req *r; /* NULL: answered, or disconnected */
    struct loop *loop;
    const struct surface_row *row; /* NULL: no such route */
    const char *key;               /* id of the key that was presented; NULL: none was */
    struct quota_user *user;       /* the account it is charged to; NULL: none */
    bool rated;                    /* counted to the requests of this second */
    uint64_t held;                 /* bytes of memory on that account; call_hold() */
    uint64_t began_ns;
    struct ref ref; /* the sandbox (or snapshot) that the call is about, and for which key it acts;
                      * set before the handler runs, by plane_manner.resolve */
    char owner[ENGINE_KEY_MAX + 1], sandbox[ENGINE_ID_MAX + 1]; /* call_aim() */
    struct buf path;                        /* plane_manner.alias; `match` may point into it */
    char workspace[WORKSPACE_CALL_MAX + 1]; /* through which it means a sandbox; "": none */
    struct route_match match;
    const struct call_source *source; /* a callback that is due; NULL: none */
    void *handle;
    void *state; /* the handler's own; see call_state() */
    void (*drop)(void *state);
    bool streaming;  /* the head is sent... */
    bool events;     /* ...of text/event-stream: an error is an event now */
    struct buf rest; /* of an answer that is sent in pieces */
    bool keeps;      /* call_keep_input() */
    void *in;        /* the input, if it is kept... */
    json_t *doc;     /* ...and what it points into */
    struct intake *intake;
    struct buf unfolded;       /* surface_input.unfold; a handler may take it over */
    struct building *building; /* call_reply_built() */
    char request_id[CALL_REQUEST_ID_MAX];
    struct list link;
    struct loop_later later;
};

/* For a request whose head has come. */
struct call *call_new(struct plane *p, struct http_req *r);
void call_free(struct call *c); /* plane_free() only */

/* Zeroed memory that lives as long as the call; `drop` (or NULL) releases what it
 * holds. */
void *call_state(struct call *c, size_t size, void (*drop)(void *state));
/* A parameter of the path, by its place. */
const char *call_param(const struct call *c, size_t i);
/* Sets c->ref.key to a copy. */
void call_act_as(struct call *c, const char *key);
/* Sets c->ref to copies of both; key NULL: for the same key as before. */
void call_aim(struct call *c, const char *key, const char *id);
/* From now on until it ends the call holds `bytes` of memory, or what it held before if that is more.
 * ERR_LIMIT: its key may not hold so much; ERR_UNAVAILABLE: all keys together hold too much. */
int call_hold(struct call *c, uint64_t bytes, struct err *e);
/* For a handler that uses its input after it returns: the input then lives as long as the call. */
void call_keep_input(struct call *c);
/* What the client accepts, of what the row offers. */
enum call_accept call_accept(const struct call *c);

/* ---- the engine's end ---- */

void call_expect(struct call *c, const struct call_source *source, void *handle);
/* The last callback came. False: the client has disconnected; the callback must return. */
bool call_told(struct call *c);
/* The same; an error is answered, and returns false as well. */
bool call_got(struct call *c, const struct err *e);
/* An engine_done_cb that answers: 204, or the error. */
void call_told_done(void *call, const struct err *e);
/* The same as an engine_sandbox_cb. */
void call_told_sandbox(void *call, const struct sandbox *s, const struct err *e);

/* ---- the answer ---- */

/* A long `body` is taken over and sent in pieces. */
void call_reply(struct call *c, int status, const char *type, struct buf *body);
/* Few bytes, borrowed. */
void call_reply_bytes(struct call *c, int status, const char *type, const void *p, size_t n);
/* A part of a file, whose fd is taken; see http_reply_file(). */
void call_reply_file(struct call *c, int status, const char *type, int fd, uint64_t at,
                     uint64_t length);
/* As JSON, with the status of the row. */
void call_reply_shape(struct call *c, const struct shape *s, const void *from);
void call_reply_shape_as(struct call *c, int status, const struct shape *s, const void *from);
/* The same for a long answer: `fill` is called before, and if the answer has about `size` bytes both
 * happen in a thread. Until the call ends the loop leaves alone what `fill` and the shape look at. */
void call_reply_built(struct call *c, const struct shape *s, const void *from,
                      void (*fill)(void *arg), void *arg, size_t size);
void call_reply_none(struct call *c); /* 204 */
/* Answers as the plane's manner says; with an `error` event if a stream has begun. The text of
 * ERR_INTERNAL goes to the log and not to the client. */
void call_fail(struct call *c, const struct err *e);

/* The connection was upgraded (`status` 101), or not: the call ends without cancelling the engine's
 * call, which the caller takes over. */
void call_upgraded(struct call *c, int status);

/* Streams: while the client does not read, the source is paused. */
void call_begin(struct call *c, enum call_accept how); /* CALL_SSE or CALL_RAW */
void call_begin_bytes(struct call *c, const char *type);
void call_event(struct call *c, const char *id, const char *event, struct buf *data);
void call_event_shape(struct call *c, const char *id, const char *event, const struct shape *s,
                      const void *from);
/* Output of a command: the stdout or stderr event for a piece, and at the end for bytes that never
 * became a character. */
void call_output(struct call *c, struct output *o, const struct process_output *m);
void call_output_end(struct call *c, struct output *o);
void call_write(struct call *c, const void *p, size_t n);
void call_end(struct call *c);
/* Cuts the connection: the client sees that the answer is incomplete. */
void call_cut(struct call *c);

#endif
