/* conn.h - one connection of the front: one conversation (a talk) after another.
 *
 * Output is sent from the process's ring when the socket takes it, so a front that does
 * not read costs at most the rest of one message. Requests that arrive during a talk wait
 * in the socket. A malformed frame closes its connection, and nothing else.
 *
 * A connection is in one talk, and has three further states: whether it is open, whether
 * its socket takes output, whether its input is being served. What each talk does is a
 * row of the table of talks, which message may come in which talk a row of the table of
 * requests; both are in serve/requests.c. */
#ifndef INIT_TALK_CONN_H
#define INIT_TALK_CONN_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/list.h"
#include "init/run/proc.h"
#include "loop/loop.h"
#include "wire/init.h"

#define CONN_CHUNK (64u << 10)   /* of output in one message; what a socket takes at once */
#define CONN_SMALL 4096u         /* up to so many bytes wait for the end of the turn */
#define CONN_OUT_MAX (1u << 20)  /* unread answers; a monitor beyond this is closed */
#define CONN_TURN_MAX (1u << 20) /* bytes of output sent or searched per turn */
#define CONN_WAITS_MAX 160u

struct conn;

enum talk {
    TALK_NONE,     /* none: waiting for a request */
    TALK_OWN,      /* owner: output until the exit, the process waits for it; stdin comes in */
    TALK_FOLLOW,   /* output until the exit */
    TALK_LOOK,     /* output up to where it ended when the request came */
    TALK_LIST,     /* records of processes */
    TALK_SESSIONS, /* records of sessions */
    TALK_WAIT,     /* until the process has ended */
    TALK_KILL,     /* until no process of its tree lives */
    TALK_PORT,     /* until a server listens */
    TALK_LOG,      /* until a text was printed */
    TALK_MONITOR,  /* events, until the connection closes */
    TALK_JOURNAL,  /* lines, until the connection closes */
    TALK_VIEW,     /* viewer: a terminal's output until its exit; what is typed comes in */
    TALK_SESSION,  /* until a session has begun, ended or started a process */
    TALK_UPLOAD,   /* the rest of a session's command comes in */
    TALK_CONNECT,  /* until a port has answered */
    TALK_COUNT
};

enum talk_input {
    INPUT_WAITS,    /* stays in the socket until the talk is over */
    INPUT_REQUESTS, /* is served as it comes */
    INPUT_STDIN,    /* is served while the process's stdin queue has room */
};

/* One row per talk. */
struct talk_row {
    enum talk_input input;
    void (*pump)(struct conn *c); /* at every change; NULL: its answer comes by itself */
    void (*free)(void *detail);   /* NULL: it has none */
};

/* All connections, and what they need of the server. */
struct conns {
    struct loop *loop;
    struct list all;
    unsigned count;
    struct init_hello hello;
    const struct talk_row *talks; /* TALK_COUNT rows */
    void (*request)(struct conn *c, const struct wire_head *h, const char *body);
};

enum conn_life {
    CONN_OPEN,
    CONN_HUNG_UP, /* the front hung up: what it typed is still taken, nothing is sent */
    CONN_CLOSED,  /* freed at the end of this turn */
};

enum conn_out {
    OUT_READY,
    OUT_MORE, /* the socket took all there was in `out`, and the talk has more to send */
    OUT_FULL, /* the socket took less than there is in `out` */
};

enum conn_in {
    IN_READY,
    IN_SERVING, /* a request in `in` is being served */
    IN_MORE,    /* further requests in `in` are served in the next turn */
};

struct conn {
    struct conns *conns;
    struct list link;
    struct loop_io io;
    int fd;
    int pass_fd; /* to send with the next bytes, or -1; belongs to the conn */
    struct buf in, out;
    enum conn_life life;
    enum conn_out out_state;
    enum conn_in in_state;
    struct loop_later later, soon; /* soon: flush */

    /* the talk */
    enum talk talk;
    uint32_t seq;            /* of its request; every answer carries it */
    struct proc_watch watch; /* the process it is about */
    uint32_t streams;        /* streams to send or search; 0: both */
    uint64_t until;          /* TALK_LOOK: up to this byte */
    uint64_t next; /* TALK_LIST, _SESSIONS: from this serial on; _JOURNAL: from this line on */
    struct {
        bool own;         /* the front's own processes, and no others */
        uint64_t session; /* the commands of this session; 0: processes */
    } list;               /* TALK_LIST */
    struct {
        uint32_t cols, rows;
    } told;             /* TALK_VIEW: the last size sent */
    struct list asking; /* TALK_SESSION: link of those that wait for the same */
    void *detail;       /* what else this talk has; belongs to it, freed by its row */
    struct loop_timer timer;
    uint64_t timeout_ms;
    char waits_for[CONN_WAITS_MAX]; /* "port 3000": for the message when time is over */
};

/* Takes over the fd; sends hello. */
int conn_open(struct conns *cs, int fd, struct err *e);
/* Closes now, frees at the end of this turn. */
void conn_close(struct conn *c);

static inline bool conn_is_closed(const struct conn *c)
{
    return c->life == CONN_CLOSED;
}

/* False: closed, or the socket is full; conn_pump() is called when it no longer is. */
static inline bool conn_can_send(const struct conn *c)
{
    return c->life != CONN_CLOSED && c->out_state != OUT_FULL;
}

/* Queues one message of this talk. It is sent at the end of this turn, or with the last
 * answer: what belongs together wakes the front once. */
void conn_send(struct conn *c, uint16_t type, const void *msg);
/* The same for the pieces of a message. */
void conn_queue(struct conn *c, const struct iovec *iov, size_t n);
/* Sends what is queued, and at most two pieces after it. Returns how many bytes of the
 * pieces were sent; -1: none, and the socket is full or closed. */
ssize_t conn_push(struct conn *c, const struct iovec *iov, size_t n);
/* The talk has more to send than is queued, or has not. */
void conn_set_more(struct conn *c, bool more);
/* What is queued waits beyond this turn, until the next conn_pump(). */
void conn_hold(struct conn *c);
/* Like conn_can_send(), for lists: flushes first when much is queued. */
bool conn_has_room(struct conn *c);

/* Each of these is a last answer: the talk is over, the next request may come. */
void conn_done(struct conn *c); /* the last answer was sent already */
void conn_ok(struct conn *c, uint64_t value);
void conn_fail(struct conn *c, const struct err *e);
void conn_fail_with(struct conn *c, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void conn_exit(struct conn *c); /* the exit of its process */
/* INIT_FD, with this fd, which is taken. If the front takes no fds on this connection the send
 * fails, and the connection is closed. */
void conn_pass(struct conn *c, enum init_fd_kind kind, int fd);

/* Starts a talk. `detail` belongs to it from now on, or is NULL. */
void conn_begin(struct conn *c, enum talk talk, void *detail);
/* If the talk is not over in time it fails: "timed out after N ms waiting for ...". 0: no
 * deadline. */
void conn_deadline(struct conn *c, uint64_t timeout_ms, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Watches a process for the talk: its pump is called now and at every change. */
void conn_watch(struct conn *c, struct proc *p, uint64_t cursor);
/* Goes on with the talk as far as possible now. */
void conn_pump(struct conn *c);

#endif
