/* The reserve of the disks: how much of a pool is allocated ahead. */
#include "unit.h"

#include "keeper/host.h"

#define G (1ull << 30)

TEST(the_reserve_is_an_eighth_of_the_pool_within_bounds)
{
    CHECK(reserve_wanted(0, 24 * G) == 3 * G);
    CHECK(reserve_wanted(0, 9 * G) == RESERVE_MIN);
    CHECK(reserve_wanted(0, 1000 * G) == RESERVE_MAX);
}

TEST(a_pool_smaller_than_the_reserve_is_allocated_whole)
{
    CHECK(reserve_wanted(0, G) == G);
    CHECK(reserve_wanted(8 * G, 3 * G) == 3 * G);
}

TEST(a_configured_reserve_is_used_but_not_below_the_minimum)
{
    CHECK(reserve_wanted(512ull << 20, 100 * G) == 512ull << 20);
    CHECK(reserve_wanted(1, 100 * G) == RESERVE_LEAST);
}
