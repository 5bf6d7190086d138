/* internal.h - what the files of workspaces share; private to them. */
#ifndef FRONT_WORKSPACE_INTERNAL_H
#define FRONT_WORKSPACE_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "front/engine/archives.h"
#include "front/store/store.h"
#include "front/workspace/backend.h"
#include "front/workspace/states.h"
#include "front/workspace/workspace.h"

#define WS_FULL_MAX (ENGINE_KEY_MAX + 1 + WORKSPACE_NAME_MAX)
#define WS_REASON_MAX 400u
#define WS_SWEEP_MS 500u
#define WS_RETRY_MS 10000u  /* until a failed operation is tried again */
#define WS_SETTLE_MS 15000u /* without use until warm becomes draining; at most half of the grace */

struct workspaces {
    struct workspaces_opts o;
    struct backend **backends; /* in the order of backend_kinds; NULL: not configured */
    struct map names;          /* by "KEY/NAME" */
    struct list list;          /* in the order of creation */
    struct list ops, asks;
    struct loop_timer sweep;
};

struct holder {
    struct list link;
    enum holder_kind kind;
    char id[WORKSPACE_HOLDER_MAX + 1];
    uint64_t epoch, ends_ms;
};

struct workspace {
    struct map_node node;
    struct list link;
    struct workspaces *all;
    struct backend *backend;
    uint64_t seq, epoch, route, created_ms, changed_ms, used_ms;
    enum ws_state state;
    struct workspace_policy policy;
    char full[WS_FULL_MAX + 1], key[ENGINE_KEY_MAX + 1], name[WORKSPACE_NAME_MAX + 1];
    char sandbox[BACKEND_ID_MAX + 1], digest[65], reason[WS_REASON_MAX + 1];
    char *spec;
    unsigned op_no; /* of the latest operation: what earlier ones say comes too late */
    bool op_runs;
    uint64_t failed_ms;  /* when an operation failed last */
    bool asking;         /* whether processes run in the background */
    bool doomed;         /* WS_EV_DELETE waits for the state to change */
    bool adopting;       /* it is WS_DELETING until its envelope is complete */
    unsigned archivings; /* also one that nothing waits for any more: at most one at a time */
    struct list waiters, users, holders, deleters;
    size_t nwaiters, nusers, nholders;
};

struct workspace_use {
    struct list link;
    struct workspace *w; /* NULL: the workspace is gone */
    enum { USE_WAITS, USE_TELLS, USE_HOLDS } phase;
    enum workspace_role role;
    uint64_t epoch; /* the only one it wants; 0: any */
    struct loop_later later;
    struct err e; /* USE_TELLS: failed, if `failed` */
    bool failed;
    const char *holder; /* NULL: an operation or a stream; else its id */
    enum holder_kind kind;
    workspace_use_cb *cb;
    void *arg;
};

/* What an operation brought. */
struct ws_news {
    const char *sandbox, *digest;
    const struct err *e;
};
/* The only place that changes the state. -1: it could not be made durable; nothing changed. */
int lease_event(struct workspace *w, enum ws_event ev, const struct ws_news *n, struct err *e);
/* Begins the operation of the state, unless it is under way. */
void lease_operate(struct workspace *w);
/* The rest of WS_EV_DELETE: archives, row, memory. */
void lease_forget(struct workspace *w);
void lease_free(struct workspace *w);
int lease_save(struct workspace *w, struct err *e);
void lease_row(const struct workspace *w, struct store_workspace *row);
struct workspace *lease_find(struct workspaces *all, const char *key, const char *name,
                             struct err *e);
/* Tells everyone who waits: the sandbox, or an error. */
void lease_serve(struct workspace *w);
void lease_refuse(struct workspace *w, const struct err *e);
/* Finds out whether the sandbox of a local backend is what the state says. */
int lease_look(struct workspace *w, struct err *e);
void lease_sweep_soon(struct workspaces *all);
void lease_told_deleted(struct workspace *w, const struct err *e);
void lease_holder_drop(struct workspace *w, struct holder *h);
/* An operation under way. The workspace may be gone when it ends. */
struct op {
    struct list link;
    struct workspace *w;
    struct workspaces *all;
    unsigned no;
    enum ws_op what;
    uint64_t seq;        /* of the workspace */
    uint64_t changed_ms; /* WS_OP_ARCHIVE: of the sandbox, when it began */
    char key[ENGINE_KEY_MAX + 1];
    engine_done_cb *cb; /* of workspace_adopt() */
    void *arg;
};
struct op *lease_op(struct workspace *w, enum ws_op what);
/* Frees it. The workspace, if it still waits for this. */
struct workspace *lease_op_end(struct op *o);
void lease_owner(uint64_t seq, char out[ARCHIVE_OWNER_MAX + 1]);
/* ERR_CONFLICT while it is being deleted or adopted. */
int lease_open(const struct workspace *w, struct err *e);
/* Its sandbox; NULL: none, or not of this server. */
const struct sandbox *lease_sandbox(const struct workspace *w);
/* A new row in that state, and the workspace. */
int lease_insert(struct workspaces *all, const char *key, const char *name,
                 const struct workspace_make *m, enum ws_state state, struct workspace **ret,
                 struct err *e);
bool lease_is_used(const struct workspace *w);

#endif
