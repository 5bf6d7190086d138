/* workspace.h - workspaces: a name of a key, with at most one live sandbox behind it.
 *
 * The sandbox is made at the first use, shared by everyone who uses the name, paused and archived
 * when nothing uses it, and brought back with its files at the next use (states.h). A use is one
 * operation or one open stream, in memory; a named holder is a row. While there is either, the
 * sandbox is not put away.
 *
 * The epoch is that of the sandbox: it grows when a sandbox was made, and a caller that knows an
 * older one is refused with ERR_FENCED. All calls are made on the loop's thread. */
#ifndef FRONT_WORKSPACE_WORKSPACE_H
#define FRONT_WORKSPACE_WORKSPACE_H

#include "front/engine/engine.h"

#define WORKSPACE_NAME_MAX 63u
#define WORKSPACE_SPEC_MAX (256u << 10) /* bytes of JSON */
#define WORKSPACE_HOLDERS_MAX 1000u     /* named ones of one workspace */
#define WORKSPACE_HOLDER_MAX 128u       /* bytes of the name of one */
#define WORKSPACE_WAITERS_MAX 10000u    /* uses of one workspace that wait for its sandbox */
#define WORKSPACE_TTL_MIN 1000u         /* of a holder, ms */
#define WORKSPACE_TTL_MAX 3600000u

struct quota_book;
struct store;
struct workspaces;

/* Calls `use` with the create options that a spec stands for, inside the call. */
typedef int workspace_decode(const struct config *c, const char *spec,
                             void (*use)(void *arg, const struct create_opts *o), void *arg,
                             struct err *e);

struct workspaces_opts { /* all outlive it */
    struct loop *loop;
    struct engine *engine;
    struct store *store;
    struct quota_book *quotas;
    const struct config *config;
    workspace_decode *decode;
};
int workspaces_new(const struct workspaces_opts *o, struct workspaces **ret, struct err *e);
/* After the engine: no callback follows. */
void workspaces_free(struct workspaces *all);
/* The engine knows its sandboxes: what a kill interrupted is taken up again. */
void workspaces_start(struct workspaces *all);

enum holder_kind { HOLDER_TURN, HOLDER_VIEWER, HOLDER_KIND_COUNT };
const char *holder_kind_name(int kind); /* "turn", "viewer" */

struct workspace_policy {
    uint64_t grace_ms;   /* without use, then its sandbox is paused */
    uint64_t archive_ms; /* after that, then it is archived and deleted; 0: never */
    bool background;     /* a process that runs in the background counts as use */
};

/* Borrowed until the next turn of the loop. */
struct workspace_info {
    const char *key, *name, *state, *stage, *backend;
    const char *sandbox; /* "": none */
    const char *spec, *archive, *reason;
    uint64_t epoch, route, created_ms, changed_ms, used_ms;
    struct workspace_policy policy;
    uint64_t uses, turns, viewers;
};

struct workspace_make { /* borrowed for the call */
    const char *spec, *backend;
    struct workspace_policy policy;
    bool any_spec; /* `spec` was not given: that of one that exists is fine */
};
/* Creates it, or finds the one that has that spec; ERR_CONFLICT if it has another. Durable. */
int workspace_put(struct workspaces *all, const char *key, const char *name,
                  const struct workspace_make *m, struct workspace_info *ret, bool *ret_made,
                  struct err *e);
int workspace_get(struct workspaces *all, const char *key, const char *name,
                  struct workspace_info *ret, struct err *e);
int workspace_set_policy(struct workspaces *all, const char *key, const char *name,
                         const struct workspace_policy *p, struct err *e);

/* All that is needed to bring a workspace back, here or at another server with the same store of
 * archives. Strings are borrowed until the next turn of the loop. */
#define WORKSPACE_ENVELOPE 1u /* version */
struct workspace_envelope {
    const char *backend, *sandbox, *spec, *space, *digest; /* "": none */
    uint64_t epoch, route;
    struct workspace_policy policy;
};
int workspace_envelope_of(struct workspaces *all, const char *key, const char *name,
                          struct workspace_envelope *ret, struct err *e);
/* Makes the workspace that the envelope describes: with its sandbox if that exists here, else with
 * its archive. ERR_CONFLICT if the name or the sandbox is taken; on failure nothing is left. May
 * answer inside the call. */
void workspace_adopt(struct workspaces *all, const char *key, const char *name,
                     const struct workspace_envelope *from, engine_done_cb *cb, void *arg);

struct workspace_list {
    const char *key;   /* NULL: all */
    const char *state; /* NULL: all */
    uint64_t after;    /* seq of the last one of the previous page; 0: the first page */
    size_t limit;
    size_t bytes; /* of specs; at least one is given */
};
/* In the order of creation. Returns the seq for the next page, 0: there is none. */
uint64_t workspace_each(struct workspaces *all, const struct workspace_list *o,
                        void (*each)(void *arg, const struct workspace_info *w), void *arg);

/* Whether that key has one, which may be a key that was revoked. */
bool workspace_any_of(struct workspaces *all, const char *key);

/* With its sandbox and archives. ERR_CONFLICT while a turn holds it, unless `force`. */
void workspace_delete(struct workspaces *all, const char *key, const char *name, bool force,
                      engine_done_cb *cb, void *arg);

/* ---- use ---- */

enum workspace_role { ROLE_SPAWNER, ROLE_ATTACHED, ROLE_REARMED };
const char *workspace_role_name(enum workspace_role r);

struct workspace_use;
struct workspace_grant {
    struct workspace_use *use; /* NULL: failed. Ended with workspace_leave() */
    const char *sandbox;
    uint64_t epoch;
    enum workspace_role role;
};
typedef void workspace_use_cb(void *arg, const struct workspace_grant *g, const struct err *e);

/* Uses the sandbox of a workspace, which is made if it must be; *now is filled and 1 returned if it
 * runs already, else 0 and `cb` is called later. `epoch` 0: any. -1 with `e` set. */
int workspace_use(struct workspaces *all, const char *key, const char *name, uint64_t epoch,
                  workspace_use_cb *cb, void *arg, struct workspace_use **ret,
                  struct workspace_grant *now, struct err *e);
/* Also while it waits: then `cb` is not called any more. NULL is fine. */
void workspace_leave(struct workspace_use *u);

/* It counts as a holder of that kind until workspace_leave(); `id` is borrowed until then. */
void workspace_use_as(struct workspace_use *u, enum holder_kind kind, const char *id);

/* ---- named holders ---- */

struct workspace_holder {
    enum holder_kind kind;
    const char *id;
    uint64_t epoch; /* 0: any */
    uint64_t ttl_ms;
};
/* Durable. The caller has a use meanwhile (`epoch` is that of its grant). Again with the same kind
 * and id: the time begins anew. */
int workspace_hold(struct workspaces *all, const char *key, const char *name,
                   const struct workspace_holder *h, struct err *e);
/* As workspace_hold(), for a holder that exists: ERR_NOT_FOUND, ERR_FENCED. */
int workspace_beat(struct workspaces *all, const char *key, const char *name,
                   const struct workspace_holder *h, struct err *e);
/* Succeeds if there is none. */
int workspace_release(struct workspaces *all, const char *key, const char *name,
                      const struct workspace_holder *h, struct err *e);

#endif
