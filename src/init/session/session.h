/* session.h - shells that remember: a bash each, told by init what to run.
 *
 * A session belongs to the sandbox and dies with it, or when its shell ends; its record
 * stays, with the reason, until it is deleted. It runs one call at a time, in the order in
 * which they came. A command is a proc (run/proc.h) without a root of its own, under the
 * name SESSION/COMMAND: it is read and waited for like any other.
 *
 * All processes of a session live below one cgroup, `home`. The shell is in a child of it,
 * together with what the current command starts. What a command leaves running keeps that
 * group; the shell is moved to a fresh one. So a time limit or an interrupt kills the
 * processes of the current command, all of them, and no others (interrupt.c).
 *
 * What happens in which state is the table in life.c. */
#ifndef INIT_SESSION_SESSION_H
#define INIT_SESSION_SESSION_H

#include "init/run/proc.h"
#include "init/session/dir.h"
#include "init/session/reply.h"
#include "init/talk/conn.h"
#include "loop/job.h"

#define SESSIONS_MAX 64u              /* that run; then ERR_LIMIT */
#define SESSIONS_ENDED_MAX 64u        /* records of ended ones; the oldest is dropped */
#define SESSION_QUEUE_MAX 64u         /* waiting calls; then ERR_LIMIT */
#define SESSION_KEPT_MAX 32u          /* records of finished commands; the oldest is dropped */
#define SESSION_GROUPS_MAX 256u       /* commands that left processes running */
#define SESSION_START_MS 10000u       /* for bash to say that it is ready */
#define SESSION_BACK_MS 3000u         /* for an interrupted shell to return, on a busy host too */
#define SESSION_STATE_MAX (4u << 20)  /* bytes of variables and functions for a process */
#define SESSION_TEXTS_MAX (64u << 20) /* bytes of waiting commands, of all sessions */
#define SESSION_ROOT "/dev/cove"
#define SESSION_SHELL "/bin/bash"

struct session;

enum session_state {
    SESSION_STARTING,          /* bash has not said that it is ready */
    SESSION_IDLE,              /* the shell waits for a call */
    SESSION_RUNNING,           /* it runs one */
    SESSION_EXITING,           /* ...and has said that it ends: its EXIT trap runs */
    SESSION_INTERRUPTING,      /* RUNNING, but the call is being interrupted */
    SESSION_INTERRUPTING_EXIT, /* EXITING, but the call is being interrupted */
    SESSION_FINISHING,         /* the interrupted shell is back, the call's processes still die */
    SESSION_ENDED,             /* the shell is gone, the record stays */
    SESSION_DELETED,           /* freed as soon as no process of it lives */
    SESSION_STATE_COUNT
};

enum session_event {
    ON_READY,      /* reply: bash runs */
    ON_DONE,       /* reply: the call is over */
    ON_LEFT,       /* reply: the call was left by exit, set -e and the like, the shell goes on */
    ON_EXIT,       /* reply: the shell ends (exit, set -n) */
    ON_CALL,       /* a call was queued */
    ON_INTERRUPT,  /* by a client, or because its time is over */
    ON_TIMER,      /* the timer of the state */
    ON_MOVED,      /* the shell is in its new group */
    ON_DIED,       /* the killed processes of an interrupted call are gone */
    ON_SHELL_GONE, /* the shell was reaped */
    ON_FAIL,       /* the session cannot go on */
    ON_DELETE,
    SESSION_EVENT_COUNT
};

/* What an event brings along; zero where it does not apply. */
struct session_news {
    struct reply reply; /* the four replies */
    uint32_t why;       /* ON_INTERRUPT: INIT_EXIT_INTERRUPTED or INIT_EXIT_TIMED_OUT */
    int status;         /* ON_SHELL_GONE: as wait() has it */
    const char *text;   /* ON_FAIL: the reason, for clients */
};

typedef void session_reaction(struct session *s, const struct session_news *n);

enum call_kind {
    CALL_COMMAND,
    CALL_DUMP, /* our own: print the shell's state, for a process */
};

/* Something for the shell to do. */
struct call {
    struct list link; /* of the waiting ones; in no list once it is the current one */
    struct session *session;
    enum call_kind kind;
    struct proc *proc;    /* stays when the call is over, until its record is dropped */
    struct buf bytes;     /* as they are sent: a struct shell_call first */
    size_t sent, counted; /* counted: in sessions.texts */
    uint64_t input;       /* number of its stdin file, 0: none */
    uint64_t timeout_ms;
    unsigned status;    /* that the shell replied */
    struct buf order;   /* CALL_DUMP: the request, to be decoded again */
    struct list askers; /* CALL_DUMP: the conn that waits */
};

struct sessions {
    struct procs *procs;
    const char *root; /* where their directories are */
    struct map by_id;
    struct list all, ended;
    unsigned running;
    uint64_t next_id, next_serial;
    size_t texts;  /* bytes of waiting calls */
    int object_fd; /* what a bash loads; -1 before the first session */
    struct loop_later forget;
    void (*on_event)(struct sessions *ss, const struct session *s, enum init_event_kind kind);
};

