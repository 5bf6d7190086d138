/* collect.c - see collect.h. */
#include "front/plane/collect.h"

#include "base/str.h"

void collect_init(struct collect *c, size_t max)
{
    *c = (struct collect){.head_max = max - max / 2, .tail_max = max / 2};
    /* The tail is a queue: room to append before the oldest bytes leave. */
    buf_init(&c->head, max);
    buf_init(&c->tail, max);
}

void collect_free(struct collect *c)
{
    buf_free(&c->head);
    buf_free(&c->tail);
}

static int add_tail(struct collect *c, const char *p, size_t n)
{
    if (n >= c->tail_max) {
        buf_clear(&c->tail);
        return buf_add(&c->tail, p + n - c->tail_max, c->tail_max);
    }
    if (c->tail.len + n > c->tail_max)
        buf_consume(&c->tail, c->tail.len + n - c->tail_max);
    return buf_add(&c->tail, p, n);
}

int collect_add(struct collect *c, const char *p, size_t n)
{
    size_t room = c->head_max - c->head.len;
    size_t first = n < room ? n : room;

    c->total += n;
    if (buf_add(&c->head, p, first) < 0)
        return -1;
    return first < n ? add_tail(c, p + first, n - first) : 0;
}

uint64_t collect_end(struct collect *c)
{
    if (c->total > (uint64_t)c->head.len + c->tail.len) {
        /* Without this, cutting a text in the middle of a character would turn all of it into
         * base64. */
        size_t skip = 0;

        c->head.len = str_utf8_whole(buf_data(&c->head), c->head.len);
        while (skip < 3 && skip < c->tail.len && (buf_data(&c->tail)[skip] & 0xc0) == 0x80)
            skip++;
        buf_consume(&c->tail, skip);
    }
    c->cut_at = c->head.len;
    if (c->tail.len > 0)
        buf_add(&c->head, buf_data(&c->tail), c->tail.len);
    buf_free(&c->tail);
    return c->total - c->head.len;
}
