/* session.h - sessions: shells in a sandbox that keep their state between commands (see
 * init/session/session.h).
 *
 * The rules of process.h hold. Once it is queued, a command of a session is read like a process,
 * with process_attach(), process_get() and process_wait() and the id that session_ref() makes. */
#ifndef FRONT_ENGINE_SESSION_H
#define FRONT_ENGINE_SESSION_H

#include "front/engine/process.h"

#define SESSION_DELETE_MS 60000        /* until all its processes are dead */
#define SESSION_SCRIPT_MAX (16u << 20) /* bytes of the text of a command; of its stdin as well */

enum session_state { SESSION_IDLE, SESSION_BUSY, SESSION_ENDED };
enum session_flags { SESSION_RESTARTS = 1 }; /* `exit` ends the command only */

struct session_info { /* as struct process_info */
    const char *id;
    uint32_t pid, state; /* enum session_state */
    const char *user, *cwd;
    uint64_t created_ms, timeout_ms;
    uint32_t flags, restarts, queued;
    const char *command; /* id of the one that runs, or "" */
    uint64_t ended_ms;
    uint32_t code, signal;
    const char *why; /* it ended, or "" */
};

struct session_opts { /* all borrowed for the call; NULL as in process_opts */
    const char *id, *cwd, *user;
    const char *env; /* strv bytes */
    size_t env_len;
    uint64_t timeout_ms; /* of each command that has none; 0: no limit */
    bool restart;        /* `exit` ends the command, not the session */
};

struct session_exec { /* all borrowed for the call */
    const char *session;
    const char *id; /* NULL or "": init picks one */
    const char *text;
    size_t text_len;   /* at most SESSION_SCRIPT_MAX */
    const char *input; /* stdin; NULL: empty */
    size_t input_len;  /* at most SESSION_SCRIPT_MAX */
    struct buf
        *whole; /* NULL, or both one after the other: taken over, and `input` is not looked at */
    const char *cwd; /* NULL: the current one of the session */
    const char *env; /* strv bytes, for this command only */
    size_t env_len;
    uint64_t timeout_ms; /* 0: the session's */
};

typedef void session_cb(void *arg, const struct session_info *s, const struct err *e);

void session_create(struct ref ref, const struct session_opts *o, session_cb *cb, void *arg);
void session_list(struct ref ref, void (*each)(void *arg, const struct session_info *s),
                  engine_done_cb *cb, void *arg);
void session_get(struct ref ref, const char *id, session_cb *cb, void *arg);
/* Answers when all its processes are dead. */
void session_delete(struct ref ref, const char *id, engine_done_cb *cb, void *arg);
/* The value is 1 if a command was running. */
void session_interrupt(struct ref ref, const char *id, process_value_cb *cb, void *arg);
void session_commands(struct ref ref, const char *id,
                      void (*each)(void *arg, const struct process_info *p), engine_done_cb *cb,
                      void *arg);

/* A command that the caller owns until it ends, as in process_run(). on_started reports that it is
 * queued, with its id as session_ref() makes it. */
struct process_stream *session_run(struct ref ref, const struct session_exec *o,
                                   const struct process_ops *ops, void *arg);
/* Starts a process with the state of the session after the commands queued before it. Used of `o`:
 * id, argv or command, cwd, env, timeout_ms, stdin_open. */
struct process_call *session_start(struct ref ref, const char *session,
                                   const struct process_opts *o, process_started_cb *cb, void *arg);

/* "SESSION/COMMAND". */
const char *session_ref(char out[PROCESS_REF_MAX + 1], const char *session, const char *command);
/* COMMAND of it. */
const char *session_ref_command(const char *ref);

#endif
