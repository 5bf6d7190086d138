/* store.h - the database of the front, with all its SQL. It holds what clients were told.
 *
 * A call that returns 0 is durable unless it stands between store_begin() and
 * store_commit(). One process at a time: a second one is refused at open. Calls
 * block the loop's thread for a disk flush; frequent writes are committed without one,
 * and their answers wait for a flush in a thread. */
#ifndef FRONT_STORE_STORE_H
#define FRONT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

struct store;

/* `path` of the database file, made if absent. A broken database, one of a newer
 * Cove, or one that another process has open is an error that says which. */
int store_open(const char *path, struct store **ret, struct err *e);
void store_close(struct store *s);

/* Several writes, one flush. No nesting. */
int store_begin(struct store *s, struct err *e);
/* Several writes, no flush: they survive the end of this process, but a failure of the
 * host only after the next flush of any caller or store_flush(). */
int store_begin_light(struct store *s, struct err *e);
/* Makes everything committed before durable. The only call that another thread may
 * make. */
int store_flush(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);

/* ---- sandboxes ---- */

/* Their numbers are in the database. */
enum store_state { STORE_RUNNING, STORE_STOPPED, STORE_DELETING, STORE_PAUSED, STORE_STATE_COUNT };

struct store_bytes {
    const void *p;
    size_t len;
};

/* clang-format off */
#define STORE_LIMIT(X, _, member, ...) X(NUMBER, member)
#define STORE_SANDBOX_COLUMNS(X) \
    X(TEXT, id) X(TEXT, key) X(NUMBER, state) X(TEXT, template) X(TEXT, network) X(TEXT, metadata) \
    X(BYTES, env) LIMITS(STORE_LIMIT, X, _) \
    X(NUMBER, created_ms) X(NUMBER, ends_ms) X(NUMBER, on_timeout) X(TEXT, boot_id) X(TEXT, reason) \
    X(BYTES, image) X(BYTES, rules) X(TEXT, plane) X(TEXT, name) X(NUMBER, timeout_ms) X(NUMBER, auto_resume) \
    X(NUMBER, changed_ms) X(TEXT, snapshot) X(NUMBER, idle_ms) X(NUMBER, log_output) X(TEXT, log_boot) X(NUMBER, log_next) \
    X(NUMBER, guarded) X(NUMBER, relaxed) X(NUMBER, lost_ms)
/* clang-format on */

#define STORE_C_TEXT const char * /* NULL is stored as "" and never read back */
#define STORE_C_NUMBER uint64_t
#define STORE_C_BYTES struct store_bytes

struct store_sandbox {
    uint64_t seq; /* order of creation, never used twice; chosen by insert */
#define X(type, name) STORE_C_##type name;
    STORE_SANDBOX_COLUMNS(X)
#undef X
};

int store_sandbox_insert(struct store *s, struct store_sandbox *row, struct err *e);
/* Each changes the named columns only; a missing row is ERR_NOT_FOUND. */
struct store_life {
    enum store_state state;
    const char *boot_id, *reason;
    uint64_t ends_ms, changed_ms;
};
int store_sandbox_set_life(struct store *s, const char *id, const struct store_life *l,
                           struct err *e);
int store_sandbox_set_ends(struct store *s, const char *id, uint64_t ends_ms, struct err *e);
int store_sandbox_set_rules(struct store *s, const char *id, const struct store_bytes *rules,
                            struct err *e);
int store_sandbox_set_lost(struct store *s, const char *id, uint64_t lost_ms, struct err *e);
/* What a client may change of a sandbox that exists. */
struct store_about {
    const char *name, *metadata;
    uint64_t on_timeout, auto_resume, relaxed;
    struct limits limits;
};
int store_sandbox_set_about(struct store *s, const char *id, const struct store_about *a,
                            struct err *e);
/* A missing row is fine. */
int store_sandbox_delete(struct store *s, const char *id, struct err *e);
/* In the order of creation; the row is borrowed for the call. `each` returns -1
 * with `e` set to end it. It must not call the store. */
int store_sandbox_each(struct store *s,
                       int (*each)(void *arg, const struct store_sandbox *row, struct err *e),
                       void *arg, struct err *e);

/* ---- snapshots ---- */

struct store_snapshot {
    uint64_t seq; /* order of creation; chosen by insert */
    const char *id, *key, *name, *sandbox, *template;
    uint64_t bytes, created_ms;
};

