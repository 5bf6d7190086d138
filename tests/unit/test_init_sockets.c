#include "unit.h"

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
