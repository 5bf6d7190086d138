#include "unit.h"

#include "http/route.h"

struct row {
    struct route route;
    int value;
};

/* clang-format off */
static struct row rows[] = {
    {{"GET",    "/v1/sandboxes"},                            1},
    {{"POST",   "/v1/sandboxes"},                            2},
    {{"GET",    "/v1/sandboxes/{id}"},                       3},
    {{"DELETE", "/v1/sandboxes/{id}"},                       4},
    {{"POST",   "/v1/sandboxes/{id}/processes/{pid}/signal"}, 5},
    {{"GET",    "/"},                                        6},
    {{"PUT",    "/v1/box/{id}/file/{path...}"},              7},
};
/* clang-format on */

static struct route_match m;
static char allow[64];
static struct err e;

static int find(const char *method, const char *path)
{
    route_prepare(rows, ARRAY_LEN(rows), sizeof(rows[0]));
    if (route_find(rows, ARRAY_LEN(rows), sizeof(rows[0]), method, path, &m, allow, sizeof(allow),
                   &e) < 0)
        return -(int)e.kind;
    return rows[m.row].value;
}

TEST(a_row_is_found_by_method_and_path)
{
    CHECK_INT(find("GET", "/v1/sandboxes"), 1);
    CHECK_INT(find("POST", "/v1/sandboxes"), 2);
    CHECK_INT(find("GET", "/"), 6);
    CHECK_INT(find("DELETE", "/v1/sandboxes/abc"), 4);
    CHECK_INT(m.nparams, 1);
    CHECK_STR(m.params[0], "abc");
    CHECK_INT(find("POST", "/v1/sandboxes/a/processes/b/signal"), 5);
    CHECK_INT(m.nparams, 2);
    CHECK_STR(m.params[1], "b");
}

TEST(a_row_for_get_serves_head)
{
    CHECK_INT(find("HEAD", "/v1/sandboxes/x"), 3);
}

TEST(a_wrong_method_lists_the_allowed_ones)
{
    CHECK_INT(find("PUT", "/v1/sandboxes/x"), -ERR_METHOD);
    CHECK_STR(allow, "GET, DELETE");
}

TEST(paths_that_only_resemble_a_row_are_not_found)
{
    CHECK_INT(find("GET", "/v1/sandboxes/"), -ERR_NOT_FOUND);
    CHECK_INT(find("GET", "/v1//sandboxes"), -ERR_NOT_FOUND);
    CHECK_INT(find("GET", "/v1/sandboxes/x/"), -ERR_NOT_FOUND);
    CHECK_INT(find("GET", "/v1/sandboxes/x/y"), -ERR_NOT_FOUND);
    CHECK_INT(find("GET", "/v1"), -ERR_NOT_FOUND);
    CHECK_INT(find("GET", ""), -ERR_NOT_FOUND);
    CHECK_INT(find("GET", "/v1/sandboxes/a/processes//signal"), -ERR_NOT_FOUND);
}

TEST(segments_are_decoded_once_before_they_are_compared)
{
    CHECK_INT(find("GET", "/v1/sandboxe%73/%41%20b%2525"), 3);
    CHECK_STR(m.params[0], "A b%25");
}

TEST(an_encoded_slash_or_nul_never_reaches_a_handler)
{
    CHECK_INT(find("GET", "/v1/sandboxes/a%2fb"), -ERR_INVALID);
    CHECK_INT(find("GET", "/v1/sandboxes/a%00"), -ERR_INVALID);
    CHECK_INT(find("GET", "/v1/sandboxes/a%0"), -ERR_INVALID);
    CHECK_INT(find("GET", "/v1/sandboxes/a%"), -ERR_INVALID);
    CHECK_INT(find("GET", "/v1/sandboxes/a%zz"), -ERR_INVALID);
}

TEST(the_rest_of_a_path_may_hold_slashes_encoded_or_not_and_may_be_empty)
{
    char rest[16];

    CHECK_INT(find("PUT", "/v1/box/x/file/a/b%2Fc%20"), 7);
    CHECK_STR(m.params[0], "x");
    CHECK_INT(route_rest(&m, rest, sizeof(rest), &e), 0);
    CHECK_STR(rest, "a/b/c ");
    CHECK_INT(find("PUT", "/v1/box/x/file/"), 7);
    CHECK_INT(route_rest(&m, rest, sizeof(rest), &e), 0);
    CHECK_STR(rest, "");
    CHECK_INT(find("PUT", "/v1/box/x/file/0123456789abcdef"), 7);
    CHECK_INT(route_rest(&m, rest, sizeof(rest), &e), -1);
    CHECK_INT(find("PUT", "/v1/box/x/file"), -ERR_NOT_FOUND);
    CHECK_INT(find("PUT", "/v1/box/x/file/a%00"), -ERR_INVALID);
    CHECK_INT(find("PUT", "/v1/box/a%2fb/file/x"), -ERR_INVALID);
    CHECK_INT(find("GET", "/v1/sandboxes"), 1);
    CHECK_INT(route_rest(&m, rest, sizeof(rest), &e), -1);
}

TEST(a_parameter_past_its_bound_is_refused)
{
    char path[ROUTE_PARAM_MAX + 64] = "/v1/sandboxes/";

    memset(path + 14, 'a', ROUTE_PARAM_MAX - 1);
    CHECK_INT(find("GET", path), 3);
    memset(path + 14, 'a', ROUTE_PARAM_MAX);
    CHECK_INT(find("GET", path), -ERR_INVALID);
}

TEST(a_query_value_is_decoded_with_plus_as_a_blank)
{
    char v[16];

    CHECK_INT(route_query("a=1&path=%2Fx+y&b", "path", v, sizeof(v), &e), 1);
    CHECK_STR(v, "/x y");
    CHECK_INT(route_query("a=1&path=&b", "path", v, sizeof(v), &e), 1);
    CHECK_STR(v, "");
    CHECK_INT(route_query("a=1&b", "b", v, sizeof(v), &e), 1);
    CHECK_STR(v, "");
    CHECK_INT(route_query("a%62=1", "ab", v, sizeof(v), &e), 1);
    CHECK_INT(route_query("aa=1&b=a=2", "a", v, sizeof(v), &e), 0);
    CHECK_INT(route_query("", "a", v, sizeof(v), &e), 0);
    CHECK_INT(route_query("&&=&", "a", v, sizeof(v), &e), 0);
}

TEST(a_query_value_given_twice_malformed_or_too_long_is_refused)
{
    char v[4];

    CHECK_INT(route_query("a=1&a=1", "a", v, sizeof(v), &e), -1);
    CHECK_INT(route_query("a=%4", "a", v, sizeof(v), &e), -1);
    CHECK_INT(route_query("a=%00", "a", v, sizeof(v), &e), -1);
    CHECK_INT(route_query("a=1234", "a", v, sizeof(v), &e), -1);
    CHECK_INT(route_query("a=123", "a", v, sizeof(v), &e), 1);
}
