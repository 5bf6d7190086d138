/* internal.h - what the files of the engine share; private to them.
 *
 *   engine.c    start, counters                keeper.c   the socket to the keeper
 *   template.c  templates and their names      import.c   adding one
 *   build.c     with debootstrap               image.c    settings of an image
 *   join.c      the two records, at start      life.c     what happens to a sandbox when; with
 *                                              life_pause.c and life_end.c
 *   sandbox.c   what planes ask of sandboxes   events.c   the ring for /v1/events
 *   talk.c      conversations with inits       monitor.c  events of each init
 *   session.c   what planes ask of sessions
 *   command.c   from options to a message      stream.c, call.c  the two halves of process.h
 *   box.c       sandboxes in memory            waiter.c   callers to be answered
 *   snapshot.c  files as they were             fork.c     several from one
 *   export.c    and as one file
 *   metrics.c   resource usage                 logbook.c  logs of sandboxes
 *   network.c   rules and traffic              work.c     one call of cove-helper
 *   archive.c   directories in and out
 *   owners.c    whose sandboxes they are       list.c     in pages
 *   charge.c    quotas of keys, ceilings of limits
 *   name.c      sandboxes by name              fdpass.c   fds from inside
 *   file*.c     files, by init or cove-helper
 *   mount.c     directories of the operator's  idle.c     paused when unused
 *   tunnel.c    ports by token                 journal.c  output of commands
 *   flush.c     rows on the disk, before an answer */
#ifndef FRONT_ENGINE_INTERNAL_H
#define FRONT_ENGINE_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "front/engine/engine.h"
#include "front/engine/metrics.h"
#include "front/engine/process.h"
#include "front/engine/session.h"
#include "front/engine/snapshot.h"
#include "front/engine/talk/keeper.h"
#include "front/engine/talk/talk.h"
#include "front/quota/quota.h"
#include "front/store/store.h"
#include "wire/init.h"
#include "wire/keeper.h"

#define ENGINE_REASON_MAX 512
#define ENGINE_PRUNE_MS (60u * 1000u) /* between two looks at what is too old to keep */
_Static_assert(ENGINE_ID_MAX == KEEPER_ID_MAX, "one id, two names");

/* ---- a sandbox as the engine holds it ---- */

enum life {
    LIFE_RUNNING,
    LIFE_STOPPED,
    LIFE_PAUSED,
    LIFE_BOOTING,  /* the keeper was asked to boot it */
    LIFE_HALTING,  /* the keeper was asked to halt it */
    LIFE_PAUSING,  /* the keeper was asked to freeze it */
    LIFE_THAWING,  /* the keeper was asked to let it go on */
    LIFE_DOOMED,   /* to be deleted as soon as what is under way has ended */
    LIFE_DELETING, /* the row says so; the keeper was asked to destroy it */
    LIFE_STUCK,    /* the keeper could not destroy it; deleting again may */
    LIFE_DAMAGED,
    LIFE_RECOVERING, /* the keeper was asked to recover it */
    LIFE_COUNT
};

enum life_event {
    LIFE_DELETE,
    LIFE_RESUME,
    LIFE_PAUSE,
    LIFE_DIED,    /* news: its init ended */
    LIFE_TIMEOUT, /* its time is over */
    LIFE_BOOTED,
    LIFE_BOOT_FAILED,
    LIFE_HALTED,
    LIFE_HALT_FAILED,
    LIFE_FROZE,
    LIFE_FREEZE_FAILED,
    LIFE_THAWED,
    LIFE_THAW_FAILED,
    LIFE_DESTROYED,
    LIFE_DESTROY_FAILED,
    LIFE_RECOVER,
    LIFE_RECOVERED,
    LIFE_RECOVER_FAILED,
    LIFE_EVENT_COUNT
};

struct waiter; /* a caller to be answered */

