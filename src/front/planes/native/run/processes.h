/* processes.h - what a process and a terminal answer alike. */
#ifndef FRONT_PLANES_NATIVE_RUN_PROCESSES_H
#define FRONT_PLANES_NATIVE_RUN_PROCESSES_H

#include "front/engine/process.h"
#include "front/plane/shape.h"

#define PROCESSES "/v1/sandboxes/{id}/processes"
#define GRACE_DEFAULT_MS 5000u
#define GRACE_MAX_MS (3600u * 1000)

struct extent_view {
    uint64_t first, end;
};
extern const struct shape extent_shape;

/* How it ended; of one that runs, nothing that counts. */
struct exit_view;
void process_exit_of(struct exit_view *v, const struct process_info *p);

/* The last callbacks of a call (`arg`): 204, and how it ended. */
void process_done(void *arg, const struct err *e);
void process_ended(void *arg, const struct process_exit *m, const struct err *e);

#endif
