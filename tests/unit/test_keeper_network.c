#include "unit.h"

#include <fcntl.h>
#include <stdio.h>

#include "keeper/network.h"
#include "keeper/network/firewall.h"
#include "keeper/network/resolvers.h"

TEST(a_chain_allows_before_it_denies_and_holds_only_numbers)
{
    autobuf struct buf list = BUF_INIT(WIRE_RULES_BYTES), out = BUF_INIT(4096);
    struct wire_bytes rules;

    rules_add(&list, &(struct wire_rule){.deny = true});
    rules_add(&list, &(struct wire_rule){.to = {.addr = 0xc0000200, .prefix = 24}});
    rules_add(&list, &(struct wire_rule){.to = {0xc0000207, 80, 81, 32}});
    rules = (struct wire_bytes){buf_data(&list), (uint32_t)list.len};
    firewall_text(&out, "cove_t sandbox_7", &rules);
    CHECK_STR(buf_cstr(&out),
              "add rule inet cove_t sandbox_7 ct original ip daddr 192.0.2.0/24 return\n"
              "add rule inet cove_t sandbox_7 ct original ip daddr 192.0.2.7 meta l4proto "
              "{ tcp, udp } ct original proto-dst 80-81 return\n"
              "add rule inet cove_t sandbox_7 ct original ip daddr 0.0.0.0/0 jump refuse\n");
}

TEST(resolvers_are_addresses_that_another_machine_can_reach)
{
    uint32_t all[2];
    struct err e;

    CHECK_INT(resolvers_parse("", all, 2, &e), 0);
    CHECK_INT(resolvers_parse("192.0.2.1,10.0.0.53", all, 2, &e), 2);
    CHECK_INT(all[1], 0x0a000035);
    CHECK_INT(resolvers_parse("127.0.0.53", all, 2, &e), -1);
    CHECK_INT(resolvers_parse("192.0.2.1,", all, 2, &e), 1);
    CHECK_INT(resolvers_parse(",192.0.2.1", all, 2, &e), -1);
    CHECK_INT(resolvers_parse("dns.example", all, 2, &e), -1);
    CHECK_INT(resolvers_parse("1.1.1.1,2.2.2.2,3.3.3.3", all, 2, &e), -1);
    CHECK_HAS(e.msg, "more than 2");
}

TEST(a_resolver_on_the_loopback_is_skipped)
{
    char path[] = "/tmp/cove-resolv-XXXXXX";
    static const char text[] =
        "# comment\nsearch example\nnameserver 127.0.0.53\nnameserver ::1\n"
        "nameserver 192.0.2.53 # x\n nameserver 192.0.2.54\nnameserver 192.0.2.55\n";
    autofd int fd = mkstemp(path);
    uint32_t all[2];

    CHECK_INT(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    CHECK_INT(resolvers_read(path, all, 2), 2);
    CHECK_INT(all[0], 0xc0000235);
    CHECK_INT(all[1], 0xc0000236);
    unlink(path);
    CHECK_INT(resolvers_read(path, all, 2), 0);
}

TEST(interface_name_and_address_follow_from_the_range)
{
    struct keeper k = {.tag = "abcdefgh", .network.subnet = 0x0ac80000};
    struct sandbox sb = {.k = &k, .rec = {.range = NETWORK_RANGES - 1, .network = NETWORK_EGRESS}};
    char name[IFNAMSIZ];

    network_name(&sb, name);
    CHECK_STR(name, "cvabcdefgh3839");
    CHECK_INT(network_address(&sb), 0x0ac80000 + 3840);
    sb.rec.network = 0;
    CHECK_INT(network_address(&sb), 0);
    CHECK_STR(network_mode(0), "none");
    CHECK_STR(network_mode(NETWORK_EGRESS | NETWORK_RULED), "egress");
}

TEST(egress_without_a_network_is_refused_with_the_reason)
{
    struct keeper k = {.network.why_not = "no way out"};
    uint32_t bits = 99;
    struct err e;

    CHECK_INT(network_choose(&k, "", &bits, &e), 0);
    CHECK_INT(bits, 0);
    CHECK_INT(network_choose(&k, "none", &bits, &e), 0);
    CHECK_INT(network_choose(&k, "egress", &bits, &e), -1);
    CHECK_HAS(e.msg, "no way out");
    CHECK_INT(network_choose(&k, "bridge", &bits, &e), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    k.network.egress = true;
    CHECK_INT(network_choose(&k, "", &bits, &e), 0);
    CHECK_INT(bits, NETWORK_EGRESS);
}