struct session {
    struct sessions *all;
    struct map_node node;
    struct list link, end_link;
    uint64_t serial;
    enum session_state state;
    struct init_session record; /* strings point into text, except cwd and command */
    struct session_dir dir;
    struct user user;
    uint32_t ring;      /* bytes of output kept for each command */
    struct shelf shelf; /* its finished commands */
    uint64_t ncommands, ninputs;
    struct loop_later gone;
    struct list askers;  /* conns that wait for its start */
    struct list leavers; /* conns that wait for its deletion */

    /* the shell and its processes */
    pid_t pid; /* a child of ours; 0: reaped */
    int pidfd;
    struct group *home;
    struct groups groups; /* below home */
    struct group *group;  /* where the shell is */
    struct group *dying;  /* was killed with an interrupted call; NULL: it is empty */
    struct {
        struct job job;
        struct group *to;      /* NULL: the shell is not being moved */
        struct group_move how; /* its pid is 0 if the shell had ended when it began */
        bool kill;             /* ...and what stays in the old group is killed */
    } move;

    /* what it does */
    struct call *call; /* the current one */
    struct list queue;
    unsigned nqueue;
    unsigned last_status;    /* of the last command: its $? */
    uint32_t interrupted;    /* why the current call is interrupted, as in its exit flags; 0: not */
    enum reply_kind exit;    /* *EXITING*: REPLY_EXIT or REPLY_QUIET */
    struct loop_timer timer; /* of the state it is in */
    unsigned ticks;          /* of that timer, since the interrupt */
    uint64_t frozen_ms;

    /* what leads to the shell */
    struct {
        int fd;     /* the reading end of its stdout or stderr FIFO, kept: opening is dear */
        bool stale; /* a process still holds the FIFO: the next command gets another */
    } outputs[2];
    struct {
        int fd;
        struct loop_io io;
        struct buf text;
    } reply;
    struct {
        int fd;
        struct loop_io io;
    } send;

    char why[INIT_WHY_MAX + 1]; /* it ended */
    char text[];                /* id, user */
};

/* ---- session.c: the table of sessions, and the start of one ---- */
void sessions_init(struct sessions *ss, struct procs *ps, const char *root);
struct session *session_find(struct sessions *ss, const char *id, struct err *e);
int session_create(struct sessions *ss, const struct init_session_create *m, struct session **ret,
                   struct err *e);
/* Only if no process of it lives: once it is deleted, or if it could not be started. */
void session_free(struct session *s);
/* The record as it is now; `cwd` is INIT_PATH_MAX + 1 bytes for the record's. */
void session_fill(const struct session *s, struct init_session *m, char *cwd);
/* Answers conns that wait: with the record, or that it failed. */
void session_answer(struct list *conns, struct session *s);
void session_refuse(struct list *conns, const struct err *e);
/* A child of ours ended, or was stopped. True: it is a session's shell. */
bool sessions_reaped(struct sessions *ss, pid_t pid, int status);
void sessions_poke(struct sessions *ss); /* children were reaped: some group may be empty */
/* `signo` to the shell, 0: none. False: it is gone. */
bool session_signal(const struct session *s, int signo);

/* ---- life.c: the table of states and events ---- */
void session_event(struct session *s, enum session_event ev, const struct session_news *n);
extern session_reaction *const session_reactions[SESSION_STATE_COUNT][SESSION_EVENT_COUNT];
/* True if some reply means something in this state; in others the shell is not heard. */
bool session_listens(enum session_state state);
/* ON_TIMER after so long, unless the state changes first; -1: out of memory. */
int session_set_timer(struct session *s, uint64_t ms);
/* The session cannot go on: its shell is killed, and this is the reason for clients. */
void session_fail(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Kills every process of it, and frees it when they are gone: perhaps now. */
void session_delete(struct session *s);
void session_delete_soon(struct session *s); /* at the end of this turn */

/* ---- call.c: what it is told to do ---- */
int call_add_command(struct session *s, const struct init_session_exec *m,
                     const struct wire_bytes *text, uint64_t input, struct call **ret,
                     struct err *e);
int call_add_dump(struct session *s, const struct init_session_start *m, struct call **ret,
                  struct err *e);
int call_check_room(const struct session *s, struct err *e);
void call_free(struct call *c);
/* Gives the first waiting call to the shell, if there is one. */
void session_next(struct session *s);
/* Records how the current call ended, answers and frees it. */
void call_finish(struct session *s);
/* The session has ended: the current call with it, the waiting ones never run. */
void session_drop_calls(struct session *s);

/* ---- interrupt.c: the processes of a call, and how they are killed ---- */
void session_timed_out(struct proc *p);
void interrupt_begin(struct session *s);
void interrupt_tick(struct session *s);
/* True: some process of the interrupted call still lives, and will not for long. */
bool interrupt_is_under_way(struct session *s);
/* True: the shell is the only process in its group. */
bool session_is_alone(struct session *s);
/* Moves the shell to a fresh group; `kill`: what stays in the old one is killed. */
void session_move(struct session *s, bool kill);
bool session_is_moving(const struct session *s);

/* ---- channel.c: calls to the shell, replies from it ---- */
int channel_open(struct session *s, struct err *e);
void channel_close(struct session *s);
void channel_send(struct session *s); /* the current call */
void channel_drop(struct session *s); /* what the shell said unasked */
void channel_hear(struct session *s); /* what the shell has said already */

/* ---- process.c: a process that starts in the state that was dumped ---- */
void process_from_dump(struct call *c);

#endif
