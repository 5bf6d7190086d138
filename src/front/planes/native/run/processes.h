/* processes.h - shared by processes, terminals and commands of sessions. */
#ifndef FRONT_PLANES_NATIVE_RUN_PROCESSES_H
#define FRONT_PLANES_NATIVE_RUN_PROCESSES_H

#include "front/engine/process.h"
#include "front/plane/call.h"
#include "front/plane/exit.h"
#include "front/plane/shape.h"
#include "front/planes/native/listing.h"

#define PROCESSES "/v1/sandboxes/{id}/processes"
#define GRACE_DEFAULT_MS 5000u
#define GRACE_MAX_MS (3600u * 1000)

struct extent_view {
    uint64_t first, end;
};
extern const struct shape extent_shape;

/* A struct process_info as their shapes show it; each has the fields that it needs. */
struct process_view {
    const char *id, *state, *cwd, *user;
    struct shape_bytes argv;
    uint64_t pid, started_ms, ended_ms, timeout_ms;
    bool stdin_open, terminal;
    uint64_t cols, rows, viewers;
    const struct exit_view *exit;     /* NULL, or... */
    const struct extent_view *output; /* ...point to these */
    struct exit_view exit_of;
    struct extent_view output_of;
};
/* A resource.view. */
void process_view_of(void *view, const void *process_info);

/* Starts a command that no connection owns, and answers with it as `r` shows it. */
void process_launch(struct call *c, const struct process_opts *o, const struct resource *r);

/* The last callback of a call (`arg`): how it ended. */
void process_ended(void *arg, const struct process_exit *m, const struct err *e);

#endif