/* flush.c */
struct flusher;
struct flush; /* a caller that continues when earlier commits are on the disk */
typedef void flush_cb(struct flush *w, const struct err *e);
struct flush {
    struct list link;
    flush_cb *cb;
    bool records;                  /* the keeper's too */
    void (*drop)(struct flush *w); /* instead, if the engine ends first; may be NULL */
};

struct monitor {
    struct talk talk;
    struct loop_timer retry, calm;
    unsigned failures, burst;
    uint64_t burst_ms;
};

struct journal { /* what its commands print, on its way into the log */
    struct talk talk;
    struct loop_timer retry;
    unsigned failures;
    struct list waiting; /* in the logbook's list while nothing more is read */
    char boot[65];
    uint64_t next;  /* line of that boot */
    uint64_t fresh; /* lines since the last look at how many are kept */
};

struct box {
    struct sandbox pub; /* what planes see; its strings belong to the box */
    struct engine *g;
    struct map_node node;
    uint64_t seq; /* order of creation, the cursor of lists */
    enum life life;
    struct quota_user *user; /* its key's account... */
    struct quotas charged;   /* ...and what of it is this sandbox's */
    uint64_t log_bytes;      /* of its entries in the store; on that account as well */
    bool seen;               /* by the join: the keeper has it */
    struct list waiters;     /* for what is under way */
    struct list next;        /* for what comes after it, if `wanted`: a resume */
    bool wanted, wished;     /* wished_end: the end it gets when it runs */
    bool cold;               /* ...and without what it has in memory */
    uint64_t wished_end;
    struct list unsaved;             /* in the engine's list while its row is to follow */
    struct flush flush;              /* while LIFE_DELETING, before the keeper is asked */
    const char *halt_reason;         /* while LIFE_HALTING */
    struct loop_timer end;           /* set while ends_ms is not 0 */
    struct talk_peer peer;           /* its init */
    struct metric metric;            /* the last point; at_ms 0: none */
    uint64_t metered_us, metered_ms; /* its processor time then */
    struct monitor monitor;
    struct journal journal;
    char boot_id[65], reason[ENGINE_REASON_MAX];
    struct sandbox_rule *rules;    /* belongs to the box; pub.rules */
    struct name *named;            /* points back here; NULL: it has none */
    char *own_name, *own_metadata; /* pub's, once they were changed; else NULL */
    struct loop_timer idle;        /* idle.c */
    unsigned holds;
};

/* ---- the engine ---- */

#define ENGINE_GRAVES_MAX                                                                          \
    (4u << 20) /* bytes of the ids of deleted sandboxes that still have rows */

struct ring; /* events.c */

struct logbook {
    struct list pending; /* to be written */
    size_t n, lost, nlines;
    struct list waiting; /* journals, until there is room for lines again */
    uint64_t pruned_ms;
    struct loop_timer timer;
};

struct engine {
    struct engine_opts o;
    void (*on_leave)(void *arg, const char *id);
    void *on_leave_arg;
    struct loop *loop;
    struct keeper_link *keeper;
    struct talk_hub *hub;
    struct limits ceilings; /* of one sandbox; 0: none */
    unsigned nleft;         /* closed streams that still send their stdin, see stream.c */
    struct map boxes;       /* by id */
    struct box **order;     /* by seq */
    size_t norder, corder;
    size_t ncreates;      /* under way */
    struct list asking;   /* ...those that the keeper has */
    struct list waiting;  /* ...those that wait for others of their key... */
    struct list ending;   /* ...and those that the keeper has answered */
    struct list settling; /* engine_creates_settled() */
    struct list answers;  /* waiters that the loop is about to answer */
    struct map names;     /* of sandboxes that have one */
    struct list making;   /* names whose sandbox is being made */
    struct list imports;  /* templates that are being added */
    struct list snaps;    /* snapshots */
    struct list forks;    /* under way */
    struct list exports;  /* under way */
    struct archives *archives;
    struct map owned; /* template_owner.c */
    struct loop_timer meter;
    struct list unsaved; /* boxes */
    struct loop_timer save;
    struct loop_timer flush_soon; /* of what was saved without */
    struct flush flush;           /* ...that no caller waits for */
    struct flusher *flusher;
    struct buf points; /* of the sample that is coming in: struct store_point */
    uint64_t points_pruned_ms, measured_ms; /* measured_ms: engine_measure_all() */
    struct logbook logbook;
    bool ready;
    int joining; /* lists of the keeper that are still to come */
    bool joined; /* the database has been joined before: what has no row, no client was told of */
    bool rescue; /* it has not, and what has no row is given to the first key */
    size_t norphans;
    struct buf machine; /* o.host: user, directory and environment of the server */
    struct ring *ring;
    struct buf graves;         /* ids whose rows are to be deleted, each with its NUL */
    struct buf graves_flushed; /* the same, once `burying` has flushed the keeper's records */
    struct flush burying;
    struct loop_timer bury;
    struct engine_stats stats;
};

