/* listing.h - an answer that is one list, put together as the engine tells its rows: all of
 * them, or a page.
 *
 * A cursor names the last row of the page before, by its time and its id. If that row is
 * gone meanwhile the next page begins with what is as old or younger: a row may be told
 * twice then, and none is left out. */
#ifndef FRONT_PLANES_NATIVE_LISTING_H
#define FRONT_PLANES_NATIVE_LISTING_H

#include "base/buf.h"
#include "front/engine/process.h"
#include "front/plane/call.h"
#include "front/plane/shape.h"

#define LISTING_LIMIT_MAX 1000
#define LISTING_CURSOR_MAX (16 + PROCESS_ID_MAX)

/* The query of such a list. */
struct listing_page {
    const char *cursor;
    uint64_t limit; /* 0: all */
};
extern const struct surface_input listing_query;

/* What the shape of such an answer is taken from. */
struct listing_view {
    struct shape_bytes rows;
    const char *next;
};
/* clang-format off */
#define LISTING_NEXT {"next_cursor", SHAPE_STR, offsetof(struct listing_view, next), \
                      "Give it as `cursor` for the next page; null: this was the last.", SHAPE_NULLABLE}
/* clang-format on */

struct listing {
    struct call *c;
    const struct shape *of;
    struct buf rows; /* shape_append() here, after listing_takes() */
    uint64_t limit, count, after_ms;
    char after[PROCESS_ID_MAX + 1], last[LISTING_CURSOR_MAX + 1];
    bool more;
};

/* The state of the call, which expects the engine from now on. `page` NULL: all of it. NULL
 * when out of memory or for a bad cursor; the call is answered then. */
struct listing *listing_new(struct call *c, const struct shape *of, size_t bytes_max,
                            const struct listing_page *page);
/* The next row is this one, in the order in which they began: is it on the page? */
bool listing_takes(struct listing *l, const char *id, uint64_t at_ms);
/* An engine_done_cb: answers. */
void listing_done(void *arg, const struct err *e);

#endif
