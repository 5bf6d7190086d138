/* http.h - a strict HTTP/1.1 server on the loop; knows nothing of sandboxes.
 *
 * It refuses what nginx refuses (two Content-Lengths, Content-Length with
 * Transfer-Encoding, unknown codings, folded lines, NUL, no Host or two, heads
 * too large), because a request that two programs read differently lets an
 * attacker bypass checks. Bodies stream in both directions with back-pressure: nothing a
 * peer sends or fails to read makes us hold more than the limits below.
 *
 * One request at a time per connection; a pipelined next one is not parsed until
 * this one is answered. A request belongs to its connection. The handler may
 * keep the pointer until it has ended the answer or until on_gone was called,
 * whichever is first; after that it must forget it. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"

#define HTTP_HEAD_MAX (32u << 10)      /* request line and all headers; 431 */
#define HTTP_TARGET_MAX (16u << 10)    /* 414 */
#define HTTP_HEADERS_MAX 100           /* lines; 431 */
#define HTTP_CHUNK_LINE_MAX 256        /* size and extensions of one chunk; 400 */
#define HTTP_TRAILERS_MAX (8u << 10)   /* read and dropped; 431 */
#define HTTP_HEAD_MS 30000             /* from the first byte of a head to its end; 408 */
#define HTTP_IDLE_MS 75000             /* between requests; closed silently */
#define HTTP_BODY_MS 60000             /* without a byte while we want one; 408 */
#define HTTP_SEND_MS 60000             /* without progress while we have bytes; closed */
#define HTTP_BACKLOG_HIGH (256u << 10) /* answer bytes queued: writers should stop here... */
#define HTTP_BACKLOG_LOW (64u << 10)   /* ...and are called again here */
#define HTTP_BACKLOG_MAX (64u << 20)   /* a writer that does not stop: the connection is closed */
#define HTTP_CONNS_MAX 8192            /* per server; above, accepted, answered 503 and closed */

struct http_server;
struct http_req;

struct http_str {
    const char *p; /* points into the request's head; NUL-terminated for convenience */
    size_t len;
};

/* What is known when the head is complete. All of it points into the request. */
struct http_head {
    struct http_str method;
    struct http_str target; /* as sent */
    struct http_str path;   /* as sent, up to '?'; still percent-encoded */
    struct http_str query;  /* after '?', or "" */
    struct http_str host;   /* the one Host header (or authority of an absolute target) */
    bool has_body;
    int64_t content_length; /* -1: chunked or none */
};

struct http_server_opts {
    struct loop *loop;
    int listen_fd; /* borrowed; listening, non-blocking. -1: connections are adopted only */
    void (*on_request)(void *arg, struct http_req *r);
    void *arg;
    size_t conns_max; /* 0: HTTP_CONNS_MAX */
    size_t peer_max;  /* connections without an owner from one address; 0: no limit */
    /* `whose` has one connection more (1) or less (-1); may be NULL. */
    void (*on_owner)(void *arg, const char *whose, int by);
};

/* The owner of the connection of `r`; NULL: it has none yet. */
const char *http_owner(const struct http_req *r);
/* Sets the owner of the connection of `r`, also after it became a stream or a WebSocket.
 * Borrowed for as long as the server lives. */
void http_owned_by(struct http_req *r, const char *whose);
/* Breaks all connections of that owner except that of `r`. */
void http_cut_others(struct http_req *r, const char *whose);

int http_server_new(const struct http_server_opts *opts, struct http_server **ret, struct err *e);
/* Closes every connection at once, telling on_gone and on_close. Not from inside
 * a callback of this server. */
void http_server_free(struct http_server *s);
/* Serves one more connected stream socket; takes the fd, also on failure. */
int http_server_adopt(struct http_server *s, int fd, struct err *e);
/* Stops accepting, closes idle connections, lets running requests end (each
 * answer says Connection: close) closes WebSockets with 1001, then calls done. */
void http_server_drain(struct http_server *s, void (*done)(void *arg), void *arg);
size_t http_server_conns(const struct http_server *s);
/* Idle connections that were closed to make room. */
uint64_t http_server_evicted(const struct http_server *s);

