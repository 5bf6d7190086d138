/* inside.h - what the files of E2B's planes share; nobody else includes it.
 *
 *   e2b.c        both planes and their manners      sandboxes.c  create, list, get, end
 *   options.c    what is kept with a sandbox        templates.c  what there is to start from
 *   missing.c    what is not offered, and says so   view.c       a sandbox as E2B shows it
 *
 * EXTEND  A new surface: a file, its table in E2B_API_SURFACES below, and meson.build. */
#ifndef E2B_INSIDE_H
#define E2B_INSIDE_H

#include "front/auth/auth.h"
#include "front/auth/token.h"
#include "front/engine/engine.h"
#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/shape.h"
#include "front/plane/surface.h"
#include "front/planes/e2b/e2b.h"

#define E2B_DOMAIN_MAX 256
#define E2B_CLIENT_ID "cove" /* old clients append it to ids */
/* What clients may expect of the data plane; they look at the number. */
#define E2B_ENVD_VERSION "0.6.13"

#define E2B_API_SURFACES(X)                                                                        \
    X(sandboxes)                                                                                   \
    X(templates)                                                                                   \
    X(missing)

#define X(name) extern const struct surface_row e2b_##name[];
E2B_API_SURFACES(X)
#undef X

struct e2b {
    struct e2b_opts o;
    struct plane api;
    char domain[E2B_DOMAIN_MAX];
};

static inline struct e2b *e2b_of(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct e2b, api);
}

/* The id in a path: what follows a dash is the client's, and ignored. */
const char *e2b_id(const struct call *c, char out[ENGINE_ID_MAX + 1]);
/* The sandbox that the path names; NULL: the call is answered. */
const struct sandbox *e2b_named(struct call *c);
void e2b_not_found(struct call *c, const char *what, const char *name);

/* ---- options.c: said at creation, meaningless to the engine ---- */

struct e2b_options {
    bool open;           /* its data plane wants no token */
    bool auto_resume;    /* traffic wakes it */
    uint64_t timeout_ms; /* as given at creation */
};
void e2b_options_write(const struct e2b_options *o, struct buf *out);
/* A sandbox that was made by another plane has none: all zero. */
struct e2b_options e2b_options_of(const struct sandbox *s);

/* ---- view.c ---- */

extern const struct shape e2b_sandbox_shape, e2b_listed_shape, e2b_detail_shape;
/* Each answers the call. */
void e2b_reply_sandbox(struct call *c, int status, const struct sandbox *s);
void e2b_reply_detail(struct call *c, const struct sandbox *s);
/* Appends one element of a list. */
void e2b_add_listed(struct buf *rows, const struct sandbox *s);

#endif
