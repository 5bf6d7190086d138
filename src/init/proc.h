/* proc.h - the commands of this sandbox: running ones, and the last finished.
 *
 * A process is recorded under its id from its start until it is forgotten: an
 * exec as soon as everyone who looked has seen its end, others when
 * PROCS_KEPT_MAX younger ones have ended. Whoever looks at one is a watch. One
 * watch may be the owner: output waits for it and is never lost; everyone else
 * may fall behind. When it goes, the next that wants to be the owner is. Nobody who
 * goes away takes the process along. */
#ifndef INIT_PROC_H
#define INIT_PROC_H

#include <stdbool.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "init/fsm.h"
#include "init/group.h"
#include "init/journal.h"
#include "init/ring.h"
#include "init/spawn.h"
#include "loop/loop.h"
#include "wire/init.h"

#define PROCS_RUNNING_MAX 512u /* then ERR_LIMIT */
#define PROCS_OWN_MAX 64u      /* of them the front's own, watches; then ERR_LIMIT */
#define PROCS_KEPT_MAX 64u     /* finished ones; the oldest is forgotten */
#define TERMS_RUNNING_MAX 32u  /* half of the sandbox's ptys; then ERR_LIMIT */
#define TERMS_KEPT_MAX 16u     /* finished ones, besides PROCS_KEPT_MAX */
#define TERM_RING_DEFAULT (256u << 10)
#define PROCS_GHOSTS_MAX 256u       /* forgotten ones whose pipes are open; the oldest is cut off */
#define PROCS_RINGS_MAX (64u << 20) /* all output kept; the oldest finished lose theirs */
#define PROC_TIME_MAX (365ull * 86400000) /* ms; longer timeouts and graces are this long */
#define OUTPUT_LATE_MS 1u                 /* see output_start_late() */
#define PIPE_GROWN (256u << 10)    /* the uid has 64 MiB for all pipes, so only floods get this */
#define STDIN_QUEUE_MAX (1u << 20) /* written but not yet read; then ERR_LIMIT */
#define STDIN_QUEUE_HIGH (256u << 10) /* above this the owner's socket is not read */

struct proc;

enum proc_output {
    OUTPUT_LIVE,     /* the root runs */
    OUTPUT_DRAINING, /* it ended; what it had written is being read */
    OUTPUT_ENDED,    /* that is done, and the end is known to everyone */
};

struct outpipe {
    struct loop_io io;
    int fd;   /* -1 once closed by everyone who could write */
    int hold; /* a writing end of our own, so that this is not yet; -1: none */
    int done; /* a session's, read to its end: for the next command; -1: none */
    unsigned stream;
    size_t left; /* while draining: bytes still to come before the end */
    bool last;   /* ...and nothing can come behind them */
    bool grown;
    struct journal_part part; /* with INIT_START_LOG */
};

struct proc_watch {
    struct list link;
    struct proc *proc; /* NULL while it looks at nothing, or the proc was forgotten */
    uint64_t cursor;   /* the next byte it wants */
    bool owns;         /* or would, if nobody else did */
    void (*changed)(struct proc_watch *w); /* more output, the end, room in stdin, forgotten */
};

/* How many finished ones of a kind stay known; the oldest is forgotten. */
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
    struct list all;              /* in order of start */
    struct list ended;            /* of those, the ones that are over, in order of their end */
    struct list ghosts;           /* forgotten; their output is read and thrown away */
    unsigned running, terms, own; /* terms: those of them that are terminals; own: the front's */
    struct shelf shelves[2];      /* of processes, and of terminals */
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
    pid_t pid;           /* 0 once reaped: then it may be anyone's */
    struct group *group; /* belongs to the proc until PROC_GONE, then NULL */
    struct ring ring;
    struct outpipe out[2];
    int slave;   /* a terminal's, held while its root runs; else -1. See term.c */
    bool paused; /* nobody reads out: the ring is full of what the owner wants */
    bool cut;    /* INIT_START_WHOLE no longer: it was told to end */
    struct {
        struct loop_io io;
        int fd; /* -1: closed, or it reads /dev/null */
        struct buf queue;
        bool closing; /* once the queue is written */
        bool grown;   /* the pipe was full once and is larger since */
    } in;
    struct loop_timer timeout, grace, retry;
    uint64_t frozen_ms; /* groups_frozen_ms() when the timeout was last set */
    uint64_t oom_kills; /* groups_oom_kills() at its start, or when we last killed it */
    struct loop_later later;
    struct list watches;
    struct proc_watch *owner;           /* one of the watches, or NULL */
    uint32_t flags;                     /* INIT_START_... */
    struct shelf *shelf;                /* borrowed */
    struct call *call;                  /* a session's command: what runs it, until it is over */
    uint64_t session;                   /* the serial of that session; 0: it is none */
    bool queued;                        /* it has not begun */
    void (*late)(struct proc *p);       /* its time is over; NULL: it is killed */
    int (*hold)(struct proc *p, int i); /* with call: a writing end of that pipe, or -1 */
    bool forget;                        /* no record stays when it is over and was seen */
    bool unnamed;                       /* its id is free for another */
    struct init_proc record; /* its strings point into text; state and positions are filled
                               * in by proc_fill() */
    uint64_t output_end;     /* ring.end when the output ended */
    char text[];
};

