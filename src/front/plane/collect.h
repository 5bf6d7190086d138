/* collect.h - the output of one stream, up to a maximum: its beginning and its end.
 *
 * As long as everything fits everything is kept. Beyond that the first half and
 * the last half stay, cut between characters, and the number of bytes lost in the
 * middle is known. */
#ifndef FRONT_PLANE_COLLECT_H
#define FRONT_PLANE_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct collect {
    struct buf head, tail; /* the tail, once full, is a ring that begins at tail_at */
    size_t head_max, tail_max, tail_at;
    uint64_t total; /* bytes ever added */
    size_t cut_at;  /* after collect_end(): where in the kept bytes the gap is */
};

void collect_init(struct collect *c, size_t max);
void collect_free(struct collect *c);
/* -1 when out of memory. */
int collect_add(struct collect *c, const char *p, size_t n);
/* The bytes of memory that it needs for `n` bytes more. */
size_t collect_need(const struct collect *c, size_t n);
/* No memory for more: what is kept now is the maximum. */
void collect_stop(struct collect *c);
/* Joins both halves in `head`. Returns how many bytes were dropped. */
uint64_t collect_end(struct collect *c);

#endif
