/* sse.h - incremental parser of server-sent events (WHATWG HTML, 9.2.6). */
#ifndef CLI_CLIENT_SSE_H
#define CLI_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SSE_EVENT_MAX (4u << 20) /* bytes of one event; the server sends less */
#define SSE_NAME_MAX 64

struct sse {
    struct buf line, data;
    char event[SSE_NAME_MAX]; /* "message" if the server named none */
    char id[SSE_NAME_MAX];    /* of the last event that had one */
    bool after_cr, has_data;
};

void sse_init(struct sse *s);
void sse_free(struct sse *s);

/* Parses more bytes and calls `each` for every complete event; stops if it returns -1.
 * `data` is borrowed for the call. */
int sse_feed(struct sse *s, const char *p, size_t n,
             int (*each)(void *arg, const struct sse *s, const char *data, size_t len,
                         struct err *e),
             void *arg, struct err *e);

#endif
