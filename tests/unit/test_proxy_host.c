/* test_proxy_host.c - which Host headers are ours. */
#include "unit.h"

#include "base/own.h"
#include "front/proxy/host.h"

TEST(addresses_loopback_names_and_the_domain_are_ours)
{
    static const char *const ours[] = {"",
                                       "127.0.0.1",
                                       "127.0.0.1:7878",
                                       "10.1.2.3",
                                       "[::1]:80",
                                       "[fe80::1]",
                                       "localhost",
                                       "LOCALHOST:1",
                                       "localhost.",
                                       "3000-abc.localhost:7878",
                                       "box.example",
                                       "3000-abc.box.example:80",
                                       "a.b.Box.Example",
                                       "box.example.:80",
                                       "one.test",
                                       "x.two.test:1"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!host_is_ours(ours[i], "box.example:8080", "one.test, two.test"))
            fail_msg("'%s' is not ours", ours[i]);
}

TEST(no_other_name_is_ours)
{
    static const char *const others[] = {"evil.example",
                                         "notlocalhost",
                                         "localhost.evil.example",
                                         "127.0.0.1.evil.example",
                                         "abox.example",
                                         "box.example.evil.example",
                                         "3000-abc.evil.example",
                                         "sandbox.evil.example",
                                         "box",
                                         "example",
                                         "aone.test",
                                         ".",
                                         ":80",
                                         "[]",
                                         "[evil.example]",
                                         "127.1",
                                         "0x7f000001",
                                         "*"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (host_is_ours(others[i], "box.example:8080", "one.test, two.test"))
            fail_msg("'%s' is ours", others[i]);
}

TEST(without_a_domain_only_loopback_and_addresses_are_ours)
{
    char longest[300];

    CHECK(host_is_ours("localhost", "", ""));
    CHECK(!host_is_ours("evil.example", "", ""));
    CHECK(!host_is_ours("evil.example", "", ",, ,"));
    CHECK(host_is_ours("evil.example", "", "a,*"));
    memset(longest, 'a', sizeof(longest));
    strcpy(longest + 280, ".localhost");
    CHECK(!host_is_ours(longest, "", ""));
}
