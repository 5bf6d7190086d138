/* talk.h - conversations with the inits of sandboxes.
 *
 * An init is not trusted. A conversation is one request and the answers that its table allows; any
 * other message ends it with ERR_UNRESPONSIVE and closes the connection. Buffers are bounded, no fd
 * is accepted, and no call on the socket blocks.
 *
 * Connections are kept for the next request, a few per sandbox and for seconds. */
#ifndef FRONT_ENGINE_TALK_TALK_H
#define FRONT_ENGINE_TALK_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "wire/init.h"

#define TALK_IN_MAX (512u << 10)                   /* read and not yet delivered */
#define TALK_FRAME_MAX (INIT_CHUNK_MAX + 4096u)    /* no honest answer is longer */
#define TALK_OUT_MAX (WIRE_FRAME_MAX + (1u << 20)) /* one request, and stdin after it */
#define TALK_IDLE_MAX 2                            /* connections kept, one sandbox */
#define TALK_IDLE_TOTAL 512                        /* connections kept, all sandboxes */
#define TALK_IDLE_MS 10000
/* Connections to one init; it accepts some more, for fds. Fewer are for talks that last, so that a
 * process that many clients wait for can still be inspected and killed. */
#define TALK_LINES_MAX (INIT_CONNS_MAX - 32)
#define TALK_LASTING_MAX (TALK_LINES_MAX - 32)

struct talk;
struct talk_hub;
struct line; /* talk.c */

/* One sandbox's init. */
struct talk_peer {
    struct talk_hub *hub;
    const char *id;    /* borrowed; names the socket */
    struct list talks; /* under way */
    struct list idle;  /* connections */
    unsigned nidle;
    unsigned nlines, nlasting; /* connections in all, and talks under way that last */
    uint32_t version;          /* what its hello said, 0: not heard yet */
    bool held;                 /* no request is sent until it is released */
    uint64_t used_ms; /* when a talk last began or ended; by the calendar, to be compared */
    unsigned nstarts; /* sent, and not answered: init may be about to start a process */
    /* Called from the loop when nstarts has become 0; or NULL. */
    void (*on_quiet)(struct talk_peer *p);
    struct loop_later quiet;
};

enum talk_step { TALK_MORE = 1, TALK_LAST };

struct talk_kind {
    uint16_t request;
    struct {
        uint16_t type;
        enum talk_step step;
    } answers[4]; /* `fail` may always come, and is the last */
    bool starts;  /* makes init start a process, before the first answer */
    bool lasts;   /* for as long as the tenant's program likes */
};

/* Any message, decoded; points into the hub's memory, dies with the call. */
union talk_msg {
#define X(kind, s, number, fields) struct s s;
    INIT_MSGS(X)
#undef X
};

struct talk_ops {
    /* An answer. When it was the last the talk is already over and may be used
     * again or freed. -1: it contradicts what came before; the talk fails. */
    int (*on_msg)(struct talk *t, uint16_t type, const union talk_msg *m, struct err *e);
    /* It is over. */
    void (*on_fail)(struct talk *t, const struct err *e);
    /* Everything sent has left our queue. May be NULL. */
    void (*on_drain)(struct talk *t);
};

struct talk { /* zeroed memory is one that never began */
    struct talk_hub *hub;
    struct talk_peer *peer;
    const struct talk_kind *kind;
    const struct talk_ops *ops;
    struct line *line; /* NULL: not begun, or over */
    struct list link;
    uint32_t seq;
    bool paused, fed;
    bool sent;            /* something of the request is on its way */
    bool heard;           /* something was answered */
    bool starting;        /* counted in the peer's nstarts */
    uint64_t deadline_ms; /* 0: none */
    struct loop_timer deadline;
    struct loop_later later; /* a failure to tell from the loop */
    struct err why;
};

struct talk_hub *talk_hub_new(struct loop *loop, int run_fd);
void talk_hub_free(struct talk_hub *h);
size_t talk_hub_conns(const struct talk_hub *h);

void talk_peer_init(struct talk_peer *p, struct talk_hub *h, const char *id);
/* Every talk under way fails with `why`, from the loop; idle connections close.
 * The peer may be used again, as one that was never heard. */
void talk_peer_reset(struct talk_peer *p, const struct err *why);

/* connect(2) to an init, without waiting; -1 with errno, EAGAIN if its queue is full. */
int talk_connect(const struct talk_hub *h, int fd, const char *id);
#define TALK_RETRY_MS 5 /* ...then again after so long */
/* Makes an error of another errno: if no process listens on its socket the init has ended, and the
 * keeper is about to report it. */
int talk_unreachable(const char *id, int sys, struct err *e);
/* Makes an error of an init's `fail`, which may not claim every kind. */
void talk_failure(const struct init_fail *m, struct err *ret);

/* While it is held, requests are queued; those begun continue. */
void talk_peer_hold(struct talk_peer *p, bool held);
/* There are requests to start something that were not begun. */
bool talk_peer_waits(const struct talk_peer *p);
/* They fail with `why`. */
void talk_peer_refuse(struct talk_peer *p, const struct err *why);

/* Sends the request. deadline_ms (0: none) bounds the silence between any two
 * steps: connecting, hello, each answer. Always ends in a callback. */
void talk_begin(struct talk *t, struct talk_peer *p, const struct talk_kind *kind, const void *msg,
                uint64_t deadline_ms, const struct talk_ops *ops);
/* One that could not even begin: on_fail comes from the loop. */
void talk_begin_failed(struct talk *t, struct talk_hub *h, const struct talk_ops *ops,
                       const struct err *why);
/* One more message of the same conversation. Returns what is queued. */
size_t talk_send(struct talk *t, uint16_t type, const void *msg);
size_t talk_queued(const struct talk *t);
/* From the next answer on. */
void talk_set_deadline(struct talk *t, uint64_t deadline_ms);
void talk_pause(struct talk *t, bool paused);
/* No callback follows. */
void talk_end(struct talk *t);

#endif
