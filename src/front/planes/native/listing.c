/* listing.c - see listing.h. */
#include "front/planes/native/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "front/plane/surface.h"

#define TIME_DIGITS 16

/* clang-format off */
static const struct json_field query_fields[] = {
    {"limit", JSON_FIELD_U64, offsetof(struct listing_page, limit), 1, LISTING_LIMIT_MAX, false, "Maximum number of rows. Default: all."},
    {"cursor", JSON_FIELD_STR, offsetof(struct listing_page, cursor), 1, LISTING_CURSOR_MAX, false, "next_cursor of the previous page."},
};
/* clang-format on */
const struct surface_input listing_query = {SURFACE_INPUT(query_fields, struct listing_page)};

static void drop(void *state)
{
    buf_free(&((struct listing *)state)->rows);
}

static int read_cursor(struct listing *l, const char *cursor, struct err *e)
{
    char time[TIME_DIGITS + 1] = "";

    if (cursor == NULL)
        return 0;
    if (strlen(cursor) > TIME_DIGITS) {
        memcpy(time, cursor, TIME_DIGITS);
        l->after_ms = strtoull(time, NULL, 16);
    }
    if (strspn(time, "0123456789abcdef") != TIME_DIGITS)
        return err_set(e, ERR_INVALID, "cursor: expected next_cursor of the previous page");
    str_fmt(l->after, sizeof(l->after), "%s", cursor + TIME_DIGITS);
    return 0;
}

struct listing *listing_new(struct call *c, const struct resource *of,
                            const struct listing_page *page)
{
    struct listing *l = call_state(c, sizeof(*l), drop);
    struct err e;

    l->c = c;
    l->of = of;
    buf_init(&l->rows, of->list_max);
    if (page != NULL && read_cursor(l, page->cursor, &e) < 0) {
        call_fail(c, &e);
        return NULL;
    }
    l->limit = page != NULL ? page->limit : 0;
    call_expect(c, &call_pending, NULL);
    return l;
}

static bool is_on_page(struct listing *l, const char *id, uint64_t at_ms)
{
    if (l->after[0] != '\0' && at_ms == l->after_ms && strcmp(id, l->after) == 0) {
        /* Rows so far have the same millisecond and were on that page. From here on the order
         * counts, whatever the clock did. */
        buf_clear(&l->rows);
        l->count = l->after_ms = 0;
        l->more = false;
        return false;
    }
    if (at_ms < l->after_ms)
        return false;
    l->more = l->limit != 0 && l->count == l->limit;
    if (l->more)
        return false;
    l->count++;
    str_fmt(l->last, sizeof(l->last), "%0*llx%s", TIME_DIGITS, (unsigned long long)at_ms, id);
    return true;
}

void listing_add(struct listing *l, const char *id, uint64_t at_ms, const void *info)
{
    _Alignas(max_align_t) char view[RESOURCE_VIEW_MAX];

    if (l->c->r == NULL || !is_on_page(l, id, at_ms))
        return;
    l->of->view(view, info);
    shape_append(&l->rows, l->of->shape, view);
}

void resource_reply(struct call *c, const struct resource *r, const void *info, const struct err *e)
{
    _Alignas(max_align_t) char view[RESOURCE_VIEW_MAX];

    if (!call_got(c, e))
        return;
    r->view(view, info);
    call_reply_shape(c, r->shape, view);
}

void listing_done(void *arg, const struct err *e)
{
    struct listing *l = arg;
    struct listing_view v = {shape_list(&l->rows), l->more ? l->last : NULL};

    if (!call_told(l->c))
        return;
    if (e != NULL)
        call_fail(l->c, e);
    else
        call_reply_shape(l->c, l->of->list, &v);
}
