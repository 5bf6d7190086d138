/* conn.h - internal to src/http: one connection and the request it serves.
 *
 * Bytes come in through conn.c's run() only, which steps through the phases
 * below; everything a handler calls changes fields, queues output, and asks for
 * another run. So no callback ever finds another one of its connection on the
 * stack, and nothing is freed but at the start of a deferred run. */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include <sys/uio.h>

#include "base/list.h"
#include "base/map.h"
#include "http/chunk.h"
#include "http/http.h"
#include "http/parse.h"

#define HTTP_READ_SIZE (64u << 10) /* one recv; also the most a connection holds unread */
#define HTTP_CORK_MAX (16u << 10)  /* less than this waits for the end of the turn */
#define HTTP_KEEP_MAX (4u << 10)   /* a buffer larger than this is freed when idle */
#define HTTP_DISCARD_MAX                                                                           \
    (64u << 10) /* of a body that the handler did not read, to keep the connection */
#define HTTP_LINGER_MAX (16u << 20) /* read and discarded after the last answer... */
#define HTTP_LINGER_MS 3000         /* ...then a peer that has not closed is cut off */
/* Headers of an answer: also all of a relayed one, each a blank longer than it came. */
#define HTTP_EXTRA_MAX (HTTP_HEAD_MAX + 2 * HTTP_HEADERS_MAX)
#define HTTP_ID_MAX 24
#define HTTP_DATE_MAX 40

enum http_phase {
    PHASE_HEAD,   /* waiting for a head, or reading one */
    PHASE_BODY,   /* the handler runs; the body is not over */
    PHASE_WAIT,   /* the handler runs; the whole request is here */
    PHASE_LINGER, /* the last answer is sent; input is discarded until the peer closes */
    PHASE_WS,     /* no longer HTTP */
    PHASE_TUNNEL, /* bytes of a protocol that we do not parse */
    PHASE_COUNT
};

enum body_use { BODY_UNASKED, BODY_COLLECT, BODY_STREAM, BODY_DISCARD };

enum reply_state {
    REPLY_NONE,
    REPLY_CHUNKED,
    REPLY_LENGTH,
    REPLY_RAW,  /* HTTP/1.0: the end of the connection ends it */
    REPLY_FILE, /* sent by file.c */
    REPLY_MUTE, /* HEAD, 204, 304: written bytes are dropped */
    REPLY_ENDED,
};

struct http_joined; /* a header that was sent several times, joined */

struct http_end {
    void (*cb)(void *arg);
    void *arg;
};

/* All of it is zeroed between two requests of a connection. */
struct http_req {
    struct http_head head;
    char id[HTTP_ID_MAX];
    void *user;
    bool active; /* passed to a handler that has not ended its answer */
    void (*on_gone)(struct http_req *r, void *arg);
    void *gone_arg;
    struct http_end ends[HTTP_ENDS_MAX];
    size_t nends;
    bool eof_is_gone;
    struct http_joined *joined;

    struct {
        enum body_use use;
        bool paused, continued; /* 100 was sent, or is not needed */
        struct http_chunk chunk;
        int64_t left; /* of a Content-Length */
        size_t max, dropped;
        void (*on_all)(struct http_req *r, struct buf *body, void *arg);
        void (*on_data)(struct http_req *r, const char *p, size_t n, void *arg);
        void (*on_end)(struct http_req *r, void *arg);
        void *arg;
    } body;

    enum reply_state reply;
    bool is_head, keep_alive;
    bool bare;           /* a relayed answer */
    uint64_t reply_left; /* REPLY_LENGTH */
    bool above_low;      /* on_drain is owed */
    void (*on_drain)(struct http_req *r, void *arg);
    void *drain_arg;
    struct loop_timer sse;
    uint64_t sse_due_ns;
};

struct http_conn {
    struct http_server *server;
    struct list link;
    const char *whose;      /* NULL: not set */
    struct http_peer *peer; /* while `whose` is NULL; crowd.c */
    bool idle;              /* no request, or not its whole head: in these two lists */
    struct list idle_link, peer_link;
    struct loop_io io;
    struct loop_timer timer;
    struct loop_later later;
    enum http_phase phase;
    bool busy;                         /* run() is on the stack */
    bool broken;                       /* broken: freed by the next deferred run */
    bool eof;                          /* the peer will send nothing more */
    bool blocked;                      /* the kernel takes no more for now */
    bool skipped;                      /* the one empty line that may precede a head */
    uint64_t read_due_ns, send_due_ns; /* 0: none */
    size_t scanned, lingered;

