/* proc.h - the commands of this sandbox: running ones, and the last finished.
 *
 * A process has a record under its id from its start until the record is dropped: that of
 * an exec when every watch has seen its end, others when PROCS_KEPT_MAX younger ones have
 * ended. A watch is a reader of one process. One watch may be the owner: output waits for it
 * and is never lost; viewers may miss some. When the owner leaves, the next watch that asked
 * to own becomes the owner. A process outlives its watches.
 *
 * A process is two things that end separately: its root, which we started and reap, and its
 * group (group.h), which holds everything the root started. enum proc_state has the
 * combinations, and the table in proc_life.c decides what each event means in each. */
#ifndef INIT_RUN_PROC_H
#define INIT_RUN_PROC_H

#include <stdbool.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "init/run/group.h"
#include "init/run/journal.h"
#include "init/run/ring.h"
#include "init/run/spawn.h"
#include "loop/loop.h"
#include "wire/init.h"

#define PROCS_RUNNING_MAX 512u /* then ERR_LIMIT */
#define PROCS_OWN_MAX 64u      /* of them the front's own (file watches); then ERR_LIMIT */
#define PROCS_KEPT_MAX 64u     /* finished ones; the oldest record is dropped */
#define TERMS_RUNNING_MAX 32u  /* half of the sandbox's ptys; then ERR_LIMIT */
#define TERMS_KEPT_MAX 16u     /* finished ones, besides PROCS_KEPT_MAX */
#define TERM_RING_DEFAULT (256u << 10)
#define PROCS_GHOSTS_MAX 256u       /* dropped ones whose pipes are open; the oldest is closed */
#define PROCS_RINGS_MAX (64u << 20) /* all output kept; the oldest finished ones lose theirs */
#define PROC_TIME_MAX (365ull * 86400000) /* ms; longer timeouts and graces are this long */
#define OUTPUT_LATE_MS 1u                 /* see output_start_late() */
#define PIPE_GROWN (256u << 10)    /* the uid has 64 MiB for all pipes, so only floods get this */
#define STDIN_QUEUE_MAX (1u << 20) /* written but not yet read; then ERR_LIMIT */
#define STDIN_QUEUE_HIGH (256u << 10) /* above this the owner's socket is not read */

struct proc;

enum proc_state {
    PROC_RUNNING,     /* the root runs */
    PROC_ASKED,       /* ...and the group was sent TERM; its grace is running */
    PROC_FORCED,      /* ...and the group was killed */
    PROC_LEFT,        /* the root ended; others of its group may live on */
    PROC_LEFT_ASKED,  /* ...and were sent TERM */
    PROC_LEFT_FORCED, /* ...and were killed */
    PROC_GONE,        /* no process of it lives */
    PROC_STATE_COUNT
};

enum proc_event {
    EV_KILL,    /* a kill with a grace */
    EV_FORCE,   /* the grace is over, or there was none */
    EV_TIMEOUT, /* its own time limit passed */
    EV_EXIT,    /* the root was reaped */
    EV_EMPTY,   /* the group has no process any more */
    PROC_EVENT_COUNT
};

enum proc_act {
    ACT_UNDECIDED, /* an empty cell; test_init_proc_life.c refuses it */
    ACT_STALE,     /* nothing to do, and that is a decision */
    ACT_ASK,       /* TERM to the group, start the grace */
    ACT_FORCE,     /* kill the group */
    ACT_EXPIRE,    /* kill the group, and the exit says timed out */
    ACT_REAP,      /* record the exit, wait for the group to become empty */
    ACT_REAP_ASK,  /* the same, and TERM to processes born since the first TERM */
    ACT_BURY,      /* give the group back, answer those who wait for that */
    PROC_ACT_COUNT
};

enum proc_output {
    OUTPUT_LIVE,     /* the root runs */
    OUTPUT_DRAINING, /* it ended; what it had written is being read */
    OUTPUT_ENDED,    /* all was read, and every watch was told of the end */
};

struct outpipe {
    struct loop_io io;
    int fd;   /* -1 once every writer has closed it */
    int hold; /* a writing end of our own, which prevents that; -1: none */
    int done; /* a session's, read to its end, for the next command; -1: none */
    unsigned stream;
    size_t left;              /* while draining: bytes to read before the end */
    bool last;                /* ...and no writer can add to them */
    bool grown;               /* made larger after a flood */
    struct journal_part part; /* with INIT_START_LOG */
};

