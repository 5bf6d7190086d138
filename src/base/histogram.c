/* histogram.c - see histogram.h. */
#include "base/histogram.h"

/* clang-format off */
const uint64_t histogram_bounds_us[HISTOGRAM_CLASSES] = {
    100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 10000000,
};
/* clang-format on */

void histogram_add(struct histogram *h, uint64_t us)
{
    size_t i = 0;

    while (i < HISTOGRAM_CLASSES && us > histogram_bounds_us[i])
        i++;
    h->of[i]++;
    h->n++;
    h->sum_us += us;
}
