/* listing.h - an answer that is one list, put together as the engine tells its rows. */
#ifndef NATIVE_LISTING_H
#define NATIVE_LISTING_H

#include "base/buf.h"
#include "front/plane/call.h"
#include "front/plane/shape.h"

/* What the shape of such an answer is taken from. */
struct listing_view {
    struct shape_bytes rows;
};

struct listing {
    struct call *c;
    const struct shape *of;
    struct buf rows; /* shape_append() here */
};

/* The state of the call, which expects the engine from now on. NULL when out of memory;
 * the call is answered then. */
struct listing *listing_new(struct call *c, const struct shape *of, size_t bytes_max);
/* An engine_done_cb: answers. */
void listing_done(void *arg, const struct err *e);

#endif
