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

TEST(a_path_names_a_port_a_sandbox_and_a_token)
{
    struct proxy_target t;

    CHECK(proxy_target_path("/preview", "/preview/8080-abc-t0ken/x/y", &t));
    CHECK_STR(t.id, "abc");
    CHECK_INT(t.port, 8080);
    CHECK_STR(t.token, "t0ken");
    CHECK_INT(t.prefix, strlen("/preview/8080-abc-t0ken"));
    CHECK(proxy_target_path("/preview", "/preview/8080-abc", &t));
    CHECK_STR(t.token, "");
    CHECK(proxy_target_host("8080-abc-t0ken.localhost:7878", &t));
    CHECK_STR(t.token, "t0ken");
    CHECK_INT(t.prefix, 0);
}

TEST(other_paths_name_none)
{
    static const char *const bad[] = {"/preview",      "/preview/",           "/preview/abc",
                                      "/preview/8080", "/preview/8080-",      "/preview/0-abc",
                                      "/previews/1-a", "/preview/8080-A_b/x", "/x/8080-abc"};
    struct proxy_target t;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (proxy_target_path("/preview", bad[i], &t))
            fail_msg("'%s' names one", bad[i]);
}

TEST(a_token_of_any_length_fits_and_none_is_taken_for_a_shorter_one)
{
    char host[256] = "1-a-";
    struct proxy_target t;

    memset(host + 4, 'x', 200);
    strcpy(host + 204, ".b");
    CHECK(proxy_target_host(host, &t));
    CHECK_INT(strlen(t.token), PROXY_TOKEN_MAX);
}
