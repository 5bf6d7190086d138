#include "unit.h"

#include "base/etag.h"

TEST(a_tag_changes_with_each_of_its_parts)
{
    struct etag_parts p = {1, 2, 3, 4}, q;
    char a[ETAG_MAX], b[ETAG_MAX];

    etag_make(&p, a);
    CHECK_STR(a, "\"1-2-3-4\"");
    for (int i = 0; i < 4; i++) {
        q = p;
        ((uint64_t *)&q)[i] = UINT64_MAX;
        etag_make(&q, b);
        CHECK(strcmp(a, b) != 0);
    }
}

TEST(a_tag_is_found_in_a_list_as_it_is_and_never_weakly)
{
    CHECK(etag_listed("\"a\"", "\"a\""));
    CHECK(etag_listed("\"x\", \"a\" ,\"y\"", "\"a\""));
    CHECK(etag_listed("*", "\"a\""));
    CHECK(etag_listed(" , ,\"a\"", "\"a\""));
    CHECK(!etag_listed("W/\"a\"", "\"a\""));
    CHECK(!etag_listed("\"ab\"", "\"a\""));
    CHECK(!etag_listed("", "\"a\""));
    CHECK(!etag_listed(",,,", "\"a\""));
}
