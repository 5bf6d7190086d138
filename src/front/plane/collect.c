/* collect.c - see collect.h. */
#include "front/plane/collect.h"

#include <string.h>

#include "base/str.h"

#define COLLECT_TAIL_LEAST 4096u

void collect_init(struct collect *c, size_t max)
{
    *c = (struct collect){.head_max = max - max / 2, .tail_max = max / 2};
    buf_init(&c->head, max);
    buf_init(&c->tail, c->tail_max);
}

void collect_free(struct collect *c)
{
    buf_free(&c->head);
    buf_free(&c->tail);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t collect_need(const struct collect *c, size_t n)
{
    return least(c->head.len + c->tail.len + n, c->head_max + c->tail_max);
}

/* A tail of some bytes always: the end of the output is worth most. */
void collect_stop(struct collect *c)
{
    size_t tail = c->tail.len > COLLECT_TAIL_LEAST ? c->tail.len : COLLECT_TAIL_LEAST;

    c->head_max = c->head.len;
    c->tail_max = least(c->tail_max, tail);
}

static int add_tail(struct collect *c, const char *p, size_t n)
{
    size_t fresh = least(n, c->tail_max - c->tail.len);

    if (fresh > 0 && buf_add(&c->tail, p, fresh) < 0)
        return -1;
    p += fresh;
    n -= fresh;
    if (n > c->tail_max) { /* the last bytes, at the place where they would have come to lie */
        c->tail_at = (c->tail_at + (n - c->tail_max)) % (c->tail_max > 0 ? c->tail_max : 1);
        p += n - c->tail_max;
        n = c->tail_max;
    }
    while (n > 0) {
        size_t some = least(n, c->tail_max - c->tail_at);

        memcpy(buf_data(&c->tail) + c->tail_at, p, some);
        c->tail_at = (c->tail_at + some) % c->tail_max;
        p += some;
        n -= some;
    }
    return 0;
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

/* Without this, cutting a text in the middle of a character would turn all of it
 * into base64. Returns how many bytes of the tail to skip. */
static size_t cut_between_characters(struct collect *c)
{
    size_t skip = 0;

    c->head.len = str_utf8_whole(buf_data(&c->head), c->head.len);
    while (skip < 3 && skip < c->tail.len &&
           (buf_data(&c->tail)[(c->tail_at + skip) % c->tail.len] & 0xc0) == 0x80)
        skip++;
    return skip;
}

uint64_t collect_end(struct collect *c)
{
    size_t skip = 0, at, first;

    if (c->total > (uint64_t)c->head.len + c->tail.len)
        skip = cut_between_characters(c);
    c->cut_at = c->head.len;
    if (c->tail.len > skip) {
        at = (c->tail_at + skip) % c->tail.len;
        first = least(c->tail.len - skip, c->tail.len - at);
        buf_add(&c->head, buf_data(&c->tail) + at, first);
        buf_add(&c->head, buf_data(&c->tail), c->tail.len - skip - first);
    }
    buf_free(&c->tail);
    c->tail_at = 0;
    return c->total - c->head.len;
}
