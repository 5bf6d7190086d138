/* process.h - how this plane shows a process, and its exit. */
#ifndef FRONT_PLANES_CLOUDFLARE_PROCESS_H
#define FRONT_PLANES_CLOUDFLARE_PROCESS_H

#include "front/engine/process.h"
#include "front/plane/call.h"
#include "front/plane/shape.h"

struct ended_view {
    uint64_t code, signal;
    bool timed_out;
};
extern const struct shape cloudflare_ended_shape;
void cloudflare_ended_of(struct ended_view *v, const struct process_exit *m);

/* A record says the same as the message of its end. */
struct process_exit cloudflare_exit_of(const struct process_info *p);

/* Answers with a list: `add` appends each process or terminal. */
void cloudflare_list(struct call *c, const void *in,
                     void (*add)(struct buf *rows, const struct process_info *p));
/* The terminal that the path names; or the call is answered. */
void cloudflare_find_terminal(struct call *c, const void *in,
                              void (*then)(struct call *c, const struct process_info *p));

#endif
