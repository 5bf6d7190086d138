/* process.h - commands in a sandbox: exec, and processes that outlive a request.
 *
 * Each call is a conversation with the sandbox's init, which is not trusted: its answer may be
 * invalid, late or missing. So each call ends with exactly one last callback, at the latest with
 * ERR_UNRESPONSIVE after its deadline, and buffers no more than it says. All callbacks come from
 * the loop. */
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
    PROCESS_EXIT_INTERRUPTED = 16,    /* a command of a session, by session_interrupt() */
    PROCESS_EXIT_NEVER_RAN = 32,      /* its session ended before it started */
    PROCESS_EXIT_SESSION_ENDED = 64,  /* ...or while it ran */
    PROCESS_EXIT_OOM_MEANWHILE = 128, /* it failed, and the OOM killer had killed another process */
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

/* A process on a terminal; more of it in terminal.h. */
struct process_term {
    unsigned cols, rows; /* 0: 80 and 24; at most TERMINAL_SIDE_MAX */
    uint32_t ring;       /* bytes of output kept; 0: init's default */
    bool get;            /* return the running one of that id: `existed` is then set */
};

struct process_opts {        /* all borrowed for the call */
    const char *id;          /* NULL or "": init picks one */
    const char *const *argv; /* NULL-terminated; or... */
    const char *command;     /* ...a text for bash -c (exactly one of the two; on a
                              * terminal neither is a login shell) */
    const char *cwd;         /* NULL: "/workspace", or the workdir of the template's image; ~
                              * is the user's home */
    const char *user;        /* NULL: "user", or the image's user; a name, uid, or uid:gid */
    const char *env;         /* strings with NUL; override the sandbox's own */
    size_t env_len;
    uint64_t timeout_ms; /* 0: none */
    bool stdin_open;
    bool whole;  /* its exit waits until its stdout and stderr are closed by all processes */
    bool reuse;  /* replaces an exited process with the same id */
    bool helper; /* run our cove-helper instead of argv[0] */
    bool leash;  /* ends when it had no viewer for timeout_ms */
    bool gentle; /* its time limit sends TERM first, and KILL after PROCESS_GENTLE_MS */
    bool quiet;  /* its output is not logged */
    bool own;    /* its id begins with '.': process_run_own() only */
    const struct process_term *term; /* NULL: on pipes */
};

/* Callbacks of a stream. Every pointer is borrowed for the call. Exactly one of on_exit, on_end
 * and on_fail is called, once, as the last. */
struct process_ops {
    void (*on_started)(void *arg, const struct process_started *m);     /* may be NULL */
    void (*on_screen)(void *arg, const struct process_screen *m);       /* terminal_view() only */
    void (*on_output)(void *arg, const struct process_output *m);       /* may be NULL */
    void (*on_truncated)(void *arg, const struct process_truncated *m); /* may be NULL */
    void (*on_exit)(void *arg, const struct process_exit *m);
    void (*on_end)(void *arg, const struct process_end *m); /* of an attach without follow */
    void (*on_fail)(void *arg, const struct err *e);
    /* The stdin given with process_feed() was sent: more may be fed. May be NULL. */
    void (*on_drain)(void *arg);
};

struct process_stream; /* one running conversation */

typedef void process_started_cb(void *arg, const struct process_started *m, const struct err *e);
typedef void process_proc_cb(void *arg, const struct process_info *p, const struct err *e);
typedef void process_exit_cb(void *arg, const struct process_exit *m, const struct err *e);
typedef void process_value_cb(void *arg, uint64_t value, const struct err *e);

/* Starts a command that the caller owns until its exit: its output has no gap, and the process
 * waits while the stream is paused. `forget`: an exec; no record is kept. */
struct process_stream *process_run(struct ref ref, const struct process_opts *o, bool forget,
                                   const struct process_ops *ops, void *arg);
/* Bytes for its stdin; `last` closes it. Returns how much is queued here; stop
 * feeding above PROCESS_FEED_HIGH until on_drain. */
#define PROCESS_FEED_HIGH (256u << 10)
size_t process_feed(struct process_stream *s, const void *p, size_t n, bool last);
/* All of its stdin at once, which is taken over; stdin is then closed. It is delivered even if the
 * stream is closed before. */
void process_feed_whole(struct process_stream *s, struct buf *input);
/* Back-pressure: a paused stream reads nothing from init. */
void process_pause(struct process_stream *s, bool paused);
/* The command continues. No callback follows. */
void process_close(struct process_stream *s);

/* From here on an `id` may also be `@` and a pid: the newest process with that pid.
 *
 * Starts a command without an owner; answers when it runs. */
void process_start(struct ref ref, const struct process_opts *o, process_started_cb *cb, void *arg);
/* A viewer, from `since` on; ends at the exit (follow) or after the output kept now. */
struct process_stream *process_attach(struct ref ref, const char *id, uint64_t since, bool follow,
                                      unsigned streams, const struct process_ops *ops, void *arg);
/* Becomes the owner, if there is none: from `since` on until the exit, and the command waits for
 * the stream. While there is another owner, a viewer. */
struct process_stream *process_take_over(struct ref ref, const char *id, uint64_t since,
                                         const struct process_ops *ops, void *arg);

/* The front's own processes: their ids begin with '.', clients cannot name them and lists do not
 * show them. The caller is a viewer; `ring` is the number of bytes of output kept. No record is
 * kept after the exit. */
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

/* These return a handle for process_cancel(), for a client that disconnects; after cb it must
 * not be used. timeout_ms 0: no limit. */
struct process_call;
struct process_call *process_kill(struct ref ref, const char *id, uint64_t grace_ms,
                                  process_exit_cb *cb, void *arg);
struct process_call *process_kill_own(struct ref ref, const char *id, process_exit_cb *cb,
                                      void *arg);
struct process_call *process_wait(struct ref ref, const char *id, uint64_t timeout_ms,
                                  process_exit_cb *cb, void *arg);
/* With `http`: waits until a GET of the path is answered with a status in the range. */
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
