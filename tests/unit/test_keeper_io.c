#include "unit.h"

#include "keeper/cgroup.h"
#include "keeper/io.h"

TEST(the_weight_follows_the_cpu_limit)
{
    CHECK_INT(io_weight(2000), 100);
    CHECK_INT(io_weight(4000), 200);
    CHECK_INT(io_weight(10), 1);
    CHECK_INT(io_weight(1024000), 10000);
}

TEST(a_limit_is_for_both_directions_and_can_be_none)
{
    char line[IO_LINE_MAX];

    io_line(line, 7, 3, 10 << 20);
    CHECK_STR(line, "7:3 rbps=10485760 wbps=10485760");
    io_line(line, 259, 0, 0);
    CHECK_STR(line, "259:0 rbps=max wbps=max");
}

TEST(a_limit_that_the_host_cannot_give_is_refused)
{
    struct keeper k = {0};
    struct err e;

    CHECK_INT(io_check(&k, 0, &e), 0);
    CHECK_INT(io_check(&k, 1, &e), -1);
    CHECK_INT(e.kind, ERR_UNSUPPORTED);
    CHECK_HAS(e.msg, "cove doctor");
    k.cgroups.io = true; /* shared, but not limited */
    CHECK_INT(io_check(&k, 1, &e), -1);
    k.cgroups.io_max = true;
    CHECK_INT(io_check(&k, 1, &e), 0);
}

TEST(words_of_a_list_are_whole)
{
    CHECK(cgroup_has_word("cpuset cpu io memory\n", "io"));
    CHECK(cgroup_has_word("io", "io"));
    CHECK(!cgroup_has_word("cpuset iocost\n", "io"));
    CHECK(!cgroup_has_word("", "io"));
}