struct proc_watch {
    struct list link;
    struct proc *proc;                     /* NULL: none, or its record was dropped */
    uint64_t cursor;                       /* the next byte it wants */
    bool owns;                             /* it is the owner, or wants to be the next one */
    void (*changed)(struct proc_watch *w); /* more output, the end, room in stdin, dropped */
};

/* The records of finished processes of one kind: how many there are, and may be. */
struct shelf {
    unsigned kept, max;
};

struct procs {
    struct loop *loop;
    struct groups groups;
    struct spawner spawner;
    struct ring_budget rings;
    struct journal journal;
    struct map by_id;
    struct list all;              /* with a record, in order of start */
    struct list ended;            /* of those the finished ones, in order of their end */
    struct list ghosts;           /* without a record; their output is read and dropped */
    unsigned running, terms, own; /* terms: terminals among them; own: the front's */
    struct shelf shelves[2];      /* of processes, of terminals */
    unsigned nghosts;
    uint64_t next_id, next_serial;
    int root_fd, null_fd;
    void (*on_event)(struct procs *ps, const struct proc *p, enum init_event_kind kind);
};

struct proc {
    struct procs *all;
    struct map_node node;
    struct list link; /* in all, or in ghosts */
    struct list ended;
    uint64_t serial; /* counts up with every start */
    enum proc_state state;
    enum proc_output output;
    pid_t pid;           /* of the root; 0 once reaped: then it may be another process's */
    struct group *group; /* belongs to the proc until PROC_GONE, then NULL */
    struct ring ring;
    struct outpipe out[2];
    int slave;   /* a terminal's, held while its root runs; else -1. See terminal.c */
    bool paused; /* the pipes are not read: the ring is full of what the owner has not taken */
    bool cut;    /* INIT_START_WHOLE no longer applies: it was told to end */
    struct {
        struct loop_io io;
        int fd; /* -1: closed, or it reads /dev/null */
        struct buf queue;
        bool closing; /* once the queue is written */
        bool grown;   /* the pipe was full once, and was made larger */
    } in;
    struct loop_timer timeout, grace, retry;
    uint64_t frozen_ms; /* groups_frozen_ms() when the timeout was last set */
    uint64_t oom_kills; /* groups_oom_kills() at its start, or when we last killed it */
    struct loop_later later;
    struct list watches;
    struct proc_watch *owner;           /* one of the watches, or NULL */
    uint32_t flags;                     /* INIT_START_... */
    struct shelf *shelf;                /* borrowed */
    struct call *call;                  /* a session's command: its call, until it is over */
    uint64_t session;                   /* ...the serial of that session; 0: not of a session */
    bool queued;                        /* ...it has not begun */
    void (*late)(struct proc *p);       /* ...its time is over; NULL: kill it */
    int (*hold)(struct proc *p, int i); /* ...a writing end of that pipe, or -1 */
    bool forget;                        /* the record is dropped when its end was seen */
    bool unnamed;                       /* its id is free for another */
    struct init_proc record; /* strings point into text; proc_fill() adds state and positions */
    uint64_t output_end;     /* ring.end when the output ended */
    char text[];
};

int procs_init(struct procs *ps, struct loop *l, int run_fd, int oom_fd, uint64_t nofile,
               struct err *e);

struct proc *proc_find(struct procs *ps, const char *id, struct err *e); /* ERR_NOT_FOUND */
struct proc *proc_of_pid(struct procs *ps, pid_t pid); /* the one whose root has it, or NULL */
/* ERR_CONFLICT if the id is taken, ERR_LIMIT, ERR_CANNOT_START with a text for the client.
 * *ret stays valid until the end of this turn at least. 1 instead of 0: INIT_START_GET found
 * this one. */
int proc_start(struct procs *ps, const struct init_start *m, struct proc **ret, struct err *e);
/* The same, but the record shows another argv, and an fd (or -1) is its fd 3. */
int proc_start_as(struct procs *ps, const struct init_start *m, const struct wire_strv *shown,
                  int fd, struct proc **ret, struct err *e);
/* A record without a root, for what a session's shell runs (session/call.c): the caller says
 * when and how it ended. `name` is its id, NULL: it cannot be found; *m is only recorded. */
int proc_add(struct procs *ps, const struct init_start *m, const char *name, struct shelf *shelf,
             struct proc **ret, struct err *e);
