/* conn.h - one connection of the front: one conversation at a time.
 *
 * Output is sent from the process's ring when the socket takes it, so a peer that
 * does not read costs at most the rest of one message. Requests that arrive while
 * a conversation runs wait in the socket. A frame that makes no sense ends the
 * connection, and nothing else. */
#ifndef INIT_CONN_H
#define INIT_CONN_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/list.h"
#include "init/proc.h"
#include "loop/loop.h"
#include "wire/init.h"

#define CONN_CHUNK (64u << 10)   /* of output in one message; what a socket takes at once */
#define CONN_SMALL 4096u         /* bytes that rather wait for the end of the turn than go alone */
#define CONN_OUT_MAX (1u << 20)  /* answers not yet read; a monitor beyond it is cut off */
#define CONN_TURN_MAX (1u << 20) /* bytes of output sent or searched per turn */
#define VIEWERS_MAX 32u          /* of one terminal; then ERR_LIMIT */
#define VIEWERS_ALL_MAX 256u     /* of all terminals together: each has a connection */

struct serve;
struct port_wait;
struct log_wait;
struct dial;
struct upload;

enum talk {
    TALK_NONE,     /* waiting for a request */
    TALK_OWN,      /* output until the exit, which waits for us; stdin comes in */
    TALK_FOLLOW,   /* output until the exit */
    TALK_LOOK,     /* output until where it ended when we were asked */
    TALK_LIST,     /* records of processes */
    TALK_SESSIONS, /* ...and of sessions */
    TALK_WAIT,     /* until the process has ended */
    TALK_KILL,     /* until nothing of it lives */
    TALK_PORT,     /* until something listens */
    TALK_LOG,      /* until a text was printed */
    TALK_MONITOR,  /* events, for ever */
    TALK_JOURNAL,  /* lines, for ever */
    TALK_VIEW,     /* a terminal's output until its exit; what is typed comes in */
    TALK_SESSION,  /* until a session has begun, ended or started something */
    TALK_UPLOAD,   /* the rest of a session's command comes in */
    TALK_CONNECT,  /* until a port has answered */
    TALK_COUNT
};

struct conn {
    struct serve *serve;
    struct list link; /* of all connections */
    struct loop_io io;
    int fd;
    int pass_fd; /* to go with the next bytes, or -1; belongs to the conn */
    struct buf in, out;
    enum talk talk;
    uint32_t seq;            /* of the conversation */
    struct proc_watch watch; /* the process it is about */
    uint64_t stop;           /* TALK_LOOK: up to this byte; TALK_LIST: from this serial on;
                              * TALK_JOURNAL: from this line on */
    uint32_t streams;
    bool own;            /* TALK_LIST: the front's own, and only those */
    uint32_t cols, rows; /* TALK_VIEW: as told last */
    bool full;           /* the socket took less than there is in out */
    bool blocked;        /* ...or there is more to send than in out */
    bool serving;        /* a request of `in` is being served */
    bool more;           /* ...and others of `in` in the next turn */
    bool hung;           /* the front hung up: what it had typed is taken, nothing is sent */
    bool closing;
    struct loop_timer timer;
    struct loop_later later, soon;
    struct port_wait *port; /* TALK_PORT; belongs to the conn */
    struct log_wait *log;   /* TALK_LOG; belongs to the conn */
    struct list asking;     /* TALK_SESSION: in the list of who waits for the same */
    struct upload *upload;  /* TALK_UPLOAD; belongs to the conn */
    uint64_t session;       /* TALK_LIST: the commands of this one; 0: processes */
    struct dial *dial;      /* TALK_CONNECT; belongs to the conn */
};

/* Takes over the fd; says hello. */
int conn_open(struct serve *s, int fd, struct err *e);
/* Ends it and frees it at the end of this turn. */
void conn_close(struct conn *c);

/* Queues one message of this conversation. It is sent at the end of this turn, or with
 * the last answer: what belongs together wakes the front once. */
void conn_send(struct conn *c, uint16_t type, const void *msg);
/* The same for the pieces of a message. */
void conn_queue(struct conn *c, const struct iovec *iov, size_t n);
/* Sends what is queued, and pieces (at most two) behind it. How many bytes of them went;
 * -1: none, and the socket is full or gone. */
ssize_t conn_push(struct conn *c, const struct iovec *iov, size_t n);
/* What is queued waits for more, beyond this turn, until the next conn_pump(). */
void conn_hold(struct conn *c);
/* False: the socket is full of what is queued, and conn_pump() comes when it is not. */
bool conn_has_room(struct conn *c);
/* The last answer is INIT_FD, and this fd with it, which is taken. A front that takes
 * none on this connection loses it. */
void conn_pass(struct conn *c, enum init_fd_kind kind, int fd);
/* The last answer was sent: the next request may come. */
void conn_done(struct conn *c);
/* The last answer is that it failed. */
void conn_fail(struct conn *c, const struct err *e);
void conn_fail_gone(struct conn *c, const char *what);
void conn_exit(struct conn *c); /* ...or the exit of its process */

/* Starts a conversation about a process; `pump` of that talk is called at every
 * change from then on, and once now. */
void conn_watch(struct conn *c, enum talk talk, struct proc *p, uint64_t cursor);
/* Goes on with the conversation as far as possible now. */
void conn_pump(struct conn *c);

/* stream.c, list in serve.c, wait.c: how each talk goes on. */
void stream_pump(struct conn *c);
void view_pump(struct conn *c);
void wait_pump(struct conn *c);
void kill_pump(struct conn *c);
void port_pump(struct conn *c);
void log_pump(struct conn *c);
void list_pump(struct conn *c);
void journal_pump(struct conn *c);
void wait_free(struct conn *c);
void upload_free(struct upload *u); /* session_serve.c */
void session_list_pump(struct conn *c);
void dial_free(struct dial *d); /* connect.c */

/* ERR_INVALID for a position that no output has reached. */
int stream_check(const struct proc *p, uint64_t cursor, struct err *e);
/* view.c: the talk of somebody who looks at a terminal. */
void view_start(struct conn *c, struct proc *p, const struct init_view *m);
unsigned view_count(const struct serve *s, const struct proc *p); /* NULL: of all */

/* serve.c: one request. */
void serve_request(struct conn *c, const struct wire_head *h, const char *body);

#endif
