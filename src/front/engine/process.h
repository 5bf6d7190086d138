/* process.h - commands in a sandbox: exec, and processes with a life.
 *
 * Everything here is a conversation with the sandbox's init, which is not
 * trusted: it may answer nonsense, late or never. Each call therefore ends in
 * exactly one of its last callbacks, ERR_UNRESPONSIVE after its deadline at the
 * latest, and buffers no more than it says. All callbacks come from the loop. */
#ifndef FRONT_ENGINE_PROCESS_H
#define FRONT_ENGINE_PROCESS_H

#include "front/engine/engine.h"

#define PROCESS_DEADLINE_MS 10000 /* for an answer that does not depend on the tenant */
#define PROCESS_GENTLE_MS 5000u   /* from TERM to KILL, of process_opts.gentle */

#define PROCESS_ID_MAX 64u                       /* characters of an id */
#define PROCESS_REF_MAX (2 * PROCESS_ID_MAX + 1) /* an id; or SESSION/COMMAND */
#define PROCESS_ARGS_MAX (2u << 20)              /* bytes of argv and env together */
#define PROCESS_CHUNK_MAX (256u << 10)           /* bytes of output or stdin in one piece */
#define PROCESS_TEXT_MAX 4096u                   /* bytes of a text to wait for in the output */
#define TERMINAL_SIDE_MAX 1000u                  /* columns or rows of a terminal */

enum process_output_stream { PROCESS_STDOUT = 1, PROCESS_STDERR = 2 };  /* bits; 0: both */
enum process_state { PROCESS_RUNNING, PROCESS_EXITED, PROCESS_QUEUED }; /* queued: in a session */
enum process_exit_flags {
    PROCESS_EXIT_TIMED_OUT = 1,
    PROCESS_EXIT_CORE = 2,
    PROCESS_EXIT_KILLED = 4,
    PROCESS_EXIT_OOM = 8,
    PROCESS_EXIT_INTERRUPTED = 16,   /* a command of a session, by session_interrupt() */
    PROCESS_EXIT_NEVER_RAN = 32,     /* its session ended before it started */
    PROCESS_EXIT_SESSION_ENDED = 64, /* ...or while it ran */
};

/* What init says, checked; every pointer is borrowed for the call. A position counts the bytes
 * of stdout and stderr together, in the order they came.
 *
 * EXTEND  A field of these messages of wire/init.h: the same name here. run/from_init.h copies
 *         by the table there, so the build fails until it is here. */
struct process_started {
    const char *id;
    uint32_t pid;
    uint64_t started_ms;
    uint32_t existed; /* process_term.get: it ran already */
};
struct process_output {
    uint64_t pos;
    uint32_t stream; /* enum process_output_stream */
    struct engine_bytes data;
};
struct process_truncated { /* bytes that are lost to this reader */
    uint64_t from, to;
};
struct process_screen {
    uint64_t cursor, end; /* position of the first byte that follows; after the newest byte */
    uint32_t cols, rows, pid;
};
struct process_exit {
    const char *id;
    uint32_t code, signal, flags; /* enum process_exit_flags */
    uint64_t ended_ms, output_end, cpu_us, maxrss_kb;
};
struct process_end { /* of a look without follow */
    uint64_t value;  /* the next cursor */
    uint32_t exited;
};
struct process_info {
    const char *id;
    uint32_t pid, state;      /* enum process_state */
    struct engine_bytes argv; /* strings, each with its NUL; only the first ones, if it is long */
    const char *cwd, *user;
    uint64_t started_ms;
    uint32_t stdin_open;
    uint64_t output_first, output_end; /* positions: the oldest byte kept, after the newest */
    uint64_t ended_ms;
    uint32_t code, signal, flags; /* as in struct process_exit */
    uint64_t cpu_us, maxrss_kb, timeout_ms;
    uint32_t cols, rows, viewers; /* cols 0: not on a terminal */
};

/* A process on a terminal; what else may be done with it is in terminal.h. */
struct process_term {
    unsigned cols, rows; /* 0: 80 and 24; at most TERMINAL_SIDE_MAX */
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
    bool whole;  /* its end waits for everybody who holds its output */
    bool reuse;  /* of `id`: one that has ended makes room */
    bool helper; /* our own cove-helper, whatever argv[0] says */
    bool leash;  /* ends when nobody has watched it for timeout_ms */
    bool gentle; /* its time limit asks first, and kills PROCESS_GENTLE_MS later */
    bool quiet;  /* what it prints is for us, not for the log */
    bool own;    /* its id begins with '.': process_run_own() only */
    const struct process_term *term; /* NULL: on pipes */
};

/* What a stream of a command tells. Every pointer is borrowed for the call.
 * After on_exit, on_end or on_fail (exactly one of them, once) it is over. */
struct process_ops {
    void (*on_started)(void *arg, const struct process_started *m);     /* may be NULL */
    void (*on_screen)(void *arg, const struct process_screen *m);       /* terminal_view() only */
    void (*on_output)(void *arg, const struct process_output *m);       /* may be NULL */
    void (*on_truncated)(void *arg, const struct process_truncated *m); /* may be NULL */
    void (*on_exit)(void *arg, const struct process_exit *m);
    void (*on_end)(void *arg, const struct process_end *m); /* a look without follow; else NULL */
    void (*on_fail)(void *arg, const struct err *e);
    /* stdin given with process_feed() has left our queue: more may come. May be NULL. */
    void (*on_drain)(void *arg);
};

struct process_stream; /* one running conversation */

typedef void process_started_cb(void *arg, const struct process_started *m, const struct err *e);
typedef void process_proc_cb(void *arg, const struct process_info *p, const struct err *e);
typedef void process_exit_cb(void *arg, const struct process_exit *m, const struct err *e);
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
void process_list_own(struct ref ref, void (*each)(void *arg, const struct process_info *p),
                      engine_done_cb *cb, void *arg);

void process_list(struct ref ref, void (*each)(void *arg, const struct process_info *p),
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
