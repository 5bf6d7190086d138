/* process.h - commands in a sandbox: exec, and processes with a life.
 *
 * Everything here is a conversation with the sandbox's init, which is not
 * trusted: it may answer nonsense, late or never. Each call therefore ends in
 * exactly one of its last callbacks, ERR_UNRESPONSIVE after its deadline at the
 * latest, and buffers no more than it says. All callbacks come from the loop. */
#ifndef FRONT_ENGINE_PROCESS_H
#define FRONT_ENGINE_PROCESS_H

#include "front/engine/engine.h"
#include "wire/init.h"

#define PROCESS_DEADLINE_MS 10000 /* for an answer that does not depend on the tenant */

/* A process on a terminal; what else may be done with it is in terminal.h. */
struct process_term {
    unsigned cols, rows; /* 0: 80 and 24; at most INIT_TERM_SIDE_MAX */
    uint32_t ring;       /* bytes of output kept; 0: as init thinks */
    bool get;            /* the one of that id, if it runs: `existed` is then said */
};

struct process_opts {        /* all borrowed for the call */
    const char *id;          /* NULL or "": init picks one */
    const char *const *argv; /* NULL-terminated; or... */
    const char *command;     /* ...a text for bash -c (exactly one of the two; on a
                              * terminal neither is a login shell) */
    const char *cwd;         /* NULL: "/workspace", or as the image of the template says; ~ is
                              * the user's home */
    const char *user;        /* NULL: "user", or the image's; a name, or uid, or uid:gid */
    const char *env;         /* strv bytes: over the sandbox's own */
    size_t env_len;
    uint64_t timeout_ms; /* 0: none */
    bool stdin_open;
    bool whole;                      /* its end waits for everybody who holds its output */
    bool reuse;                      /* of `id`: one that has ended makes room */
    bool helper;                     /* our own cove-helper, whatever argv[0] says */
    bool leash;                      /* ends when nobody has watched it for timeout_ms */
    bool gentle;                     /* its time limit asks first, and kills INIT_GENTLE_MS later */
    bool quiet;                      /* what it prints is for us, not for the log */
    bool own;                        /* its id begins with '.': process_run_own() only */
    const struct process_term *term; /* NULL: on pipes */
};

/* What a stream of a command tells. Every pointer is borrowed for the call.
 * After on_exit, on_end or on_fail (exactly one of them, once) it is over. */
struct process_ops {
    void (*on_started)(void *arg, const struct init_started *m);     /* may be NULL */
    void (*on_screen)(void *arg, const struct init_screen *m);       /* terminal_view() only */
    void (*on_output)(void *arg, const struct init_output *m);       /* may be NULL */
    void (*on_truncated)(void *arg, const struct init_truncated *m); /* may be NULL */
    void (*on_exit)(void *arg, const struct init_exit *m);
    void (*on_end)(void *arg, const struct init_end *m); /* a look without follow; else NULL */
    void (*on_fail)(void *arg, const struct err *e);
    /* stdin given with process_feed() has left our queue: more may come. May be NULL. */
    void (*on_drain)(void *arg);
};

struct process_stream; /* one running conversation */

typedef void process_started_cb(void *arg, const struct init_started *m, const struct err *e);
typedef void process_proc_cb(void *arg, const struct init_proc *p, const struct err *e);
typedef void process_exit_cb(void *arg, const struct init_exit *m, const struct err *e);
typedef void process_value_cb(void *arg, uint64_t value, const struct err *e);

/* A command that this caller owns until its exit: no gap in its output, the
 * process waits while we are paused. `forget`: an exec, no record stays. */
struct process_stream *process_run(struct ref ref, const struct process_opts *o, bool forget,
                                   const struct process_ops *ops, void *arg);
/* Bytes for its stdin; `last` closes it. Returns how much is queued here; stop
 * feeding above PROCESS_FEED_HIGH until on_drain. */
#define PROCESS_FEED_HIGH (256u << 10)
size_t process_feed(struct process_stream *s, const void *p, size_t n, bool last);
/* All of its stdin, which is taken over; closed behind it. It arrives though we look away
 * before it is fed. */
void process_feed_whole(struct process_stream *s, struct buf *input);
/* Back-pressure: a paused stream reads nothing more from init. */
void process_pause(struct process_stream *s, bool paused);
/* We look away; the command goes on. No callback follows. */
void process_close(struct process_stream *s);

/* From here on an `id` may also be `@` and a pid: the youngest process that has it.
 *
 * Starts a command nobody owns; done when it is launched. */
void process_start(struct ref ref, const struct process_opts *o, process_started_cb *cb, void *arg);
/* A viewer: from `since` on; ends at exit (follow) or at what is there now. */
struct process_stream *process_attach(struct ref ref, const char *id, uint64_t since, bool follow,
                                      unsigned streams, const struct process_ops *ops, void *arg);
/* In the place of who started it, if that one has left: from `since` on until the exit, and
 * the command waits for us. While somebody else is in that place, a viewer. */
struct process_stream *process_take_over(struct ref ref, const char *id, uint64_t since,
                                         const struct process_ops *ops, void *arg);

/* The front's own: ids that begin with '.', which no client can name and no list
 * shows. Whoever starts one is a viewer like any other; `ring` is how many bytes of its
 * output are kept. Forgotten when they end. */
struct process_stream *process_run_own(struct ref ref, const struct process_opts *o, uint32_t ring,
                                       const struct process_ops *ops, void *arg);
struct process_stream *process_attach_own(struct ref ref, const char *id, uint64_t since,
                                          bool follow, const struct process_ops *ops, void *arg);
void process_list_own(struct ref ref, void (*each)(void *arg, const struct init_proc *p),
                      engine_done_cb *cb, void *arg);

void process_list(struct ref ref, void (*each)(void *arg, const struct init_proc *p),
                  engine_done_cb *cb, void *arg);
void process_get(struct ref ref, const char *id, process_proc_cb *cb, void *arg);
void process_stdin(struct ref ref, const char *id, const void *p, size_t n, bool last,
                   engine_done_cb *cb, void *arg);
void process_signal(struct ref ref, const char *id, int signo, bool tree, engine_done_cb *cb,
                    void *arg);

/* These return a handle that process_cancel() ends early (the client went away);
 * after cb it must not be used. timeout_ms 0: wait for ever. */
struct process_call;
struct process_call *process_kill(struct ref ref, const char *id, uint64_t grace_ms,
                                  process_exit_cb *cb, void *arg);
struct process_call *process_kill_own(struct ref ref, const char *id, process_exit_cb *cb,
                                      void *arg);
struct process_call *process_wait(struct ref ref, const char *id, uint64_t timeout_ms,
                                  process_exit_cb *cb, void *arg);
/* With `http`: until a GET of the path is answered with a status in the range. */
struct process_http {
    const char *path; /* begins with a slash */
    unsigned status_min, status_max;
};
struct process_call *process_wait_port(struct ref ref, const char *id, unsigned port,
                                       const struct process_http *http, uint64_t timeout_ms,
                                       process_value_cb *cb, void *arg);
struct process_call *process_wait_log(struct ref ref, const char *id, const void *text, size_t len,
                                      uint64_t since, unsigned streams, uint64_t timeout_ms,
                                      process_value_cb *cb, void *arg);
void process_cancel(struct process_call *c);

#endif
