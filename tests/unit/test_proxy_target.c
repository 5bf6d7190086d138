/* test_proxy_target.c - hosts that name a sandbox, and those that do not. */
#include "unit.h"

#include "base/own.h"
#include "front/proxy/target.h"

TEST(a_host_names_a_port_and_a_sandbox)
{
    static const char *const good[] = {"3000-abc123.localhost", "3000-abc123.localhost:7878",
                                       "3000-abc123-cove.e2b.example", "3000-ABC123.e2b.example",
                                       "3000-abc123-a-b-c.x"};
    struct proxy_target t;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(proxy_target_host(good[i], &t));
        CHECK_INT(t.port, 3000);
        CHECK_STR(t.id, "abc123");
    }
    CHECK(proxy_target_host("65535-a.b", &t));
    CHECK(proxy_target_host("1-a.b", &t));
}

TEST(other_hosts_name_none)
{
    static const char *const bad[] = {"",
                                      "localhost",
                                      "localhost:7878",
                                      "127.0.0.1:3000",
                                      "3000-abc",
                                      "3000-abc:80",
                                      "0-abc.x",
                                      "65536-abc.x",
                                      "-abc.x",
                                      "3000-.x",
                                      "3000--abc.x",
                                      "a3000-abc.x",
                                      "3000.abc-x",
                                      "+3-abc.x",
                                      "3000-a_b.x",
                                      "[::1]:3000",
                                      "00000000000003-abc.x",
                                      "1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.x"};
    struct proxy_target t;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!proxy_target_host(bad[i], &t));
}
