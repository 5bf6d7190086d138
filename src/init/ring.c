/* ring.c - see ring.h. */
#include "init/ring.h"

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

static void copy_out(const struct ring *r, char *to, size_t to_cap)
{
    for (uint64_t pos = r->first; pos < r->end;) {
        size_t from = pos & (r->cap - 1), at = pos & (to_cap - 1), n = r->end - pos;

        n = n < r->cap - from ? n : r->cap - from;
        n = n < to_cap - at ? n : to_cap - at;
        memcpy(to + at, r->mem + from, n);
        pos += n;
    }
}

/* The smallest ring is always granted: a process that could print nothing at
 * all would hang, and there are at most PROCS_RUNNING_MAX of those. */
static bool affordable(struct ring *r, size_t more)
{
    struct ring_budget *b = r->budget;

    while (b->used + more > b->max && b->reclaim != NULL && b->reclaim(b, r))
        ;
    return r->cap == 0 || b->used + more <= b->max;
}

static bool grow(struct ring *r)
{
    size_t cap = r->cap == 0 ? RING_MIN : r->cap * 4;
    char *mem;

    cap = cap < r->max ? cap : r->max;
    if (cap == r->cap || !affordable(r, cap - r->cap))
        return false;
    mem = malloc(cap);
    if (mem == NULL)
        return false;
    copy_out(r, mem, cap);
    free(r->mem);
    r->mem = mem;
    r->budget->used += cap - r->cap;
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

/* One free mark must be there before bytes are read: the read may be of the
 * other stream, and then it is too late to refuse. */
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

/* The last mark at or before pos. */
static size_t find_mark(const struct ring *r, uint64_t pos)
{
    size_t lo = 0, hi = r->nmarks;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (mark_pos(r, mid) <= pos)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

size_t ring_look(const struct ring *r, uint64_t pos, unsigned *ret_stream, const char **ret)
{
    size_t at, n, m;
    uint64_t end;

    if (pos < r->first || pos >= r->end)
        return 0;
    m = find_mark(r, pos);
    end = m + 1 < r->nmarks ? mark_pos(r, m + 1) : r->end;
    at = pos & (r->cap - 1);
    n = end - pos;
    *ret_stream = mark(r, m) & 1 ? INIT_STDERR : INIT_STDOUT;
    *ret = r->mem + at;
    return n < r->cap - at ? n : r->cap - at;
}
