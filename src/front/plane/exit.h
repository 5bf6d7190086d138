/* exit.h - how a command ended, as an answer says it, and signals by name. */
#ifndef FRONT_PLANE_EXIT_H
#define FRONT_PLANE_EXIT_H

#include <jansson.h>

#include "front/engine/process.h"
#include "front/plane/shape.h"

struct exit_view {
    uint64_t code; /* 124 when timed out, 128 + number for a signal */
    const char *signal;
    bool timed_out, core, killed, oom, oom_meanwhile, interrupted;
    uint64_t cpu_ms, max_rss_kb, ended_ms;
    char name[16]; /* what `signal` points to */
};
extern const struct shape exit_shape;

void exit_view_of(struct exit_view *v, const struct process_exit *m);

/* "SIGTERM"; NULL for 0. */
const char *signal_name(unsigned signo, char out[16]);
/* From "TERM", "SIGTERM", "15" or 15; ERR_INVALID otherwise. */
int signal_from(json_t *j, int *ret, struct err *e);

#endif
