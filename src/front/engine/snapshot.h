/* snapshot.h - snapshots of a sandbox's files, from which new sandboxes are created; and forks,
 * which do both in one step.
 *
 * A snapshot belongs to the key that took it. It outlives its sandbox; deleting it does not affect
 * sandboxes created from it. Several snapshots may share a name: it means the newest. In this
 * header a struct ref may name a snapshot. */
#ifndef FRONT_ENGINE_SNAPSHOT_H
#define FRONT_ENGINE_SNAPSHOT_H

#include "front/engine/engine.h"

#define SNAPSHOT_NAME_MAX 128u /* bytes */
#define FORK_MAX 100u

struct snapshot {
    const char *id, *key;
    const char *name;     /* or "" */
    const char *sandbox;  /* it was taken of; may have been deleted */
    const char *template; /* of that sandbox */
    uint64_t bytes;       /* upper bound, beyond the template; shared data is stored once */
    uint64_t created_ms;
    bool damaged; /* no sandbox can be created from it; existing ones keep their files */
};

/* `s` is borrowed for the call; NULL on failure. */
typedef void snapshot_cb(void *arg, const struct snapshot *s, const struct err *e);

/* Of a running, paused or stopped sandbox, which is unchanged. ERR_CONFLICT while another operation
 * on it is under way, ERR_LIMIT when there are too many snapshots. */
void engine_snapshot(struct ref ref, const char *name, snapshot_cb *cb, void *arg);
/* By id, or else by name. NULL if there is none, or it is another key's. Points into the
 * engine until the next turn of the loop. */
const struct snapshot *engine_snapshot_get(struct ref ref);
/* Durable when it answers; its space is freed when no sandbox uses it any more. */
void engine_snapshot_delete(struct ref ref, engine_done_cb *cb, void *arg);

struct snapshot_list_opts {
    const char *key;
    const char *sandbox, *name; /* NULL: all */
    const char *after;          /* cursor of the page before, or NULL */
    size_t limit;
};
/* Newest first; else as engine_list(). */
int engine_snapshots(struct engine *g, const struct snapshot_list_opts *o,
                     void (*each)(void *arg, const struct snapshot *s), void *arg, char **ret_next,
                     struct err *e);

/* A snapshot as one file: an OCI image layout as tar.zst. It is packed in a temporary sandbox
 * created from it. engine_export_pause() holds back on_data. */
struct engine_export;
struct export_ops {
    void (*on_data)(void *arg, const char *p, size_t n);
    void (*on_done)(void *arg, const struct err *e); /* the last one; the handle is gone */
};
struct engine_export *engine_export(struct ref ref, const struct export_ops *ops, void *arg);
void engine_export_pause(struct engine_export *x, bool paused);
void engine_export_cancel(struct engine_export *x); /* no callback follows */

/* As engine_import(), but the result is a snapshot of the key, reported to import_ops.on_snapshot.
 * Accepts every archive that engine_import() accepts. It takes no more disk than the key may have. */
struct engine_import *engine_import_snapshot(struct engine *g, const char *key, const char *name,
                                             uint64_t disk, const struct import_ops *ops,
                                             void *arg);

struct fork_opts {
    unsigned count; /* 1...FORK_MAX */
    bool has_timeout;
    uint64_t timeout_ms; /* else that of the original */
};
/* Creates sandboxes with the files, environment, metadata, limits and network of this one. Each
 * succeeds or fails independently: `each` is called for all, in order, with the sandbox or the
 * error, and then `done`. A failure of the whole is reported to `done` only. */
void engine_fork(struct ref ref, const struct fork_opts *o,
                 void (*each)(void *arg, const struct sandbox *s, const struct err *e),
                 engine_done_cb *done, void *arg);

#endif
