#include "unit.h"

#include "cli/client/client.h"
#include "cli/client/path.h"

TEST(a_url_has_only_host_and_port)
{
    /* clang-format off */
    static const struct { const char *url, *host, *port; } good[] = {
        {"http://127.0.0.1:7878",  "127.0.0.1", "7878"},
        {"http://127.0.0.1:7878/", "127.0.0.1", "7878"},
        {"http://example.org",     "example.org", "80"},
        {"localhost:1",            "localhost", "1"},
        {"http://[::1]:8080",      "::1", "8080"},
        {"http://[fe80::1]",       "fe80::1", "80"},
    };
    static const char *const bad[] = {
        "", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536", "http://h:x",
        "http://h:80/path", "http://h?x", "https://h", "http://h:123456789", "ftp://h",
    };
    /* clang-format on */
    struct server s;
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_INT(server_parse_url(&s, good[i].url, &e), 0);
        CHECK_STR(s.host, good[i].host);
        CHECK_STR(s.port, good[i].port);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_INT(server_parse_url(&s, bad[i], &e), -1);
}

TEST(a_key_from_the_environment_is_checked)
{
    struct server s;
    struct err e;

    setenv("COVE_URL", "http://h:1", 1);
    setenv("COVE_API_KEY", "cove_abc\n", 1);
    CHECK_INT(server_find(&s, &e), 0);
    CHECK_STR(s.key, "cove_abc");
    setenv("COVE_API_KEY", "a b", 1);
    CHECK_INT(server_find(&s, &e), -1);
    setenv("COVE_API_KEY", "a\rX-Evil: 1", 1);
    CHECK_INT(server_find(&s, &e), 0);
    CHECK_STR(s.key, "a");
    setenv("COVE_API_KEY", "", 1);
    CHECK_INT(server_find(&s, &e), -1);
}

TEST(names_are_encoded_in_the_path)
{
    char p[PATH_TEXT_MAX];

    CHECK_STR(path_sandbox(p, "abc", ""), "/v1/sandboxes/abc");
    CHECK_STR(path_sandbox(p, "../x?y#z\r\n", "exec"),
              "/v1/sandboxes/%2E%2E%2Fx%3Fy%23z%0D%0A/exec");
    CHECK_STR(path_process(p, "a", "b/c", "stdin?close=1"),
              "/v1/sandboxes/a/processes/b%2Fc/stdin?close=1");
    CHECK_STR(path_query(p, "/v1/x?a=1", "cursor", "a&b"), "/v1/x?a=1&cursor=a%26b");
    CHECK_STR(path_query(p, "/v1/x?a=1", "cursor", NULL), "/v1/x?a=1");
}

TEST(a_name_that_is_too_long_is_cut)
{
    char p[PATH_TEXT_MAX], name[10000];

    memset(name, '/', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK(strlen(path_process(p, name, name, "signal")) < PATH_TEXT_MAX);
}