/* ---- the request ---- */

const struct http_head *http_head(const struct http_req *r);
/* The value of the only header of that name (case-insensitive), or NULL if
 * there is none. Several of one name are joined with ", " as the RFC allows. */
const char *http_header(struct http_req *r, const char *name);
/* The i-th header from 0 on, as it was sent; false after the last. */
bool http_header_at(const struct http_req *r, size_t i, struct http_str *ret_name,
                    struct http_str *ret_value);
/* For tracing: "r" and a number unique to this server, in answers and the log. */
const char *http_request_id(const struct http_req *r);
/* One slot for the handler of the request. */
void http_set_user(struct http_req *r, void *user);
void *http_user(const struct http_req *r);
struct loop *http_loop(const struct http_req *r);
/* The connection's socket, for peer checks; borrowed. */
int http_fd(const struct http_req *r);

/* Called at most once, when the client went away before the answer ended; the
 * request dies when the callback returns. Always called from the loop, never from
 * inside a call of the handler's. A client that has sent its whole request and
 * shut down its sending side is not gone: it may be waiting for the answer. */
void http_on_gone(struct http_req *r, void (*cb)(struct http_req *r, void *arg), void *arg);
/* Called once at the end of the request, or of the WebSocket or tunnel that it became. At most
 * HTTP_ENDS_MAX per request; the last one first. */
#define HTTP_ENDS_MAX 4
void http_on_end(struct http_req *r, void (*cb)(void *arg), void *arg);
/* A number for the address of the client, the same for all its connections; 0: it has none. */
uint32_t http_peer(const struct http_req *r);
/* For this request EOF means that the client is gone: for handlers that hold something
 * costly and could not notice an absent client otherwise. */
void http_eof_is_gone(struct http_req *r);

/* Both ways to read a body call back from the loop, never before they return.
 *
 * Reads the whole body into memory, then calls cb with it; more than `max` is
 * answered 413 here and cb is not called (on_gone is). An absent body is an
 * empty one. The buffer is borrowed for the call. `Expect: 100-continue` is
 * answered when the handler asks for the body, never before. */
void http_body_collect(struct http_req *r, size_t max,
                       void (*cb)(struct http_req *r, struct buf *body, void *arg), void *arg);

/* Streams the body: on_data for each piece as it arrives, then on_end once.
 * While paused nothing more is read from the socket than the kernel holds. */
void http_body_stream(struct http_req *r,
                      void (*on_data)(struct http_req *r, const char *p, size_t n, void *arg),
                      void (*on_end)(struct http_req *r, void *arg), void *arg);
void http_body_pause(struct http_req *r, bool paused);

/* ---- the answer ----
 * A handler answers exactly once: http_reply(), or http_reply_begin() ...
 * http_reply_end(). A body the handler did not read is drained up to a bound,
 * else the connection is closed after the answer. */

/* Adds a header to the coming answer. Names and values are ours; a value with a
 * control character in it is dropped with a log line rather than sent. */
void http_reply_header(struct http_req *r, const char *name, const char *value);
/* The answer is relayed: no Date and no X-Request-Id of ours. */
void http_reply_bare(struct http_req *r);
void http_reply(struct http_req *r, int status, const char *type, const void *body, size_t len);
/* Chunked; type as "application/json". For HEAD the written body is dropped. */
void http_reply_begin(struct http_req *r, int status, const char *type);
/* As http_reply_begin(), but of a length known in advance; writing another
 * number of bytes closes the connection. */
void http_reply_begin_length(struct http_req *r, int status, const char *type, uint64_t length);
/* The whole answer: `length` bytes of a file from `at` on. Takes the fd, which others
 * may share. The handler has answered then: on_gone is not called any more.
 * `share`: see loop/job.h. */
void http_reply_file(struct http_req *r, int status, const char *type, int fd, uint64_t at,
                     uint64_t length, uint32_t share);
