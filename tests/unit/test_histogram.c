/* test_histogram.c - samples and their classes. */
#include "base/histogram.h"
#include "unit.h"

TEST(a_sample_is_counted_in_the_first_class_that_holds_it)
{
    struct histogram h = {0};

    histogram_add(&h, 0);
    histogram_add(&h, 100);
    histogram_add(&h, 101);
    histogram_add(&h, 5000);
    histogram_add(&h, 5001);
    histogram_add(&h, UINT32_MAX);
    CHECK_INT(h.of[0], 2);
    CHECK_INT(h.of[1], 1);
    CHECK_INT(h.of[5], 1);
    CHECK_INT(h.of[6], 1);
    CHECK_INT(h.of[HISTOGRAM_CLASSES], 1);
    CHECK_INT(h.n, 6);
    CHECK_INT(h.sum_us, 100 + 101 + 5000 + 5001 + (uint64_t)UINT32_MAX);
}

TEST(bounds_ascend)
{
    for (size_t i = 1; i < HISTOGRAM_CLASSES; i++)
        CHECK(histogram_bounds_us[i] > histogram_bounds_us[i - 1]);
}
