/* listing.c - see listing.h. */
#include "front/planes/native/listing.h"

static void drop(void *state)
{
    buf_free(&((struct listing *)state)->rows);
}

struct listing *listing_new(struct call *c, const struct shape *of, size_t bytes_max)
{
    struct listing *l = call_state(c, sizeof(*l), drop);

    if (l == NULL)
        return NULL;
    l->c = c;
    l->of = of;
    buf_init(&l->rows, bytes_max);
    call_expect(c, &call_pending, NULL);
    return l;
}

void listing_done(void *arg, const struct err *e)
{
    struct listing *l = arg;

    if (!call_told(l->c))
        return;
    if (e != NULL)
        call_fail(l->c, e);
    else
        call_reply_shape(l->c, l->of, &(struct listing_view){shape_list(&l->rows)});
}