int store_snapshot_insert(struct store *s, struct store_snapshot *row, struct err *e);
/* A missing row is fine. */
int store_snapshot_delete(struct store *s, const char *id, struct err *e);
/* As store_sandbox_each(). */
int store_snapshot_each(struct store *s,
                        int (*each)(void *arg, const struct store_snapshot *row, struct err *e),
                        void *arg, struct err *e);

/* ---- archives ---- */

struct store_archive {
    uint64_t seq; /* order of creation; chosen by insert */
    const char *key, *owner, *digest, *space, *template, *base;
    uint64_t entries, bytes, stored, created_ms;
};
int store_archive_insert(struct store *s, struct store_archive *row, struct err *e);
/* A missing row is fine. */
int store_archive_delete(struct store *s, uint64_t seq, struct err *e);
/* As store_sandbox_each(). */
int store_archive_each(struct store *s,
                       int (*each)(void *arg, const struct store_archive *row, struct err *e),
                       void *arg, struct err *e);
/* The part of the archives' store that is a key's; given once. */
int store_space_put(struct store *s, const char *key, const char *space, struct err *e);
int store_space_each(struct store *s, void (*each)(void *arg, const char *key, const char *space),
                     void *arg, struct err *e);

/* ---- workspaces ---- */

/* clang-format off */
#define STORE_WORKSPACE_COLUMNS(X) \
    X(TEXT, key) X(TEXT, name) X(NUMBER, state) X(NUMBER, epoch) X(NUMBER, route) X(TEXT, backend) \
    X(TEXT, sandbox) X(TEXT, spec) X(TEXT, digest) X(TEXT, reason) X(NUMBER, grace_ms) \
    X(NUMBER, archive_ms) X(NUMBER, background) X(NUMBER, created_ms) X(NUMBER, changed_ms) \
    X(NUMBER, used_ms)
/* clang-format on */

struct store_workspace {
    uint64_t seq; /* order of creation, never used twice; chosen by insert */
#define X(type, name) STORE_C_##type name;
    STORE_WORKSPACE_COLUMNS(X)
#undef X
};
int store_workspace_insert(struct store *s, struct store_workspace *row, struct err *e);
/* All columns of the row `seq`. */
int store_workspace_set(struct store *s, const struct store_workspace *row, struct err *e);
/* With its holders. A missing row is fine. */
int store_workspace_delete(struct store *s, uint64_t seq, struct err *e);
/* As store_sandbox_each(). */
int store_workspace_each(struct store *s,
                         int (*each)(void *arg, const struct store_workspace *row, struct err *e),
                         void *arg, struct err *e);

struct store_holder {
    uint64_t workspace, kind; /* seq of the workspace */
    const char *id;
    uint64_t epoch, ends_ms;
};
int store_holder_put(struct store *s, const struct store_holder *row, struct err *e);
/* A missing row is fine. */
int store_holder_delete(struct store *s, const struct store_holder *row, struct err *e);
/* Those of all workspaces that end at that time or before it. */
int store_holders_expire(struct store *s, uint64_t now_ms, struct err *e);
/* In the order of the workspaces. `each` must not call the store. */
int store_holder_each(struct store *s, void (*each)(void *arg, const struct store_holder *row),
                      void *arg, struct err *e);

/* ---- who added which template ---- */

int store_template_put(struct store *s, const char *name, const char *key, struct err *e);
/* A missing row is fine. */
int store_template_delete(struct store *s, const char *name, struct err *e);
/* `each` must not call the store. */
int store_template_each(struct store *s, void (*each)(void *arg, const char *name, const char *key),
                        void *arg, struct err *e);

/* ---- what sandboxes used, and what happened to them ---- */

struct store_point {
    uint64_t sandbox; /* its seq */
    uint64_t at_ms, cpu_milli, memory, cache, disk, pids, in_bytes, out_bytes;
};
struct store_span {
    uint64_t sandbox, since_ms, until_ms;
    size_t limit; /* the newest of them */
};
int store_point_add(struct store *s, const struct store_point *p, struct err *e);
/* Oldest first. `each` must not call the store. */
int store_point_each(struct store *s, const struct store_span *span,
                     void (*each)(void *arg, const struct store_point *p), void *arg,
                     struct err *e);
/* Deletes some of the points that are older, or more than `most`. */
int store_points_prune(struct store *s, uint64_t before_ms, uint64_t most, struct err *e);