    struct buf in;    /* received, not yet used */
    struct buf out;   /* queued, not yet taken by the kernel */
    struct buf extra; /* headers of the coming answer */
    struct buf collected;
    char *head; /* this request's head, lines cut into strings; then the path */
    size_t head_cap;
    struct http_msg msg;
    struct http_req req;
    struct http_ws *ws;
    struct http_file *file;
    struct http_tunnel *tunnel;
};

struct http_server {
    struct http_server_opts opts;
    struct loop_io listen;
    struct loop_timer retry;
    struct loop_later empty;
    struct list conns;
    struct list strangers, guests; /* idle: without an owner, and with one; longest first */
    struct map peers;              /* by address */
    uint64_t evicted;
    size_t nconns;
    uint64_t last_id;
    bool draining;
    bool full; /* the last connection got no fd, and that was logged */
    void (*on_drained)(void *arg);
    void *drained_arg;
    uint64_t date_s;
    char date[HTTP_DATE_MAX];
    struct buf event;          /* an SSE event being put together */
    char read[HTTP_READ_SIZE]; /* shared: bytes are used or copied before the next recv */
};

static inline struct http_conn *http_conn_of(const struct http_req *r)
{
    return CONTAINER_OF(r, struct http_conn, req);
}

/* conn.c */
int http_conn_new(struct http_server *s, int fd, struct err *e); /* takes fd, also on failure */
void http_conn_free(struct http_conn *c);                        /* calls on_gone or on_close */
void http_conn_break(struct http_conn *c); /* closed and freed soon; on_gone then */
void http_conn_kick(struct http_conn *c);  /* another run before the loop sleeps */
/* Calls on_gone, answers with a JSON error if nothing was answered yet, and closes. */
void http_conn_refuse(struct http_conn *c, int status, const char *why);
void http_conn_deadline(struct http_conn *c, uint64_t *due_ns, uint64_t after_ms);
/* Stops sending and lets the peer read what was sent before the socket closes. */
void http_conn_linger(struct http_conn *c);
bool http_conn_is_idle(const struct http_conn *c);

/* crowd.c */
/* Of a new connection: NULL, or why there is no room for it. May free others. */
const char *http_crowd_admit(struct http_conn *c);
void http_crowd_idle(struct http_conn *c); /* it waits for a request... */
void http_crowd_busy(struct http_conn *c); /* ...and not any more */
void http_crowd_leave(struct http_conn *c);

/* body.c */
int http_body_take(struct http_conn *c, const char *p, size_t n, size_t *used);
int http_body_finish(struct http_conn *c); /* the body is complete: 1 if a callback was called */

/* request.c */
void http_request_take(struct http_conn *c, const char *p, size_t len);
void http_request_reset(struct http_conn *c);

/* reply.c */
#define HTTP_PIECES_MAX 4
/* The last byte of the answer was sent or queued. */
void http_reply_sent(struct http_req *r);
/* http_write() of several pieces as one chunk. */
void http_write_pieces(struct http_req *r, const struct iovec *iov, size_t n);

/* file.c */
void http_file_step(struct http_conn *c); /* continues if the socket has room */
void http_file_drop(struct http_conn *c);

/* send.c */
/* Queues the pieces; they are sent at once if they are worth a system call, else
 * at the end of this turn. */
void http_send(struct http_conn *c, const struct iovec *iov, size_t n);
/* Queues the pieces and tries to send everything now. */
void http_send_now(struct http_conn *c, const struct iovec *iov, size_t n);
void http_send_flush(struct http_conn *c);

/* tunnel.c */
int http_tunnel_take(struct http_conn *c, const char *p, size_t n, size_t *used);
bool http_tunnel_wants_input(const struct http_conn *c);
void http_tunnel_drained(struct http_conn *c);
void http_tunnel_free(struct http_conn *c);

/* ws.c */
int http_ws_take(struct http_conn *c, const char *p, size_t n, size_t *used);
bool http_ws_wants_input(const struct http_conn *c);
void http_ws_drained(struct http_conn *c);
void http_ws_free(struct http_conn *c);
void http_ws_goodbye(struct http_conn *c);
bool http_ws_late(
    struct http_conn *c); /* the read deadline has passed; false: the connection ended */

#endif
