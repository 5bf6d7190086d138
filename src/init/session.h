/* session.h - shells that remember: a bash each, told what to do by init.
 *
 * A session belongs to the sandbox and dies with it, or when its shell ends; then it
 * stays known, with what happened, until it is deleted. It does one call at a time, in
 * the order in which they came. A command of it is a proc (proc.h) without a root of
 * its own, under the name SESSION/COMMAND: whoever looks at it looks as at any other.
 *
 * Everything of a session lives below one cgroup, `home`. The shell is in one of its
 * children, and with it what the current command starts. What a command leaves behind
 * keeps that group; the shell is moved to a fresh one. So a timeout kills the current
 * command's processes, all of them, and no others. */
#ifndef INIT_SESSION_H
#define INIT_SESSION_H

#include "init/conn.h"
#include "init/proc.h"
#include "init/reply.h"
#include "init/script.h"
#include "init/session_dir.h"
#include "loop/job.h"

#define SESSIONS_MAX 64u        /* that run; then ERR_LIMIT */
#define SESSIONS_ENDED_MAX 64u  /* that are over; the oldest is forgotten */
#define SESSION_QUEUE_MAX 64u   /* calls that wait; then ERR_LIMIT */
#define SESSION_KEPT_MAX 32u    /* finished commands; the oldest is forgotten */
#define SESSION_GROUPS_MAX 256u /* commands that left processes behind */
#define SESSION_START_MS 10000u /* for bash to say that it runs */
#define SESSION_BACK_MS 3000u   /* for a shell that was stopped to come back, on a busy host too */
#define SESSION_STATE_MAX (4u << 20)  /* bytes of variables and functions for a process */
#define SESSION_TEXTS_MAX (64u << 20) /* bytes of commands that wait, of all sessions */
#define SESSION_ROOT "/dev/cove"

struct session;

enum session_state {
    SESSION_STARTING, /* bash has not said that it runs */
    SESSION_IDLE,     /* it waits */
    SESSION_BUSY,     /* it has a call, or gets one */
    SESSION_ENDED,
};

enum call_kind {
    CALL_COMMAND,
    CALL_DUMP, /* our own: its state, for a process */
};

/* Something for the shell to do. */
struct call {
    struct list link; /* of those that wait; in none once it is the current one */
    struct session *session;
    enum call_kind kind;
    struct proc *proc;    /* stays when the call is over, until it is forgotten */
    struct buf bytes;     /* as they are sent: a struct shell_call first */
    size_t sent, counted; /* counted: in `texts` */
    uint64_t input;       /* number of its stdin, 0: none */
    uint64_t timeout_ms;
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
    size_t texts;  /* bytes of calls that wait */
    int object_fd; /* what a bash loads, once there was one */
    struct loop_later forget;
};

struct session {
    struct sessions *all;
    struct map_node node;
    struct list link, end_link;
    uint64_t serial;
    enum session_state state;
    bool deleted; /* gone as soon as nothing of it lives */
    struct loop_later gone;
    struct session_dir dir;
    struct user user;
    pid_t pid; /* the shell, a child of ours; 0: it is gone */
    int pidfd;
    struct group *home;
    struct groups groups;
    struct group *group; /* where the shell is */
    struct group *dying; /* killed, and somebody waits for it to be empty */
    struct {
        struct job job;
        struct group *to;
        int fd; /* its cgroup.procs */
        bool kill, again;
        pid_t pid; /* the shell, when it began; 0: there was none any more */
    } move;
    struct call *call; /* the current one */
    struct list queue;
    unsigned nqueue;
    bool fresh[2]; /* somebody may still write to what is 1 and 2 now */
    int out[2];    /* else the reading ends of them, once there are any: opening is dear */
    struct {
        int fd;
        struct loop_io io;
        struct buf text;
    } reply;
    struct {
        int fd; /* of c */
        struct loop_io io;
    } send;
    struct loop_timer timer; /* of the state it is in */
    unsigned ticks;
    uint64_t frozen_ms;
    uint32_t stop;           /* INIT_EXIT_TIMED_OUT or _INTERRUPTED: the current call is stopped */
    enum reply_kind leaving; /* REPLY_EXIT or _QUIET: the shell said that it ends; else _READY */
    bool finishing;          /* the call is over, but for what must still die */
    unsigned status;         /* of the last call */
    unsigned last;           /* of the last command: its $? */
    struct shelf shelf;      /* of its commands */
    uint64_t ncommands, ninputs;
    struct list askers;         /* conns that wait for its start */
    struct list leavers;        /* conns that wait for its end */
    struct init_session record; /* strings point into text, but for cwd and command */
    uint32_t ring;
    char why[INIT_WHY_MAX + 1];
    char text[]; /* id, user */
};

