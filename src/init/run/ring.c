/* ring.c - see ring.h. */
#include "init/run/ring.h"

#include <stdlib.h>
#include <string.h>

#include "wire/init.h"

#define MARKS_FIRST 16u

void ring_init(struct ring *r, size_t max, struct ring_budget *budget)
{
    *r = (struct ring){.max = RING_MIN, .budget = budget};
    while (r->max < max && r->max < RING_MAX)
        r->max *= 2;
}

void ring_free(struct ring *r)
{
    r->budget->used -= r->cap;
    free(r->mem);
    free(r->marks);
    r->mem = NULL;
    r->marks = NULL;
    r->cap = r->mark_cap = r->mark_at = r->nmarks = 0;
    r->first = r->end;
}

static uint64_t mark(const struct ring *r, size_t i)
{
    return r->marks[(r->mark_at + i) & (r->mark_cap - 1)];
}

static uint64_t mark_pos(const struct ring *r, size_t i)
{
    return mark(r, i) >> 1;
}

static void evict(struct ring *r, uint64_t to)
{
    r->first = to;
    while (r->nmarks > 1 && mark_pos(r, 1) <= to) {
        r->mark_at = (r->mark_at + 1) & (r->mark_cap - 1);
        r->nmarks--;
    }
}

/* The smallest ring is always granted: a process that could print nothing at all would hang,
 * and at most PROCS_RUNNING_MAX run. */
static bool grow(struct ring *r)
{
    struct ring_budget *b = r->budget;
    size_t cap = r->cap == 0 ? RING_MIN : r->cap * 4;
    char *mem;

    cap = cap < r->max ? cap : r->max;
    if (cap == r->cap)
        return false;
    while (b->used + cap - r->cap > b->max && b->reclaim != NULL && b->reclaim(b, r))
        ;
    if (r->cap > 0 && b->used + cap - r->cap > b->max)
        return false;
    mem = malloc(cap);
    if (mem == NULL)
        return false;
    for (uint64_t pos = r->first; pos < r->end;) {
        size_t from = pos & (r->cap - 1), at = pos & (cap - 1), n = r->end - pos;

        n = n < r->cap - from ? n : r->cap - from;
        n = n < cap - at ? n : cap - at;
        memcpy(mem + at, r->mem + from, n);
        pos += n;
    }
    free(r->mem);
    r->mem = mem;
    b->used += cap - r->cap;
    r->cap = cap;
    return true;
}

static bool grow_marks(struct ring *r)
{
    size_t cap = r->mark_cap == 0 ? MARKS_FIRST : r->mark_cap * 2;
    uint64_t *marks;

    if (cap > r->max / RING_MARK_BYTES)
        return false;
    marks = malloc(cap * sizeof(*marks));
    if (marks == NULL)
        return false;
    for (size_t i = 0; i < r->nmarks; i++)
        marks[i] = mark(r, i);
    free(r->marks);
    r->marks = marks;
    r->mark_cap = cap;
    r->mark_at = 0;
    return true;
}

/* There must be a free mark before bytes are read: they may be of the other stream, and then
 * it is too late to refuse them. */
static bool have_mark(struct ring *r, uint64_t keep)
{
    if (r->nmarks < r->mark_cap || grow_marks(r))
        return true;
    if (r->nmarks < 2 || mark_pos(r, 1) > keep)
        return false;
    evict(r, mark_pos(r, 1));
    return true;
}

static void have_bytes(struct ring *r, uint64_t keep)
{
    size_t used = r->end - r->first, want;
    uint64_t to;

    while (r->cap - used <= r->cap / 4 && grow(r))
        ;
    want = r->cap / 4 < RING_EVICT ? r->cap / 4 : RING_EVICT;
    if (r->cap - used >= want)
        return;
    to = r->end + want - r->cap;
    to = to < keep ? to : keep;
    if (to > r->first)
        evict(r, to);
}

size_t ring_room(struct ring *r, uint64_t keep, char **ret)
{
    size_t at, left;

    if (!have_mark(r, keep))
        return 0;
    have_bytes(r, keep);
    if (r->cap == 0)
        return 0;
    at = r->end & (r->cap - 1);
    left = r->cap - (r->end - r->first);
    *ret = r->mem + at;
    return left < r->cap - at ? left : r->cap - at;
}

void ring_added(struct ring *r, unsigned stream, size_t n)
{
    uint64_t is_stderr = stream == INIT_STDERR;

    if (n > 0 && (r->nmarks == 0 || (mark(r, r->nmarks - 1) & 1) != is_stderr)) {
        r->marks[(r->mark_at + r->nmarks) & (r->mark_cap - 1)] = r->end << 1 | is_stderr;
        r->nmarks++;
    }
    r->end += n;
}

size_t ring_look(const struct ring *r, uint64_t pos, unsigned *ret_stream, const char **ret)
{
    size_t at, n, m = 0, hi = r->nmarks;
    uint64_t end;

    if (pos < r->first || pos >= r->end)
        return 0;
    while (hi - m > 1) { /* m: the last mark at or before pos */
        size_t mid = m + (hi - m) / 2;

        if (mark_pos(r, mid) <= pos)
            m = mid;
        else
            hi = mid;
    }
    end = m + 1 < r->nmarks ? mark_pos(r, m + 1) : r->end;
    at = pos & (r->cap - 1);
    n = end - pos;
    *ret_stream = mark(r, m) & 1 ? INIT_STDERR : INIT_STDOUT;
    *ret = r->mem + at;
    return n < r->cap - at ? n : r->cap - at;
}
