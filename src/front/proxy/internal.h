/* internal.h - what the files of the proxy share; private to them.
 *
 *   proxy.c    the life of a relay, and errors   inward.c   to the server inside
 *   upstream.c connections to servers inside, in use and idle
 *   request.c  the head that is sent             outward.c  its answer, to the client
 *   target.c   which sandbox and port */
#ifndef FRONT_PROXY_INTERNAL_H
#define FRONT_PROXY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "front/proxy/proxy.h"
#include "http/answer.h"
#include "http/http.h"
#include "loop/loop.h"

#define PROXY_READ (64u << 10)
#define PROXY_OUT_HIGH (256u << 10) /* waiting for the server inside: the client is paused... */
#define PROXY_OUT_LOW (64u << 10)   /* ...until here */
#define PROXY_OUT_MAX (PROXY_OUT_HIGH + PROXY_READ + HTTP_HEAD_MAX + 4096u)

struct proxy {
    struct proxy_opts o;
    struct loop *loop; /* both of o */
    struct engine *engine;
    struct list relays;
    struct list idle; /* upstreams, the last used first */
    size_t nidle;
    struct loop_timer sweep; /* runs while there is a relay or an idle upstream */
    char read[PROXY_READ];   /* shared: bytes are used before the next recv */
};

#define PROXY_IDLE_MS 4000    /* below the 5 s after which many servers close an idle connection */
#define PROXY_IDLE_FRESH 1000 /* ms; a request that must not be repeated takes no older one */
#define PROXY_IDLE_MAX 256    /* of all sandboxes; the oldest is closed for a newer one */
#define PROXY_IDLE_EACH 32    /* of one port of one sandbox */

/* A connection to a port inside. It belongs to its relay, or is idle and in p->idle. */
struct upstream {
    struct proxy *p;
    struct list link;
    struct relay *y;            /* NULL: idle */
    char id[ENGINE_ID_MAX + 1]; /* the sandbox */
    char key[ENGINE_KEY_MAX + 1];
    unsigned port;
    int fd;
    struct loop_io io;
    uint64_t since_ms; /* when it became idle */
};

/* Takes over fd, and watches it for `y`. NULL: no memory, and fd is closed. */
struct upstream *upstream_new(struct relay *y, int fd);
/* An idle one for y's target, or NULL. `fresh`: only one that was used a moment ago. */
struct upstream *upstream_take(struct relay *y, bool fresh);
/* Keeps it for a later request, or closes it where there are enough. */
void upstream_rest(struct upstream *u);
void upstream_free(struct upstream *u); /* closes it; NULL is fine */
/* Closes idle ones: of that sandbox, or (NULL) those that are old. */
void upstream_drop(struct proxy *p, const char *id);

struct relay {
    struct proxy *p;
    struct list link;
    struct proxy_target target;
    struct http_req *r;         /* the client; NULL once it is a tunnel or answered */
    struct http_tunnel *tunnel; /* or this */
    struct fd_call *call;       /* while connecting */
    bool waking;                /* before that: the sandbox was paused; cannot be taken back */
    struct upstream *up;
    char key[ENGINE_KEY_MAX + 1]; /* whose sandbox it leads into */
    bool reused;                  /* it carried other requests before this one */
    struct buf head;  /* the request's head once more, while it may have to be repeated */
    struct buf out;   /* not yet taken by the server inside */
    bool chunked;     /* so is the body that goes in */
    bool whole;       /* nothing more follows in `out` */
    bool half_closed; /* ...and the server was told */
    bool deaf;        /* it takes nothing more */
    bool blocked;     /* the kernel takes no more for now */
    bool held;        /* the client is paused */
    bool stalled;     /* the client reads too slowly: the socket is not read */
    bool begun;       /* the answer to the client */
    struct answer answer;
};

/* proxy.c */
void relay_free(struct relay *y);
/* Before the answer has begun the client can be told; then it is cut. Either way the
 * relay is gone, at once or soon. */
void relay_fail(struct relay *y, int status, const char *message);
/* The connection ended before a byte of the answer. An idle connection may just have been closed
 * by the server: then a request that may be repeated is sent on a new one. False: it may not. */
bool relay_again(struct relay *y);
/* From now on there is a timer for what is old or gone. */
void proxy_sweep_soon(struct proxy *p);
/* Detaches the client, for the caller that sends the last bytes to it. */
struct http_req *relay_client_end(struct relay *y);

/* inward.c */
/* Sends what is queued, and holds the client while that is too much. */
void inward_flush(struct relay *y);
void inward_begin(struct relay *y);
extern const struct http_tunnel_ops relay_tunnel;
void relay_watch(struct relay *y);

/* outward.c */
void outward_on_io(struct loop_io *io, uint32_t events);
/* The client has read: on with it. */
void outward_pump(struct relay *y);

/* request.c: the head that is sent inside, for `host` and without what of it is meant for us: the
 * first t->prefix bytes of the path, and our keys on a host that is ours. *ret_chunked: so must the body be; *ret_upgrade: the client asked for another
 * protocol. */
void request_write(struct http_req *r, const char *host, const struct proxy_target *t,
                   struct buf *out, bool *ret_chunked, bool *ret_upgrade);
/* True for a header that means this connection and not the message: it is not passed
 * on, in either direction. `connection` is the value of Connection, or NULL. */
bool request_is_hop(const char *name, size_t len, const char *connection, size_t connection_len);

#endif