void sessions_init(struct sessions *ss, struct procs *ps, const char *root);
struct session *session_find(struct sessions *ss, const char *id, struct err *e);
/* For conversations: `cwd` is INIT_PATH_MAX + 1 bytes for the record's. */
void session_fill(const struct session *s, struct init_session *m, char *cwd);

/* A child of ours ended, or stopped. True: it is a session's. */
bool sessions_reaped(struct sessions *ss, pid_t pid, int status);
void sessions_poke(struct sessions *ss);

/* session.c: the life */
int session_create(struct sessions *ss, const struct init_session_create *m, struct session **ret,
                   struct err *e);
/* Kills what is left of it; true: it is gone already. */
bool session_delete(struct session *s);
/* When this turn is over: somebody still has it in hand. */
void session_delete_soon(struct session *s);
/* The shell is no more, or must not be. */
void session_end(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* `signo` to the shell, 0: none. False: it is gone. */
bool session_signal(const struct session *s, int signo);
void session_answer(struct list *conns, struct session *s);
void session_refuse(struct list *conns, const struct err *e);

/* session_call.c: what it is told to do */
int call_add_command(struct session *s, const struct init_session_exec *m,
                     const struct wire_bytes *text, uint64_t input, struct call **ret,
                     struct err *e);
int call_add_dump(struct session *s, const struct init_session_start *m, struct call **ret,
                  struct err *e);
int call_check_room(const struct session *s, struct err *e);
void call_free(struct call *c);
/* The next one, if it may. */
void session_next(struct session *s);
/* The current call is over so; what it printed is read. */
void session_over(struct session *s, unsigned code);
/* Those that wait never will run, nor will the current one end. */
void session_drop_calls(struct session *s);

/* session_send.c: the current call to the shell */
void session_send(struct session *s);

/* session_reply.c */
int session_listen(struct session *s, struct err *e);
void session_unlisten(struct session *s);
/* What it has said unasked. */
void session_forget(struct session *s);
/* Takes what it has said already. */
void session_hear(struct session *s);

/* session_stop.c: groups, and how a call is stopped */
void session_stop(struct session *s, uint32_t why);
/* True: the current group holds nobody but the shell. */
bool session_is_alone(struct session *s);
/* The shell to a fresh group; `kill`: and everything in the old one dies. */
void session_move(struct session *s, bool kill);
bool session_is_moving(const struct session *s);

/* Tells who watches the sandbox. */
void sessions_told(struct sessions *ss, const struct session *s, enum init_event_kind kind);

/* session_serve.c */
union request;
void on_session_create(struct conn *c, const union request *r);
void on_session_list(struct conn *c, const union request *r);
void on_session_get(struct conn *c, const union request *r);
void on_session_delete(struct conn *c, const union request *r);
void on_session_exec(struct conn *c, const union request *r);
void on_session_more(struct conn *c, const union request *r);
void on_session_interrupt(struct conn *c, const union request *r);
void on_session_commands(struct conn *c, const union request *r);
void on_session_start(struct conn *c, const union request *r);

/* session_start.c: a process from the state that was dumped */
void session_started(struct call *c);

#endif
