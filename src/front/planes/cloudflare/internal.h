/* internal.h - what the files of the Cloudflare bridge share; private to them.
 *
 * EXTEND  A new surface: a file, its table in SURFACES below, and meson.build. */
#ifndef FRONT_PLANES_CLOUDFLARE_INTERNAL_H
#define FRONT_PLANES_CLOUDFLARE_INTERNAL_H

#include "front/engine/session.h"
#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/shape.h"
#include "front/plane/surface.h"
#include "front/planes/cloudflare/cloudflare.h"

#define SURFACES(X)                                                                                \
    X(sandbox)                                                                                     \
    X(exec)                                                                                        \
    X(process)                                                                                     \
    X(logs)                                                                                        \
    X(files)                                                                                       \
    X(session)                                                                                     \
    X(pty)                                                                                         \
    X(tunnel)                                                                                      \
    X(terminal)                                                                                    \
    X(mount)                                                                                       \
    X(pool)

#define X(name) extern const struct surface_row bridge_##name[];
SURFACES(X)
#undef X

#define BRIDGE_SANDBOX "/v1/sandbox/{id}" /* where every path of a sandbox begins */
#define BRIDGE_PROCESSES "/v1/sandbox/{id}/processes"
#define BRIDGE_TERMINALS "/v1/sandbox/{id}/terminals"
#define BRIDGE_POOL "/v1/pool/"
#define BRIDGE_USER "root"
#define BRIDGE_ROOT "/workspace"
#define BRIDGE_SESSION_MAX 128u /* characters of a session's id */

/* What most calls answer: {"ok":true}. */
extern const struct shape bridge_ok_shape;
void bridge_reply_ok(struct call *c);
/* A bare list, of what shape_append() made; or the failure. */
void bridge_reply_list(struct call *c, const struct buf *rows, const struct err *e);

/* Under which the ports of sandboxes are reached by host. */
const char *bridge_domain(const struct call *c);
const char *bridge_scheme(const struct call *c); /* "http" or "https" */

/* enter.c: goes on with `go` once the sandbox of the path is there and runs: made if
 * it was never used before, woken if it sleeps. `in` lives as long as the call. */
void bridge_enter(struct call *c, const void *in, void (*go)(struct call *c, const void *in));
/* The same, for what a sandbox must hold already: one that was never used is not made,
 * and the answer is that there is no such thing. */
void bridge_look(struct call *c, const void *in, void (*go)(struct call *c, const void *in));
/* Sets c->ref to the sandbox that has the name in the path; its id is "" if there is none, which
 * the engine refuses. */
int bridge_resolve_name(struct call *c, struct err *e);

/* sandbox.c: ids that were handed out and are not used yet. To its client such a sandbox
 * runs, though it is made when it is first used. Only the latest are known, and none after
 * a restart: no promise hangs on them. */
#define BRIDGE_ID_CHARS 26u /* of base32, five bits each */
#define BRIDGE_ISSUED_MAX 1024u
struct bridge_issued {
    struct {
        char key[ENGINE_KEY_MAX + 1], id[BRIDGE_ID_CHARS + 1];
    } all[BRIDGE_ISSUED_MAX];
    size_t next;
};
struct bridge_issued *bridge_issued(const struct call *c);
/* The id of the path is used now, or deleted. */
void bridge_issued_forget(const struct call *c);

/* session.c: makes one as the bridge has them, of a name of the engine's. */
void bridge_session_make(struct call *c, const char *name, session_cb *cb, void *arg);

/* pty.c: ERR_INVALID for what is no WebSocket handshake. */
int bridge_check_upgrade(struct call *c, struct err *e);

/* command.c: a command as a client describes it */

#define BRIDGE_COMMAND_MAX ((4u << 20) + (64u << 10)) /* of JSON: PROCESS_ARGS_MAX, escaped */
#define BRIDGE_ARGS_MAX 65536u
#define BRIDGE_TIMEOUT_MAX (1ull << 50) /* ms, as in the config table */

struct bridge_command {
    struct process_opts o; /* points into the rest, and into what was given */
    const char **argv;
    struct buf env, cwd, text;
};
/* Root's, in /workspace or below; `env` and `cwd` may be NULL. bridge_command_free() also
 * after a failure. */
int bridge_command(struct bridge_command *c, json_t *argv, json_t *env, const char *cwd,
                   struct err *e);
/* The same words for bash. */
#define BRIDGE_TEXT_MAX (2u * PROCESS_ARGS_MAX)
int bridge_command_shell(struct bridge_command *c, struct err *e);
void bridge_command_free(struct bridge_command *c);
#define autocommand __attribute__((cleanup(bridge_command_free)))

/* words.c: what a client writes */

/* Appends what an absolute path means without "." and ".."; nothing for the root. */
void bridge_resolve(struct buf *out, const char *path);
/* An absolute path, "." and ".." resolved; a relative one begins in /workspace. ERR_DENIED
 * if it leads out of there, naming `what` it was for. */
int bridge_path(const char *what, const char *path, struct buf *out, struct err *e);
/* 1 to BRIDGE_SESSION_MAX letters, digits, '.', '_' and '-', without "..". */
int bridge_check_session(const char *id, struct err *e);
/* The same for the header Session-Id, which may be absent or empty. */
int bridge_session_header(struct call *c, struct err *e);
/* What the engine calls a thing that a client calls `id`. */
void bridge_name(const char *prefix, const char *id, char out[PROCESS_ID_MAX + 1]);
/* One argument as a word of bash. */
void bridge_quote(struct buf *out, const char *arg);

#endif
