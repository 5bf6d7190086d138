/* sandbox_view.h - a sandbox as the native API shows it. */
#ifndef FRONT_PLANES_NATIVE_SANDBOX_SANDBOX_VIEW_H
#define FRONT_PLANES_NATIVE_SANDBOX_SANDBOX_VIEW_H

#include "front/engine/engine.h"
#include "front/plane/call.h"
#include "front/plane/shape.h"

extern const struct shape sandbox_shape;

struct sandbox_view {
    const char *id, *key, *name, *state, *template, *snapshot, *network, *metadata, *on_timeout,
        *boot_id, *reason, *fsync;
    uint64_t created_ms, changed_ms, ends_ms, lost_ms;
    bool auto_resume, log_output;
    const struct limits *limits;
    struct shape_bytes env_names;
};

/* The view points into the sandbox and `names`, which has room for ENGINE_ENV_MAX. */
void sandbox_view_of(struct sandbox_view *v, const struct sandbox *s, struct buf *names);
/* One more of a SHAPE_LIST. */
void sandbox_view_append(struct buf *list, const struct sandbox *s);
/* With the status of the row. */
void sandbox_reply(struct call *c, const struct sandbox *s);
/* An engine_sandbox_cb: `arg` is a call that expects it as its answer. */
void sandbox_told(void *arg, const struct sandbox *s, const struct err *e);

#endif