struct store_log {
    uint64_t n, sandbox, at_ms; /* n: chosen by add, ever higher */
    unsigned level;
    bool output; /* output of a command, not an event */
    const char *message, *fields;
};
struct store_log_span {
    uint64_t sandbox;
    bool backward;
    uint64_t from,
        from_ms; /* after that entry and from that time on, in the direction of the list */
    size_t limit;
};
int store_log_add(struct store *s, const struct store_log *l, struct err *e);
#define STORE_LOG_COST 64u /* of an entry, besides its message and fields */
/* Bytes of an entry, as all below count them. */
uint64_t store_log_size(const struct store_log *l);
/* Bytes of each sandbox's entries. Reads the whole table. */
int store_log_sizes(struct store *s, void (*each)(void *arg, uint64_t sandbox, uint64_t bytes),
                    void *arg, struct err *e);
/* From now on `gone` is called for each entry that is deleted below. It must not call the store. */
void store_on_log_gone(struct store *s, void (*gone)(void *arg, uint64_t sandbox, uint64_t bytes),
                       void *arg);
/* Deletes the oldest `n` entries of a sandbox. */
int store_log_trim(struct store *s, uint64_t sandbox, uint64_t n, struct err *e);
/* Ends when `each` returns false. It must not call the store. */
int store_log_each(struct store *s, const struct store_log_span *span,
                   bool (*each)(void *arg, const struct store_log *l), void *arg, struct err *e);
/* The log has the output of a sandbox up to line `next` of that boot. A missing row
 * is fine. */
int store_log_mark(struct store *s, uint64_t sandbox, const char *boot, uint64_t next,
                   struct err *e);
/* Keeps the newest `most` entries of a sandbox's output. */
int store_output_prune(struct store *s, uint64_t sandbox, uint64_t most, struct err *e);
/* Deletes some of the entries that are older, or more than `most`, output first.
 * *ret_more: call again soon. */
int store_logs_prune(struct store *s, uint64_t before_ms, uint64_t most, bool *ret_more,
                     struct err *e);

/* ---- API keys ---- */

#define STORE_HASH 32

struct store_key {
    const char *id, *name;
    unsigned char hash[STORE_HASH];
    uint64_t created_ms;
    bool revoked, admin;
};

/* Inserts, or gives the key of that id this name, hash, revocation and power. */
int store_key_put(struct store *s, const struct store_key *k, struct err *e);
/* A missing row is fine. */
int store_key_delete(struct store *s, const char *id, struct err *e);
int store_key_each(struct store *s,
                   int (*each)(void *arg, const struct store_key *k, struct err *e), void *arg,
                   struct err *e);

/* Quotas that a key was given; those of a name that this release does not know are kept. */
int store_quota_put(struct store *s, const char *key, const char *name, uint64_t value,
                    struct err *e);
/* `name` "": all of the key. A missing row is fine. */
int store_quota_delete(struct store *s, const char *key, const char *name, struct err *e);
/* `each` must not call the store. */
int store_quota_each(struct store *s,
                     void (*each)(void *arg, const char *key, const char *name, uint64_t value),
                     void *arg, struct err *e);

/* ---- ports that are open to clients with their token ---- */

#define STORE_TUNNEL_TOKEN 16
#define STORE_TUNNEL_NAME 63

struct store_tunnel {
    unsigned port;
    char token[STORE_TUNNEL_TOKEN + 1], name[STORE_TUNNEL_NAME + 1];
    uint64_t created_ms;
};

/* Deleted with their sandbox. */
int store_tunnel_put(struct store *s, const char *sandbox, const struct store_tunnel *t,
                     struct err *e);
/* 1: found; 0: not found. */
int store_tunnel_get(struct store *s, const char *sandbox, unsigned port, struct store_tunnel *ret,
                     struct err *e);
int store_tunnel_count(struct store *s, const char *sandbox, uint64_t *ret, struct err *e);
/* A missing row is fine. */
int store_tunnel_delete(struct store *s, const char *sandbox, unsigned port, struct err *e);

/* ---- counters that survive ---- */

/* Takes `count` numbers that no earlier call was given: *ret_first and up. The
 * first number of a new counter is 1. */
int store_reserve(struct store *s, const char *counter, uint64_t count, uint64_t *ret_first,
                  struct err *e);

/* Whether this database was ever joined with the existing sandboxes; then no client was told of a
 * sandbox without a row. A new database was not: it may replace a lost one. */
int store_is_joined(struct store *s, bool *ret, struct err *e);
int store_set_joined(struct store *s, struct err *e);

#endif
