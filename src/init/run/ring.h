/* ring.h - the newest bytes that a process printed.
 *
 * Both streams share one ring, in the order in which they were read. A position counts every
 * byte ever added, so it means the same after eviction, growth and ring_free(). Memory grows
 * with the output: a silent process has none, and all rings together stay below a budget. */
#ifndef INIT_RUN_RING_H
#define INIT_RUN_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MIN (4u << 10)
#define RING_MAX (64u << 20)
#define RING_DEFAULT (1u << 20)
#define RING_EVICT (64u << 10) /* bytes evicted at a time when the ring is full */
#define RING_MARK_BYTES 32u    /* a ring of n bytes changes stream n/32 times, then evicts */

struct ring;

/* What all rings may use together. */
struct ring_budget {
    size_t used, max;
    /* Frees another ring than `r` when the budget is short; false: there is none. May be
     * NULL. */
    bool (*reclaim)(struct ring_budget *b, const struct ring *r);
};

struct ring {
    char *mem;       /* cap bytes, cap a power of two: position & (cap - 1) is the place */
    size_t cap, max; /* bytes now, and at most */
    uint64_t first, end;
    uint64_t *marks; /* circular: position << 1 | is_stderr, wherever the stream changes */
    size_t mark_cap, mark_at, nmarks;
    struct ring_budget *budget; /* borrowed for the life of the ring */
};

/* `max` is brought into RING_MIN..RING_MAX and up to a power of two. */
void ring_init(struct ring *r, size_t max, struct ring_budget *budget);
/* Drops the bytes, keeps the positions; may be used again. */
void ring_free(struct ring *r);

/* Where the next bytes go, and how many fit there in one piece. With little room it grows, or
 * evicts bytes before `keep`; 0 when neither helps: the reader at `keep` must move on first. */
size_t ring_room(struct ring *r, uint64_t keep, char **ret);
/* `n` bytes of `stream` (INIT_STDOUT or INIT_STDERR) were written into the room. */
void ring_added(struct ring *r, unsigned stream, size_t n);

/* The bytes from `pos` (first..end) on that lie in one piece and belong to one
 * stream; 0 at the end. *ret points into the ring until the next ring_room(). */
size_t ring_look(const struct ring *r, uint64_t pos, unsigned *ret_stream, const char **ret);

#endif