/* Queues and sends as much as the socket takes. */
void http_write(struct http_req *r, const void *p, size_t n);
/* Bytes queued and not yet taken by the kernel. */
size_t http_backlog(const struct http_req *r);
/* cb when the backlog has fallen to HTTP_BACKLOG_LOW after it was above; may be
 * called from the loop only, never from inside http_write(). */
void http_on_drain(struct http_req *r, void (*cb)(struct http_req *r, void *arg), void *arg);
void http_reply_end(struct http_req *r);
/* Ends an answer that cannot be completed: the connection is closed without the
 * last chunk, so that the client sees it was cut. */
void http_reply_abort(struct http_req *r);

/* ---- server-sent events, on http_reply_begin() ---- */

/* Begins 200 text/event-stream with Cache-Control: no-store; a comment goes out
 * every HTTP_SSE_KEEPALIVE_MS of silence. */
#define HTTP_SSE_KEEPALIVE_MS 15000
void http_sse_begin(struct http_req *r);
/* `id` and `event` may be NULL. Every line break in data becomes a new data: line. */
void http_sse_event(struct http_req *r, const char *id, const char *event, const char *data,
                    size_t len);

/* ---- WebSocket (libwslay) ---- */

/* The answer to the key of a handshake (RFC 6455, 4.2.2); -1 if the key is malformed. */
#define HTTP_WS_ACCEPT_SIZE 29
int http_ws_accept_key(const char *key, char out[HTTP_WS_ACCEPT_SIZE]);

#define HTTP_WS_MESSAGE_MAX (1u << 20) /* one message, after reassembly; close 1009 */
#define HTTP_WS_IDLE_MS 30000          /* without a byte from the peer it is sent a ping... */
#define HTTP_WS_PONG_MS 15000          /* ...then dropped if it stays silent */
struct http_ws;
struct http_ws_ops {
    void (*on_message)(struct http_ws *ws, bool binary, const char *p, size_t n, void *arg);
    void (*on_drain)(struct http_ws *ws, void *arg); /* backlog low again; may be NULL */
    /* Called exactly once, at any kind of end (1006: no close frame); the ws dies after it. */
    void (*on_close)(struct http_ws *ws, int code, void *arg);
};
/* Answers 101 (or 400/426 and returns NULL when the handshake is not one). The
 * request is over; the returned ws belongs to its connection. */
struct http_ws *http_ws_accept(struct http_req *r, const char *protocol,
                               const struct http_ws_ops *ops, void *arg);
void http_ws_send(struct http_ws *ws, bool binary, const void *p, size_t n);
size_t http_ws_backlog(const struct http_ws *ws);
/* The same plus bytes in the kernel's send queue: it shrinks while the peer reads, however slowly. */
size_t http_ws_untaken(const struct http_ws *ws);
void http_ws_pause(struct http_ws *ws, bool paused); /* stop reading from the peer */
void http_ws_close(struct http_ws *ws, int code, const char *reason);

/* ---- tunnels: relays of another protocol ---- */

struct http_tunnel;
struct http_tunnel_ops {
    void (*on_data)(struct http_tunnel *t, const char *p, size_t n, void *arg);
    void (*on_eof)(struct http_tunnel *t, void *arg);   /* the client sends no more; at most once */
    void (*on_drain)(struct http_tunnel *t, void *arg); /* backlog low again; may be NULL */
    /* Called exactly once, at any kind of end; the tunnel dies after it. */
    void (*on_close)(struct http_tunnel *t, void *arg);
};
/* Answers 101 with the headers given by http_reply_header(). The request is over; the
 * returned tunnel belongs to its connection. NULL: it was closed instead. */
struct http_tunnel *http_tunnel_begin(struct http_req *r, const struct http_tunnel_ops *ops,
                                      void *arg);
void http_tunnel_send(struct http_tunnel *t, const void *p, size_t n);
size_t http_tunnel_backlog(const struct http_tunnel *t);
void http_tunnel_pause(struct http_tunnel *t, bool paused); /* stop reading from the client */
void http_tunnel_end(struct http_tunnel *t);                /* once all that was sent is gone */
void http_tunnel_abort(struct http_tunnel *t);              /* at once */

#endif
