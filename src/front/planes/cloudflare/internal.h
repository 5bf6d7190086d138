/* internal.h - what the files of the Cloudflare plane share; private to them.
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

#define X(name) extern const struct surface_row cloudflare_##name[];
SURFACES(X)
#undef X

#define CLOUDFLARE_SANDBOX "/v1/sandbox/{id}" /* where every path of a sandbox begins */
#define CLOUDFLARE_PROCESSES "/v1/sandbox/{id}/processes"
#define CLOUDFLARE_TERMINALS "/v1/sandbox/{id}/terminals"
#define CLOUDFLARE_POOL "/v1/pool/"
#define CLOUDFLARE_USER "root"
#define CLOUDFLARE_ROOT "/workspace"
#define CLOUDFLARE_SESSION_MAX 128u /* characters of a session's id */

/* What most calls answer: {"ok":true}. */
extern const struct shape cloudflare_ok_shape;
void cloudflare_reply_ok(struct call *c);
/* A bare list, of what shape_append() made; or the failure. */
void cloudflare_reply_list(struct call *c, const struct buf *rows, const struct err *e);

/* Under which the ports of sandboxes are reached by host. */
const char *cloudflare_domain(const struct call *c);
const char *cloudflare_scheme(const struct call *c); /* "http" or "https" */

/* enter.c: goes on with `go` once the sandbox of the path is there and runs: made if
 * it was never used before, woken if it sleeps. `in` lives as long as the call. */
void cloudflare_enter(struct call *c, const void *in, void (*go)(struct call *c, const void *in));
/* The same, for what a sandbox must hold already: one that was never used is not made,
 * and the answer is that there is no such thing. */
void cloudflare_look(struct call *c, const void *in, void (*go)(struct call *c, const void *in));
/* Sets c->ref to the sandbox that has the name in the path; its id is "" if there is none, which
 * the engine refuses. */
int cloudflare_resolve_name(struct call *c, struct err *e);

/* sandbox.c: ids that were handed out and are not used yet. To its client such a sandbox
 * runs, though it is made when it is first used. Only the latest are known, and none after
 * a restart: no promise hangs on them. */
#define CLOUDFLARE_ID_CHARS 26u /* of base32, five bits each */
#define CLOUDFLARE_ISSUED_MAX 1024u
struct cloudflare_issued {
    struct {
        char key[ENGINE_KEY_MAX + 1], id[CLOUDFLARE_ID_CHARS + 1];
    } all[CLOUDFLARE_ISSUED_MAX];
    size_t next;
};
struct cloudflare_issued *cloudflare_issued(const struct call *c);
/* The id of the path is used now, or deleted. */
void cloudflare_issued_forget(const struct call *c);

/* session.c: makes one as this plane has them, of a name of the engine's. */
void cloudflare_session_make(struct call *c, const char *name, session_cb *cb, void *arg);

/* pty.c: ERR_INVALID for what is no WebSocket handshake. */
int cloudflare_check_upgrade(struct call *c, struct err *e);

/* command.c: a command as a client describes it */

#define CLOUDFLARE_COMMAND_MAX ((4u << 20) + (64u << 10)) /* of JSON: PROCESS_ARGS_MAX, escaped */
#define CLOUDFLARE_ARGS_MAX 65536u
#define CLOUDFLARE_TIMEOUT_MAX (1ull << 50) /* ms, as in the config table */

struct cloudflare_command {
    struct process_opts o; /* points into the rest, and into what was given */
    const char **argv;
    struct buf env, cwd, text;
};
/* Root's, in /workspace or below; `env` and `cwd` may be NULL. cloudflare_command_free() also
 * after a failure. */
int cloudflare_command(struct cloudflare_command *c, json_t *argv, json_t *env, const char *cwd,
                       struct err *e);
/* The same words for bash. */
#define CLOUDFLARE_TEXT_MAX (2u * PROCESS_ARGS_MAX)
int cloudflare_command_shell(struct cloudflare_command *c, struct err *e);
void cloudflare_command_free(struct cloudflare_command *c);
#define autocommand __attribute__((cleanup(cloudflare_command_free)))

/* words.c: what a client writes */

/* Appends what an absolute path means without "." and ".."; nothing for the root. */
void cloudflare_resolve(struct buf *out, const char *path);
/* An absolute path, "." and ".." resolved; a relative one begins in /workspace. ERR_DENIED
 * if it leads out of there, naming `what` it was for. */
int cloudflare_path(const char *what, const char *path, struct buf *out, struct err *e);
/* 1 to CLOUDFLARE_SESSION_MAX letters, digits, '.', '_' and '-', without "..". */
int cloudflare_check_session(const char *id, struct err *e);
/* The same for the header Session-Id, which may be absent or empty. */
int cloudflare_session_header(struct call *c, struct err *e);
/* What the engine calls a thing that a client calls `id`. */
void cloudflare_name(const char *prefix, const char *id, char out[PROCESS_ID_MAX + 1]);
/* One argument as a word of bash. */
void cloudflare_quote(struct buf *out, const char *arg);

#endif
