#include "unit.h"

#include "keeper/host.h"

#define MiB(n) ((uint64_t)(n) << 20)

TEST(the_reserve_is_a_sixteenth_of_the_host_within_bounds)
{
    CHECK_INT(memory_reserve(0, MiB(16384)), MiB(1024));
    CHECK_INT(memory_reserve(0, MiB(2048)), MEMORY_RESERVE_MIN);
    CHECK_INT(memory_reserve(0, MiB(512)), MiB(128)); /* at most a quarter */
    CHECK_INT(memory_reserve(0, MiB(1024) * 1024), MEMORY_RESERVE_MAX);
    CHECK_INT(memory_reserve(MiB(10), MiB(16384)), MiB(10));
}

TEST(creates_are_refused_below_a_part_of_the_limit_within_bounds)
{
    CHECK_INT(memory_low(MiB(8192)), MiB(256));
    CHECK_INT(memory_low(MiB(128)), MEMORY_LOW_MIN);
    CHECK_INT(memory_low(MiB(1024) * 1024), MEMORY_LOW_MAX);
}

TEST(without_a_group_of_its_own_memory_refuses_nothing)
{
    struct keeper k = {0};
    struct err e;

    CHECK_INT(memory_check(&k, &e), 0);
    k.memory = (struct memory_reserve){.on = true, .low = 2, .left = 1, .seen_ms = UINT64_MAX / 2};
    CHECK_INT(memory_check(&k, &e), -1);
    CHECK_INT(e.kind, ERR_UNAVAILABLE);
}
