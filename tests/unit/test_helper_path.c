#include "unit.h"

#include "helper/tree/path.h"

static char out[PATH_ROOM];

static const char *clean(const char *from)
{
    struct err e;

    return path_clean(from, "the name", out, &e) == 0 ? out : NULL;
}

TEST(dots_and_doubled_slashes_are_removed)
{
    CHECK_STR(clean("a/b"), "a/b");
    CHECK_STR(clean("./a//b/./"), "a/b");
    CHECK_STR(clean("."), "");
    CHECK_STR(clean("./"), "");
    CHECK_STR(clean(""), "");
    CHECK_STR(clean("..."), "...");
    CHECK_STR(clean("..a/b.."), "..a/b..");
    CHECK_STR(path_name("a/b"), "b");
    CHECK_STR(path_name("b"), "b");
}

TEST(a_name_that_leads_out_is_refused)
{
    CHECK(clean("..") == NULL);
    CHECK(clean("a/..") == NULL);
    CHECK(clean("a/../b") == NULL);
    CHECK(clean("./../b") == NULL);
    CHECK(clean("/a") == NULL);
    CHECK(clean("//") == NULL);
}

TEST(length_and_depth_are_limited)
{
    char name[3 * PATH_ROOM] = "";

    memset(name, 'n', PATH_PART_MAX);
    CHECK(clean(name) != NULL);
    memset(name, 'n', PATH_PART_MAX + 1);
    CHECK(clean(name) == NULL);
    for (size_t i = 0; i < PATH_DEPTH_MAX; i++)
        memcpy(name + 2 * i, "d/", 3);
    CHECK(clean(name) != NULL);
    strcat(name, "d");
    CHECK(clean(name) == NULL);
    name[0] = '\0';
    for (size_t i = 0; i < 25; i++) {
        memset(name + 200 * i, 'x', 199);
        strcpy(name + 200 * i + 199, "/");
    }
    CHECK(clean(name) == NULL);
}

TEST(a_link_is_inside_only_if_no_chain_of_links_leads_out)
{
    CHECK(path_link_is_inside("l", "a/b"));
    CHECK(path_link_is_inside("d/l", "../a"));
    CHECK(path_link_is_inside("d/e/l", "./..//../a"));
    CHECK(path_link_is_inside("d/l", ".."));
    CHECK(path_link_is_inside("l", "..a/b.."));
    CHECK(path_link_is_inside("l", "."));
    CHECK(!path_link_is_inside("l", "/a"));
    CHECK(!path_link_is_inside("l", ".."));
    CHECK(!path_link_is_inside("l", "../x"));
    CHECK(!path_link_is_inside("d/l", "../../x"));
    CHECK(!path_link_is_inside("d/l", "../.."));
    CHECK(!path_link_is_inside("d/e/l", "x/.."));
    CHECK(!path_link_is_inside("d/e/l", "x/../y"));
    CHECK(!path_link_is_inside("d/e/l", "../x/../y"));
    CHECK(!path_link_is_inside("l", "./.."));
}
