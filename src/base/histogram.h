/* histogram.h - how often something took how long, in fixed classes of microseconds.
 *
 * A sample costs a few comparisons and no memory. The classes are those of a Prometheus histogram:
 * HISTOGRAM_CLASSES upper bounds, and one class above them. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_CLASSES 15u

struct histogram {
    uint64_t of[HISTOGRAM_CLASSES + 1]; /* samples per class */
    uint64_t n, sum_us;
};

/* Upper bounds of the classes, ascending; a sample on a bound is in its class. */
extern const uint64_t histogram_bounds_us[HISTOGRAM_CLASSES];

void histogram_add(struct histogram *h, uint64_t us);

#endif
