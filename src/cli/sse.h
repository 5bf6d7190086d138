/* sse.h - server-sent events, read as they arrive (WHATWG HTML, 9.2.6). */
#ifndef CLI_SSE_H
#define CLI_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SSE_EVENT_MAX (4u << 20) /* data of one event: more than the server ever sends */
#define SSE_NAME_MAX 64

struct sse {
    struct buf line, data;
    char event[SSE_NAME_MAX]; /* "message" if the server named none */
    char id[SSE_NAME_MAX];    /* the last one given, kept from event to event */
    bool after_cr, has_data;
};

void sse_init(struct sse *s);
void sse_free(struct sse *s);

/* Calls `each` for every event that is complete; its failure ends the feeding.
 * `data` is borrowed for the call. */
int sse_feed(struct sse *s, const char *p, size_t n,
             int (*each)(void *arg, const struct sse *s, const char *data, size_t len,
                         struct err *e),
             void *arg, struct err *e);

#endif