/* box.c: found by id, listed by age */
struct box *box_find(struct engine *g, const char *id);
/* Also checks whose it is; NULL for one that is being deleted. */
struct box *box_of(struct ref ref);
/* Copies everything. NULL if the id is already there. */
struct box *box_add(struct engine *g, const struct store_sandbox *row);
void box_free(struct box *b);
/* See engine_on_leave(). */
void box_leave(struct box *b);
/* First index in `order` with seq > after. */
size_t box_after(const struct engine *g, uint64_t after);
void box_set_state(struct box *b, enum sandbox_state state, const char *boot_id,
                   const char *reason);
/* That, unless it cannot be: the clock of an init is not to be believed in everything. */
uint64_t box_time(const struct box *b, uint64_t at_ms);
/* For operations inside it. One that is paused and has auto_resume is resumed by this; messages to
 * its init wait for that. ERR_NOT_FOUND, or
 * ERR_CONFLICT for one that does not run. */
struct box *box_running(struct ref ref, struct err *e);
/* For reads: also one that is paused, which stays paused. */
struct box *box_alive(struct ref ref, struct err *e);
/* It has an init. */
bool box_has_init(const struct box *b);

/* charge.c */
struct quotas charge_of_new(const struct limits *l);
/* Makes its charge what its state says. */
void box_charge(struct box *b);
void box_uncharge(struct box *b);
/* Whether its key's quotas allow that it runs. */
int box_may_run(const struct box *b, struct err *e);
/* What it would be charged with above what it is now. */
struct quotas box_more(const struct box *b, const struct limits *l);
void ceilings_set(struct engine *g);
/* Limits that are 0 (none) become the ceiling, if there is one. */
void ceilings_apply(const struct engine *g, struct limits *l);
int ceilings_check(const struct engine *g, const struct limits *l, struct err *e);

/* network.c: the rules as the wire and the row have them */
void box_pack_rules(struct buf *out, const struct sandbox_rule *rules, size_t n);
void box_set_rules(struct box *b, const struct wire_bytes *packed);
/* Tells the keeper the rules of a running sandbox again. */
void network_reapply(struct box *b);

/* waiter.c: a caller to be answered once, from the loop and never from inside the
 * call that made the answer known. Exactly one of `done`, `got` and `snapped` is given. */
struct waiter {
    struct list link;
    struct engine *g;
    engine_done_cb *done;
    engine_sandbox_cb *got; /* gets the sandbox of that id as it is then */
    snapshot_cb *snapped;   /* gets the snapshot of that id */
    void *arg;
    struct loop_later later;
    char id[KEEPER_ID_MAX + 1];
    bool failed;
    struct err e;
};
/* A client that waits for an answer. */
struct waiter *waiter_new(struct engine *g, engine_done_cb *done, engine_sandbox_cb *got,
                          void *arg);
