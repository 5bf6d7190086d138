#include "unit.h"

#include <string.h>

#include "helper/tree/glob.h"

TEST(a_pattern_without_a_slash_matches_names_at_any_depth)
{
    CHECK(glob_match("*.o", "a.o"));
    CHECK(glob_match("*.o", "x/y/a.o"));
    CHECK(glob_match("node_modules", "a/node_modules"));
    CHECK(!glob_match("node_modules", "node_modules/x"));
    CHECK(!glob_match("*.o", "a.oo"));
    CHECK(glob_match("**", "a/b/c"));
}

TEST(a_pattern_with_a_slash_matches_from_the_top)
{
    CHECK(glob_match("./a", "a"));
    CHECK(glob_match("/a", "a"));
    CHECK(!glob_match("./a", "b/a"));
    CHECK(glob_match("src/*.c", "src/x.c"));
    CHECK(!glob_match("src/*.c", "src/y/x.c"));
    CHECK(!glob_match("src/*.c", "z/src/x.c"));
    CHECK(glob_match("src/", "a/src")); /* a slash at the end is ignored */
    CHECK(glob_match("build/", "build"));
}

TEST(two_stars_match_any_number_of_directories)
{
    CHECK(glob_match("**/x", "x"));
    CHECK(glob_match("**/x", "a/b/x"));
    CHECK(glob_match("a/**/x", "a/x"));
    CHECK(glob_match("a/**/x", "a/b/c/x"));
    CHECK(glob_match("a/**", "a/b/c"));
    CHECK(glob_match("a/**", "a"));
    CHECK(!glob_match("a/**/x", "b/x"));
    CHECK(glob_match("**/a/**/b", "x/a/a/y/b"));
    CHECK(glob_match("a/**/b/**/c", "a/b/x/b/c"));
}

TEST(question_marks_and_sets_match_one_character)
{
    CHECK(glob_match("?", "x"));
    CHECK(!glob_match("?", "xy"));
    CHECK(glob_match("?", "\xc3\xa4"));
    CHECK(!glob_match("a?b", "a/b"));
    CHECK(glob_match("[a-c]x", "bx"));
    CHECK(!glob_match("[!a-c]x", "bx"));
    CHECK(glob_match("[^a-c]x", "dx"));
    CHECK(glob_match("[]]", "]"));
    CHECK(glob_match("[", "["));
    CHECK(glob_match("a[b", "a[b"));
    CHECK(glob_match("\\*", "*"));
    CHECK(!glob_match("\\*", "x"));
    CHECK(glob_match("[\\]]", "]"));
    CHECK(glob_match("*a*b*c", "xxaxxbxxc"));
    CHECK(!glob_match("*a*b*c", "xxaxxbxx"));
}

TEST(no_pattern_takes_exponential_time)
{
    char pattern[GLOB_MAX + 2] = "", path[4001];

    for (int i = 0; i < 500; i++)
        strcat(pattern, "*a");
    memset(path, 'a', 4000);
    path[4000] = '\0';
    strcat(pattern, "b");
    CHECK(!glob_match(pattern, path));
    pattern[0] = '\0';
    for (int i = 0; i < 200; i++)
        strcat(pattern, "**/a/");
    strcat(pattern, "b");
    for (int i = 1; i < 4000; i += 2)
        path[i] = '/';
    path[3999] = '\0';
    CHECK(!glob_match(pattern, path));
    memset(pattern, '*', GLOB_MAX + 1);
    CHECK(!glob_match(pattern, "x")); /* longer than GLOB_MAX */
}
