/* internal.h - what the files of E2B's planes share; private to them.
 *
 *   e2b.c        the control plane, and its errors  create.c     creates sandboxes
 *   sandboxes.c  list, get, delete, lifetime        templates.c  templates
 *   pause.c      pause and resume                   snapshots.c  snapshots and forks
 *   network.c    network rules                      usage.c      metrics
 *   logs.c       logs                               missing.c    routes that are not supported
 *   view.c       a sandbox as E2B shows it, and the options stored with it
 *   data.c       the data plane: access, errors     connect.c    its RPC protocol
 *   signature.c  signed URLs of one file            path.c       paths and users
 *   files.c, upload.c  /files, both directions      compose.c    joins several files
 *   metadata.c   metadata of uploads                filesystem.c the RPC about files
 *   entry.c      a file as that RPC shows it        process.c    commands, output, environment
 *   control.c    stdin, signals, lists              proto.c      protobuf's JSON
 *   watch.c, poll.c  its watchers                   event.c      their events
 *
 * EXTEND  A new surface: a file, its table in E2B_API_SURFACES or E2B_DATA_SURFACES
 *         below, and meson.build. */
#ifndef FRONT_PLANES_E2B_INTERNAL_H
#define FRONT_PLANES_E2B_INTERNAL_H

#include "front/auth/auth.h"
#include "front/auth/token.h"
#include "front/engine/engine.h"
#include "front/engine/file.h"
#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/shape.h"
#include "front/plane/surface.h"
#include "front/planes/e2b/e2b.h"

#define E2B_DOMAIN_MAX 256
#define E2B_MASK_MAX 128
#define E2B_CLIENT_ID "cove" /* old clients append it to ids */
/* What clients may expect of the data plane; they look at the number. */
#define E2B_ENVD_VERSION "0.6.13"

/* The first row that fits counts: these two have names where others have {id}. */
#define E2B_API_SURFACES(X)                                                                        \
    X(missing)                                                                                     \
    X(usage)                                                                                       \
    X(create)                                                                                      \
    X(sandboxes)                                                                                   \
    X(pause)                                                                                       \
    X(snapshots)                                                                                   \
    X(network)                                                                                     \
    X(logs)                                                                                        \
    X(templates)

#define E2B_DATA_SURFACES(X)                                                                       \
    X(health)                                                                                      \
    X(inside_usage)                                                                                \
    X(filesystem)                                                                                  \
    X(watch)                                                                                       \
    X(poll)                                                                                        \
    X(files)                                                                                       \
    X(compose)                                                                                     \
    X(environ)                                                                                     \
    X(process)                                                                                     \
    X(control)

#define X(name) extern const struct surface_row e2b_##name[];
E2B_API_SURFACES(X)
E2B_DATA_SURFACES(X)
#undef X

#define E2B_BUDGETS 1024u /* addresses that share one pay for each other */

struct e2b {
    struct plane_opts o;
    struct plane api, data;
    struct list waking;   /* requests of the data plane */
    struct list searches; /* signature.c's */
    struct list pollers;  /* poll.c's */
    size_t npollers;
    char domain[E2B_DOMAIN_MAX];
    struct search_budget {
        uint64_t second, tried; /* signatures computed in that second */
    } budgets[E2B_BUDGETS];     /* by the address of the client */
};

/* Of a call of the control plane. */
static inline struct e2b *e2b_of(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct e2b, api);
}

/* Of a call of the data plane. */
static inline struct e2b *e2b_of_data(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct e2b, data);
}

void e2b_write_error(int status, const struct err *e, struct buf *out);

/* The sandbox that the path names; NULL: the call is answered. */
const struct sandbox *e2b_named(struct call *c);
void e2b_not_found(struct call *c, const char *what, const char *name);
/* Of a lifetime in seconds, in E2B's words. */
int e2b_check_timeout(int64_t seconds, struct err *e);

/* ---- view.c: tokens, which are of the key that owns the sandbox, and end with that key ---- */

struct token_claims e2b_claims(const struct sandbox *s, enum token_kind kind);
/* False: its key was revoked. */
bool e2b_has_owner(const struct e2b *p, const struct sandbox *s);
bool e2b_opens(const struct e2b *p, const struct sandbox *s, enum token_kind kind,
               const char *presented);

/* ---- view.c: options given at creation that the engine does not know ---- */

struct e2b_options {
    bool open;                    /* its data plane wants no token */
    bool private;                 /* its ports want one */
    char mask_host[E2B_MASK_MAX]; /* what servers inside are told as Host; or "" */
};
void e2b_options_write(const struct e2b_options *o, struct buf *out);
/* A sandbox that was made by another plane has none: all zero. */
struct e2b_options e2b_options_of(const struct sandbox *s);

/* ---- data.c: calls act for the key that owns the sandbox, and present none ---- */

#define E2B_ABSENT 502 /* what E2B's gateway says of sandboxes that are not there */
#define E2B_USER_MAX 64u
#define E2B_PATH_MAX 4096u
#define E2B_NO_TOKEN                                                                               \
    "unauthorized access, please provide a valid access token or method signing if supported"
#define E2B_STARTING "{\"code\":503,\"message\":\"starting\"}"

void e2b_data_init(struct e2b *p);
void e2b_data_free(struct e2b *p);
void e2b_pollers_free(struct e2b *p); /* poll.c */
/* There is no sandbox to speak of: that is what `e` is about, whatever it says. */
bool e2b_is_absent(const struct call *c, const struct err *e);
/* The request carries the sandbox's token, or needs none. */
bool e2b_has_token(struct call *c);
/* The user that the request names; *ret is NULL if it names none, else `out`. */
int e2b_user(struct call *c, char out[E2B_USER_MAX + 1], const char **ret, struct err *e);

/* ---- path.c ---- */

/* As the engine names it. ERR_INVALID. */
int e2b_path(const char *path, char out[E2B_PATH_MAX + 1], struct err *e);
/* Without "//", "." and "..", for showing. */
void e2b_clean(const char *path, char out[E2B_PATH_MAX + 1]);
/* Borrows all. */
struct file_at e2b_at(const struct call *c, const char *path, const char *user);

/* ---- process.c ---- */

/* As strv bytes: what E2B sets, then what the sandbox was made with. */
void e2b_add_env(struct buf *out, const struct sandbox *s);

/* ---- view.c ---- */

extern const struct shape e2b_sandbox_shape, e2b_listed_shape, e2b_detail_shape;
/* Each answers the call. */
void e2b_reply_sandbox(struct call *c, int status, const struct sandbox *s);
void e2b_reply_detail(struct call *c, const struct sandbox *s);
void e2b_put_sandbox(struct json_w *w, const struct e2b *p, const struct sandbox *s);
/* `rows` are the elements of a list, with commas between them. */
void e2b_reply_list(struct call *c, int status, const struct buf *rows);
/* Appends one element of a list. */
void e2b_add_listed(struct buf *rows, const struct sandbox *s);

#endif