/* Both take the waiter, which may be NULL. `e` NULL: success. */
void waiter_answer(struct waiter *w, const char *id, const struct err *e);
void waiter_fail(struct waiter *w, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Forgets them without an answer: the engine ends. */
void engine_drop_waiters(struct list *l);

/* flush.c */
int flusher_new(struct engine *g, struct flusher **ret, struct err *e);
void flusher_free(struct flusher *f);
void flush_then(struct flusher *f, struct flush *w, flush_cb *cb);

/* idle.c: from now on, if it is to be paused when it is idle. */
void idle_watch(struct box *b);

/* name.c. A second sandbox of one name stays without. */
void name_attach(struct box *b);
/* Whether a client may give that name to `b` (or to a new one: NULL). */
int name_check(struct engine *g, const char *key, const char *name, const struct box *b,
               struct err *e);
void name_detach(struct box *b);
void names_free(struct engine *g);

/* sandbox.c: the sandbox if its end can be set, or NULL and `e`. */
struct box *box_with_end(struct ref ref, uint64_t timeout_ms, struct err *e);
int box_set_end(struct box *b, uint64_t ends_ms, struct err *e);

/* life.c */
struct life_news { /* what came with an event; unused members are zero */
    const struct keeper_sandbox *sandbox;
    const char *reason;
    const struct err *err;
    struct waiter *waiter; /* belongs to the reaction */
    bool no_memory;        /* LIFE_PAUSE */
    enum resume_end end;   /* LIFE_RESUME */
    uint64_t timeout_ms;   /* of RESUME_FOR */
};
void life_event(struct box *b, enum life_event ev, const struct life_news *news);
/* No cell of the table is empty; for the test that says so. */
bool life_is_decided(void);
/* "running", "being paused"... */
const char *life_doing(const struct box *b);
/* ERR_CONFLICT that says what is wrong with it and what to do. */
int life_fail_damaged(const struct box *b, struct err *e);
/* For one whose row is durable: timer, monitor, counters. */
void life_begin(struct box *b);
void life_arm(struct box *b);
/* Writes the rows that follow a state change (life_pause.c). */
void life_save_now(struct engine *g);
/* At start: a row that says deleting, or something without a row. */
void life_destroy_leftover(struct engine *g, const char *id);

/* events.c */
int events_new(struct engine *g, struct err *e);
void events_free(struct engine *g);
/* `data` is a JSON object. */
void events_add(struct engine *g, const struct box *b, const char *kind, const char *data);
/* ...which happened at that time, as its init says. */
void events_add_at(struct engine *g, const struct box *b, const char *kind, uint64_t at_ms,
                   const char *data);
/* Some of its may be missing. */
void events_lost(struct engine *g, const struct box *b);
/* With one string in it. */
void events_say(struct engine *g, const struct box *b, const char *kind, const char *name,
                const char *value);

/* monitor.c */
void monitor_start(struct box *b);
void monitor_stop(struct box *b);

/* join.c */
int join_start(struct engine *g, struct err *e);
/* One of the two lists is done with; after the other, requests may come. */
/* What has no row may be one that a lost database knew: it is left alone, or rescued. */
bool join_is_orphan(struct engine *g, bool told);
/* A client is about to hear of this sandbox or snapshot, whose row is durable. */
void join_told(struct engine *g, const char *id);
void join_done(struct engine *g);

/* sandbox.c: as engine_create(), from a snapshot that need not have a row. */
void create_from(struct engine *g, const struct create_opts *o, const char *snapshot,
                 engine_sandbox_cb *cb, void *arg);

/* snapshot.c */
const struct snapshot *snap_pub(struct engine *g, const char *id); /* of any key */
/* The keeper need not keep it any longer. */
void snap_forget(struct engine *g, const char *id);
/* The sandbox if a snapshot can be taken of it now, else NULL and `e`. */
struct box *box_to_snapshot(struct ref ref, struct err *e);
/* Whether the key may have one more, of about that size. */
int snap_may_add(const struct quota_user *u, uint64_t bytes, struct err *e);
int snap_check_name(const char *name, struct err *e);
/* One that the keeper has as `id`; durable when it returns. NULL and `e`. */
const struct snapshot *snap_imported(struct engine *g, const char *key, const char *name,
                                     const char *id, uint64_t bytes, struct err *e);
int snapshots_join(struct engine *g, struct err *e);
void snapshots_free(struct engine *g);
void forks_free(struct engine *g);   /* fork.c */
void creates_free(struct engine *g); /* sandbox.c */
void exports_free(struct engine *g); /* export.c */

/* archives/ */
int archives_new(struct engine *g, struct err *e);
void archives_free(struct engine *g);

/* metrics.c */
void metrics_start(struct engine *g);

/* journal.c */
void journal_start(struct box *b);
void journal_stop(struct box *b);
void journal_go_on(struct journal *j);

/* logbook.c */
void logbook_event(const struct box *b, const char *kind, uint64_t at_ms, const char *data);
/* What a command printed; and that lines before it are lost. False: there is no room
 * for more, or not even for this. */
bool logbook_line(struct box *b, const struct init_line *m);
bool logbook_gap(struct box *b, const struct init_line *m);
void logbook_hurry(struct engine *g);
/* Counts what each key has; once all sandboxes are known. */
void logbook_start(struct engine *g);
void logbook_flush(struct engine *g);

/* template_owner.c: whether the key may add one of that name; *ret_more: what that counts. */
int template_may_add(struct engine *g, const char *key, const char *name, struct quotas *ret_more,
                     struct err *e);
void template_own(struct engine *g, const char *key, const char *name);
void template_disown(struct engine *g, const char *name);
int templates_join(struct engine *g, struct err *e);
void templates_free(struct engine *g);

/* import.c */
void imports_free(struct engine *g);

/* stream.c: a command of our own, for an init that is no box's. */
struct process_stream;
struct process_ops;
struct process_stream *stream_run(struct engine *g, struct talk_peer *p,
                                  const struct init_start *start, const struct process_ops *ops,
                                  void *arg);

/* call.c: a conversation with one answer, or a list. */
struct process_call {
    struct talk talk;
    struct engine *g;
    const char *noun; /* what it is about; NULL: a process */
    /* Exactly one is given, and gets the last answer. */
    process_started_cb *started;
    process_proc_cb *proc;
    session_cb *session;
    engine_done_cb *done;
    process_exit_cb *exited;
    process_value_cb *value;
    void (*each)(void *arg, const struct process_info *p); /* of a list */
    void (*each_session)(void *arg, const struct session_info *s);
    unsigned told;
    bool own; /* about one of the front's own */
    void *arg;
};
struct process_call *process_call_new(struct engine *g, const struct process_call *as);
/* Either of them, once. */
void process_call_fail(struct process_call *c, const struct err *e);
void process_call_begin(struct process_call *c, struct box *b, const struct talk_kind *kind,
                        const void *msg, uint64_t deadline_ms);
/* All of it. `id` NULL: not about one thing. */
struct process_call *process_ask(const struct process_call *as, struct ref ref, const char *id,
                                 const struct talk_kind *kind, const void *msg,
                                 uint64_t deadline_ms);

/* stream.c: a conversation about a session's command, with what is to be sent first. */
struct process_stream *stream_session(struct engine *g, struct box *b,
                                      const struct init_session_exec *m, struct buf *rest,
                                      const struct process_ops *ops, void *arg);
struct process_stream *stream_fail(struct engine *g, const struct err *e,
                                   const struct process_ops *ops, void *arg);

/* command.c: NAME=value, each with its NUL, names not empty. */
int command_check_env(const char *env, size_t len, struct err *e);

#endif
