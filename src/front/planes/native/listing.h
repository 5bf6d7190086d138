/* listing.h - things that a sandbox has several of (processes, terminals, sessions and their
 * commands), shown one by one or as a list: all of them, or a page.
 *
 * A cursor names the last row of the previous page, by its time and its id. If that row was
 * removed meanwhile, the next page begins with rows that are as old or newer: a row may be
 * listed twice then, and none is left out. */
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
                      "Pass it as `cursor` to get the next page; null on the last page.", SHAPE_NULLABLE}
/* clang-format on */

/* One kind of thing: how the engine's struct becomes what its shape shows. */
#define RESOURCE_VIEW_MAX 512u /* bytes of a view */
struct resource {
    const struct shape *shape, *list; /* of one; of a struct listing_view of them */
    size_t list_max;                  /* bytes of JSON of a list */
    /* Fills in a view, of RESOURCE_VIEW_MAX bytes, from the engine's struct. */
    void (*view)(void *view, const void *info);
};
/* Answers with one of them, or with the error. */
void resource_reply(struct call *c, const struct resource *r, const void *info,
                    const struct err *e);

struct listing {
    struct call *c;
    const struct resource *of;
    struct buf rows;
    uint64_t limit, count, after_ms;
    char after[PROCESS_ID_MAX + 1], last[LISTING_CURSOR_MAX + 1];
    bool more;
};

/* The state of the call, which expects the engine from now on. `page` NULL: all of them. NULL
 * for a bad cursor; the call is answered then. */
struct listing *listing_new(struct call *c, const struct resource *of,
                            const struct listing_page *page);
/* The next one, in the order in which they began; left out if it is on another page. */
void listing_add(struct listing *l, const char *id, uint64_t at_ms, const void *info);
/* An engine_done_cb: answers. */
void listing_done(void *arg, const struct err *e);

#endif