void proc_ended(struct proc *p, unsigned code, unsigned signal);
/* Before it is reported as ended with `code`: INIT_EXIT_OOM_MEANWHILE, if that is so. */
void proc_blame_memory(struct proc *p, unsigned code);
/* From now on; 0: no limit. */
int proc_set_timeout(struct proc *p, uint64_t ms);
/* The shelf is freed by its owner: drops its records, and frees their ids. */
void procs_orphan(struct procs *ps, const struct shelf *shelf);
bool proc_id_is_valid(const char *id);
#define PROC_ID_RULE "an id is 1 to 64 characters of A-Z a-z 0-9 . _ -"
/* Moves *s on and returns what to do; proc_event() also does it. */
enum proc_act proc_step(enum proc_state *s, enum proc_event ev);
void proc_event(struct proc *p, enum proc_event ev);
/* TERM now, the rest after grace_ms. */
void proc_kill(struct proc *p, uint64_t grace_ms);
int proc_signal(struct proc *p, int signo, enum init_signal_to to, struct err *e);
/* It has no watch: ends one with INIT_START_LEASH. */
void proc_unwatched(struct proc *p);
/* The front's own, in no list for clients. */
bool proc_is_own(const struct proc *p);
/* The root ended with this status. */
void proc_reaped(struct proc *p, int status, const struct rusage *ru);

bool proc_is_term(const struct proc *p);
/* Its record is dropped when its end was seen. */
void proc_forget(struct proc *p);
/* Its id is free at once; its watches still see its end. */
void proc_unname(struct proc *p);

/* Both point into p. */
void proc_fill(const struct proc *p, struct init_proc *m);
void proc_fill_exit(const struct proc *p, struct init_exit *m);

void proc_watch_start(struct proc_watch *w, struct proc *p, uint64_t cursor,
                      void (*changed)(struct proc_watch *w), bool owner);
void proc_watch_stop(struct proc_watch *w);
/* w->cursor has moved on. */
void proc_watch_moved(struct proc_watch *w);
/* Tells every watch. */
void proc_changed(struct proc *p);

/* Between the files proc*.c: a record that is in no list yet, its end, and a check at the end
 * of this turn whether it resumes reading or is dropped. */
struct proc *proc_new(struct procs *ps, const struct init_start *m, const char *id);
void proc_free(struct proc *p);
void proc_later(struct proc *p);

/* output.c: from the pipes into the ring. */
/* The child's ends belong to the caller. */
int output_open(struct proc *p, int *ret_out, int *ret_err, struct err *e);
void output_take(struct proc *p, int i, int fd); /* a pipe that the caller opened */
int output_start(struct proc *p, struct err *e);
/* The same, but after OUTPUT_LATE_MS, or at its end if that comes first: a command that is over
 * by then is read once, and its watches are told once. */
int output_start_late(struct proc *p, struct err *e);
bool output_is_late(const struct proc *p); /* it is not read yet */
void output_drain(struct proc *p);         /* the root ended: read what it left, then the end */
void output_cut(struct proc *p);           /* the end no longer waits for all who hold the pipes */
void output_resume(struct proc *p);
void output_sink(struct proc *p); /* from now on read and drop, until it is closed */
void output_close(struct proc *p);
void output_log_rest(struct proc *p); /* an unfinished line goes to the journal */
bool output_is_open(const struct proc *p);
void proc_output_ended(struct proc *p);
void proc_sink_closed(struct proc *p);

/* stdin.c: into stdin. */
int stdin_open(struct proc *p, int *ret_read, struct err *e);
/* Queues bytes; ERR_LIMIT when the queue is full, ERR_GONE when stdin is closed. */
int stdin_add(struct proc *p, const struct wire_bytes *data, struct err *e);
void stdin_finish(struct proc *p); /* EOF after what is queued */
void stdin_close(struct proc *p);

/* terminal.c: a pty in place of the pipes. */
int term_open(struct proc *p, const struct init_start *m, const struct user *u, struct err *e);
void term_close(struct proc *p); /* the root ended and its output was read */
int term_resize(struct proc *p, uint32_t cols, uint32_t rows, struct err *e);
/* As it is now: programs inside may change it too. */
void term_size(const struct proc *p, uint32_t *cols, uint32_t *rows);
int term_signal(const struct proc *p, int signo, struct err *e); /* to the foreground */

#endif
