/* snapshot.h - a sandbox's files as they were at one moment, for new sandboxes to
 * start from; and forks, which are that in one step.
 *
 * A snapshot belongs to the key that took it. It outlives its sandbox, and deleting
 * it takes nothing from sandboxes that were made from it. A name may be given to
 * several: it means the newest. */
#ifndef FRONT_ENGINE_SNAPSHOT_H
#define FRONT_ENGINE_SNAPSHOT_H

#include "front/engine/engine.h"

#define SNAPSHOT_NAME_MAX 128u /* bytes */
#define FORK_MAX 100u

struct snapshot {
    const char *id, *key;
    const char *name;     /* or "" */
    const char *sandbox;  /* that it was taken of; it may be gone */
    const char *template; /* that this one was made from */
    uint64_t bytes;       /* at most, beyond the template; shared with whoever has the same */
    uint64_t created_ms;
    bool damaged; /* no sandbox can be made from it; those that were made keep their files */
};

/* `s` is borrowed for the call; NULL on failure. */
typedef void snapshot_cb(void *arg, const struct snapshot *s, const struct err *e);

/* Of a sandbox that runs, is paused or is stopped; it stays what it is. ERR_CONFLICT
 * while something else is being done with it, ERR_LIMIT when there are too many. */
void engine_snapshot(struct ref ref, const char *name, snapshot_cb *cb, void *arg);
/* By id, or else by name. NULL if there is none, or it is another key's. Points into the
 * engine until the next turn of the loop. */
const struct snapshot *engine_snapshot_get(struct ref ref);
/* Durable when it answers; its space is free when nothing stands on it any more. */
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

/* A snapshot as one file: an OCI image layout as tar.zst, every part of it named by its
 * digest. Packed in a throw-away sandbox that is made from it. `on_data` may be told
 * to wait with engine_export_pause(). */
struct engine_export;
struct export_ops {
    void (*on_data)(void *arg, const char *p, size_t n);
    void (*on_done)(void *arg, const struct err *e); /* the last one; the handle is gone */
};
struct engine_export *engine_export(struct ref ref, const struct export_ops *ops, void *arg);
void engine_export_pause(struct engine_export *x, bool paused);
void engine_export_cancel(struct engine_export *x); /* no callback follows */

/* And back: as engine_import(), but what comes out is a snapshot of the key's, told of to
 * import_ops.on_snapshot. Also from any other archive a template could be made of. */
struct engine_import *engine_import_snapshot(struct engine *g, const char *key, const char *name,
                                             const struct import_ops *ops, void *arg);

struct fork_opts {
    unsigned count; /* 1...FORK_MAX */
    bool has_timeout;
    uint64_t timeout_ms; /* else as the original was made */
};
/* New sandboxes with the files of this one, and all that it was made with: environment,
 * metadata, limits, network. Each of them works or fails by itself: `each` is called
 * for all, in order, with the sandbox or the error, and then `done`. A failure
 * that none of them survived is only told to `done`. */
void engine_fork(struct ref ref, const struct fork_opts *o,
                 void (*each)(void *arg, const struct sandbox *s, const struct err *e),
                 engine_done_cb *done, void *arg);

#endif
