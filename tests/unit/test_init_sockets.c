#include "unit.h"

#include "init/syscalls/filters.h"
#include "init/syscalls/sockets.h"

TEST(only_netlink_packet_and_raw_sockets_count)
{
    char text[] = "protocol  size sockets  memory press maxhdr\n"
                  "PACKET    1600      2      -1   NI       0   no\n"
                  "RAWv6     1344     30      -1   NI       0   yes\n"
                  "UNIX      1152   5000      -1   NI       0   yes\n"
                  "RAW       1152    400      -1   NI       0   yes\n"
                  "TCP       2304   6000       0   no     192   yes\n"
                  "NETLINK   1096   1000      -1   NI       0   no\n";

    CHECK_INT(sockets_count(text), 1432);
}

TEST(a_malformed_text_counts_nothing)
{
    char empty[] = "", cut[] = "NETLINK", shorter[] = "NETLINK 1096", word[] = "RAW 1 many\n\n \n";

    CHECK_INT(sockets_count(empty), 0);
    CHECK_INT(sockets_count(cut), 0);
    CHECK_INT(sockets_count(shorter), 0);
    CHECK_INT(sockets_count(word), 0);
}

/* As Linux 6.18 writes them. */
TEST(joins_are_counted_once_for_each_socket)
{
    char v4[] = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"
                "1\tlo        :     3      V3\n"
                "\t\t\t\t010000E9     7 0:00000000\t\t0\n"
                "\t\t\t\t010000E0     1 0:00000000\t\t0\n";
    char v6[] = "1    lo              ff020000000000000000000000000001     1 0000000C 0\n"
                "2    a-long-name-12  ff010000000000000000000000000001    40 00000008 0\n";
    char anycast[] = "1    lo              00000000000000000000000000000001     2\n";
    char bad[] = "\t\n\n\t\t\tx y z\n1 2 3\n";

    CHECK_INT(sockets_count_joins(v4), 8);
    CHECK_INT(sockets_count_joins(v6), 41);
    CHECK_INT(sockets_count_joins(anycast), 2);
    CHECK_INT(sockets_count_joins(bad), 0);
}

TEST(listeners_share_what_may_wait)
{
    const uint64_t large = 1ull << 30, small = 16ull << 20;

    CHECK_INT(sockets_grant(128, 0, large), 128);
    CHECK_INT(sockets_grant(4096, 0, large), SOCKETS_WAITING_ONE);
    CHECK_INT(sockets_grant(-1, 0, large), SOCKETS_WAITING_ONE);
    CHECK_INT(sockets_grant(4096, 500, large), 12);
    CHECK_INT(sockets_grant(4096, SOCKETS_WAITING_MAX, large), SOCKETS_WAITING_REST);
    CHECK_INT(sockets_grant(4096, UINT32_MAX, large), SOCKETS_WAITING_REST);
    CHECK_INT(sockets_grant(1, SOCKETS_WAITING_MAX, large), 1);
    CHECK_INT(sockets_grant(0, 0, large), 0);
    CHECK_INT(sockets_grant(4096, 0, small), SOCKETS_WAITING_LEAST);
}

TEST(filters_beyond_the_sandboxs_own_are_counted)
{
    CHECK_INT(filters_in("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"), 0);
    CHECK_INT(filters_in("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t5\n"), 4);
    CHECK_INT(filters_in("Name:\tx\n"), 0);
    CHECK_INT(filters_in(""), 0);
}
