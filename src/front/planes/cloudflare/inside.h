/* inside.h - what the files of the Cloudflare bridge share; nobody else includes it.
 *
 * EXTEND  A new surface: a file, its table in SURFACES below, and meson.build. */
#ifndef CLOUDFLARE_INSIDE_H
#define CLOUDFLARE_INSIDE_H

#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/shape.h"
#include "front/plane/surface.h"

#define SURFACES(X)                                                                                \
    X(sandbox)                                                                                     \
    X(exec)                                                                                        \
    X(pool)

#define X(name) extern const struct surface_row bridge_##name[];
SURFACES(X)
#undef X

#define BRIDGE_SANDBOX "/v1/sandbox/{id}" /* where every path of a sandbox begins */
#define BRIDGE_POOL "/v1/pool/"
#define BRIDGE_USER "root"
#define BRIDGE_ROOT "/workspace"
#define BRIDGE_SESSION_MAX 128u /* characters of a session's id */

/* What most calls answer: {"ok":true}. */
extern const struct shape bridge_ok_shape;
void bridge_reply_ok(struct call *c);

/* enter.c: goes on with `go` once the sandbox of the path is there and runs: made if
 * it was never used before, woken if it sleeps. `in` lives as long as the call. */
void bridge_enter(struct call *c, const void *in, void (*go)(struct call *c, const void *in));
/* Its own id, for the engine; "" if it has ended meanwhile, which the engine refuses. */
const char *bridge_id(const struct call *c);

/* words.c: what a client writes */

/* An absolute path, "." and ".." resolved; a relative one begins in /workspace. ERR_DENIED
 * if it leads out of there, naming `what` it was for. */
int bridge_path(const char *what, const char *path, struct buf *out, struct err *e);
/* One argument as a word of bash. */
void bridge_quote(struct buf *out, const char *arg);

#endif
