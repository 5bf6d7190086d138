/* test_helper_links.c - files under several names. */
#include "unit.h"

#include "helper/archive/links.h"

static struct stat file(unsigned long ino)
{
    return (struct stat){.st_dev = 7, .st_ino = ino};
}

TEST(a_hard_link_is_recognized_by_its_first_name)
{
    struct links *l = links_new();
    struct stat one = file(1), two = file(2), other = {.st_dev = 8, .st_ino = 1};

    CHECK(l != NULL);
    CHECK(links_seen(l, &one, "./a") == NULL);
    CHECK(links_seen(l, &two, "./b") == NULL);
    CHECK(links_seen(l, &other, "./c") == NULL);
    CHECK_STR(links_seen(l, &one, "./d"), "./a");
    CHECK_STR(links_seen(l, &other, "./e"), "./c");
    links_free(l);
}

TEST(above_the_limit_hard_links_are_separate_files)
{
    struct links *l = links_new();
    struct stat first = file(1), late = file(LINKS_MAX + 10);

    for (unsigned long i = 1; i <= LINKS_MAX; i++) {
        struct stat st = file(i);

        CHECK(links_seen(l, &st, "x") == NULL);
    }
    CHECK(links_seen(l, &late, "y") == NULL);
    CHECK(links_seen(l, &late, "z") == NULL);
    CHECK_STR(links_seen(l, &first, "z"), "x");
    links_free(l);
}