int procs_init(struct procs *ps, struct loop *l, int run_fd, int oom_fd, uint64_t nofile,
               struct err *e);

struct proc *proc_find(struct procs *ps, const char *id, struct err *e); /* ERR_NOT_FOUND */
/* ERR_CONFLICT if the id is taken, ERR_LIMIT, ERR_CANNOT_START with a text for
 * the caller. *ret stays until it is forgotten, at the end of this turn earliest.
 * 1 instead of 0: INIT_START_GET found this one. */
int proc_start(struct procs *ps, const struct init_start *m, struct proc **ret, struct err *e);
/* The same, but the record shows another argv, and an fd (or -1) is its fd 3. */
int proc_start_as(struct procs *ps, const struct init_start *m, const struct wire_strv *shown,
                  int fd, struct proc **ret, struct err *e);
/* A record without a root: somebody else runs it (session.h), and says how it ended.
 * `name` is its id, NULL for one that nobody is to find; *m only says what to record. */
int proc_add(struct procs *ps, const struct init_start *m, const char *name, struct shelf *shelf,
             struct proc **ret, struct err *e);
void proc_ended(struct proc *p, unsigned code, unsigned signal);
/* From now on; 0: it has all the time it wants. */
int proc_set_timeout(struct proc *p, uint64_t ms);
/* The shelf goes: what stands on it is forgotten, and its names are free. */
void procs_orphan(struct procs *ps, const struct shelf *shelf);
bool proc_id_is_valid(const char *id);
void proc_event(struct proc *p, enum proc_event ev);
/* TERM now, the rest after grace_ms. */
void proc_kill(struct proc *p, uint64_t grace_ms);
int proc_signal(struct proc *p, int signo, enum init_signal_to to, struct err *e);
/* Nobody watches it: what that means to one on a leash. */
void proc_unwatched(struct proc *p);
/* The front's own, shown to nobody else. */
bool proc_is_own(const struct proc *p);
/* The root ended so. */
void proc_reaped(struct proc *p, int status, const struct rusage *ru);

bool proc_is_term(const struct proc *p);
/* No record is to stay of it. */
void proc_forget(struct proc *p);
/* Its id may be used again at once; whoever looks at it still sees its end. */
void proc_unname(struct proc *p);

/* Both point into p. */
void proc_fill(const struct proc *p, struct init_proc *m);
void proc_fill_exit(const struct proc *p, struct init_exit *m);

void proc_watch_start(struct proc_watch *w, struct proc *p, uint64_t cursor,
                      void (*changed)(struct proc_watch *w), bool owner);
void proc_watch_stop(struct proc_watch *w);
/* The watch has taken bytes: w->cursor is further. */
void proc_watch_moved(struct proc_watch *w);
/* Tells every watch. */
void proc_changed(struct proc *p);

/* Between the files proc*.c: a record that nobody knows yet, its end, and a look at the end
 * of this turn whether it goes on or is forgotten. */
struct proc *proc_new(struct procs *ps, const struct init_start *m, const char *id);
void proc_free(struct proc *p);
void proc_later(struct proc *p);

/* output.c: from the pipes into the ring. */
int output_open(struct proc *p, int ret_write[2], struct err *e);
void output_take(struct proc *p, int i, int fd); /* a pipe that somebody else made */
int output_start(struct proc *p, struct err *e);
/* The same, in OUTPUT_LATE_MS or at its end, whichever comes first: what is over by then is
 * read once, and its watches hear of it once. */
int output_start_late(struct proc *p, struct err *e);
bool output_is_late(const struct proc *p); /* it is not read yet */
void output_drain(struct proc *p);         /* the root ended: read what it left, then the end */
void output_cut(struct proc *p);           /* the end waits for nobody who still holds the pipes */
void output_resume(struct proc *p);
void output_sink(struct proc *p); /* from now on throw it away, until it is closed */
void output_close(struct proc *p);
void output_log_rest(struct proc *p); /* what is left of a line goes to the journal */
bool output_is_open(const struct proc *p);
void proc_output_ended(struct proc *p);
void proc_sink_closed(struct proc *p);

/* feed.c: into stdin. */
int feed_open(struct proc *p, int *ret_read, struct err *e);
/* Queues bytes; ERR_LIMIT when the queue is full, ERR_GONE when nobody reads. */
int feed_add(struct proc *p, const struct wire_bytes *data, struct err *e);
void feed_finish(struct proc *p); /* EOF behind what is queued */
void feed_close(struct proc *p);

/* term.c: a pty in place of the pipes. */
int term_open(struct proc *p, const struct init_start *m, const struct user *u, struct err *e);
void term_close(struct proc *p); /* the root ended and its output was read */
int term_resize(struct proc *p, uint32_t cols, uint32_t rows, struct err *e);
/* As it is now: whoever is inside may change it too. */
void term_size(const struct proc *p, uint32_t *cols, uint32_t *rows);
int term_signal(const struct proc *p, int signo, struct err *e); /* to the foreground */

#endif
