#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper/watch/changes.h"
#include "helper/watch/watched.h"

static char *said;
static size_t nsaid;
static char gone[256];

static void left(void *arg, const char *path, bool dir)
{
    (void)arg;
    (void)dir;
    strcpy(gone, path);
}

static void open_changes(struct changes *c, unsigned window)
{
    free(said);
    gone[0] = '\0';
    changes_init(c, open_memstream(&said, &nsaid), window);
    c->left = left;
}

static void close_changes(struct changes *c)
{
    while (changes_tell(c, UINT64_MAX / 2) >= 0)
        ;
    map_free(&c->last);
    fclose(c->to);
}

TEST(a_repeated_change_is_reported_once_unless_another_came_between)
{
    struct changes c;

    open_changes(&c, 100);
    changes_add(&c, CHANGE_CREATE, false, "f", 0);
    changes_add(&c, CHANGE_CREATE, false, "f", 0);
    changes_add(&c, CHANGE_MODIFY, false, "f", 1);
    changes_add(&c, CHANGE_MODIFY, false, "g", 1);
    changes_add(&c, CHANGE_MODIFY, false, "f", 2);
    changes_add(&c, CHANGE_DELETE, false, "f", 3);
    changes_add(&c, CHANGE_CREATE, false, "f", 4);
    CHECK_INT(changes_tell(&c, 50), 50);
    CHECK_STR(said, "");
    CHECK_INT(changes_tell(&c, 104), -1);
    CHECK_STR(said, "create f f\nmodify f f\nmodify f g\ndelete f f\ncreate f f\n");
    changes_add(&c, CHANGE_CREATE, false, "f", 200);
    close_changes(&c);
    CHECK_HAS(said, "create f f\ncreate f f\n");
}

TEST(half_a_move_waits_for_the_other_and_delays_later_changes)
{
    struct changes c;

    open_changes(&c, 0);
    changes_from(&c, 7, true, true, "a", 0);
    changes_add(&c, CHANGE_CREATE, false, "x", 0);
    CHECK_INT(changes_tell(&c, 10), (int)CHANGES_MOVE_MS - 10);
    CHECK_STR(said, "");
    CHECK(changes_to(&c, 7, true, true, false, "b", 11));
    CHECK(!changes_to(&c, 7, true, true, false, "c", 11));
    CHECK_INT(changes_tell(&c, 11), -1);
    CHECK_STR(said, "create f x\nmove d b a\n");
    changes_from(&c, 8, true, true, "b", 20);
    CHECK_INT(changes_tell(&c, 20 + CHANGES_MOVE_MS), -1);
    CHECK_HAS(said, "delete d b\n");
    CHECK_STR(gone, "b");
    close_changes(&c);
}

TEST(a_move_to_an_excluded_path_is_a_delete_and_from_there_a_create)
{
    struct changes c;

    open_changes(&c, 0);
    changes_from(&c, 1, false, true, "seen", 0);
    CHECK(changes_to(&c, 1, false, false, false, "hidden", 0));
    changes_from(&c, 2, false, false, "hidden", 0);
    CHECK(changes_to(&c, 2, false, true, false, "seen2", 0));
    changes_from(&c, 3, false, false, "hidden", 0);
    CHECK(changes_to(&c, 3, false, false, false, "hidden2", 0));
    close_changes(&c);
    CHECK_STR(said, "delete f seen\ncreate f seen2\n");
}

TEST(a_repeated_change_is_reported_again_after_a_directory_above_went_away)
{
    struct changes c;

    open_changes(&c, 1000);
    changes_add(&c, CHANGE_CREATE, false, "d/f", 0);
    CHECK(!changes_add(&c, CHANGE_CREATE, false, "d/f", 0));
    changes_add(&c, CHANGE_DELETE, true, "e", 0);
    CHECK(!changes_add(&c, CHANGE_CREATE, false, "d/f", 0));
    changes_from(&c, 1, true, true, "d", 0);
    CHECK(changes_to(&c, 1, true, true, false, "o", 0));
    CHECK(changes_add(&c, CHANGE_CREATE, false, "d/f", 0));
    CHECK(!changes_add(&c, CHANGE_CREATE, false, "d/f", 0));
    close_changes(&c);
    CHECK_STR(said, "create f d/f\ndelete d e\nmove d o d\ncreate f d/f\n");
}

TEST(two_halves_of_different_files_are_reported_separately)
{
    struct changes c;

    open_changes(&c, 0);
    changes_from(&c, 1, true, true, "d", 0);
    changes_part(&c, 1);
    CHECK(!changes_to(&c, 1, true, true, false, "o", 0));
    close_changes(&c);
    CHECK_STR(said, "delete d d\n");
}

TEST(changes_before_an_overflow_are_reported_before_it)
{
    struct changes c;

    open_changes(&c, 1000);
    changes_add(&c, CHANGE_DELETE, false, "f", 0);
    changes_from(&c, 1, true, true, "d", 0);
    changes_flush(&c);
    changes_lost(&c, "queue");
    close_changes(&c);
    CHECK_STR(said, "delete f f\ndelete d d\noverflow queue\n");
    CHECK_STR(gone, "d");
}

TEST(no_byte_of_a_name_can_end_a_line)
{
    struct changes c;

    open_changes(&c, 0);
    changes_add(&c, CHANGE_CREATE, false, "a b\n%\xff", 0);
    close_changes(&c);
    CHECK_STR(said, "create f a%20b%0A%25%FF\n");
}

TEST(changes_above_the_limit_are_reported_early)
{
    struct changes c;
    char name[32];

    open_changes(&c, 1000);
    for (unsigned i = 0; i < CHANGES_MAX + 10; i++) {
        snprintf(name, sizeof(name), "%u", i);
        changes_add(&c, CHANGE_CREATE, false, name, 0);
    }
    changes_tell(&c, 0);
    CHECK_INT(c.n, CHANGES_MAX);
    close_changes(&c);
}

static int dropped;

static void count(void *arg, int wd)
{
    (void)arg;
    (void)wd;
    dropped++;
}

TEST(paths_follow_directories_that_move)
{
    static struct watches ws;
    struct watched *root = watched_put(&ws, 1, NULL, ""), *a, *b, *c;
    char path[PATH_ROOM];

    a = watched_put(&ws, 2, root, "a");
    b = watched_put(&ws, 4098, a, "b"); /* the same slot */
    c = watched_put(&ws, 3, root, "c");
    CHECK(watched_find(&ws, 2) == a && watched_find(&ws, 4098) == b);
    CHECK_INT(watched_path(b, "f", path), 0);
    CHECK_STR(path, "a/b/f");
    CHECK_INT(watched_path(root, "f", path), 0);
    CHECK_STR(path, "f");
    CHECK(watched_put(&ws, 2, c, "moved") == a);
    CHECK_INT(watched_path(b, "f", path), 0);
    CHECK_STR(path, "c/moved/b/f");
    CHECK(watched_child(c, "moved", false) == a && watched_child(root, "a", false) == NULL);
    CHECK(watched_out(c, "moved") == a);
    CHECK(watched_child(c, "moved", true) == a && watched_child(c, "moved", false) == NULL);
    CHECK_INT(watched_path(b, "f", path), -1);
    CHECK(watched_put(&ws, 3, b, "ring") == c); /* never below itself */
    CHECK_INT(watched_path(c, "f", path), 0);
    CHECK_STR(path, "c/f");
    watched_drop(&ws, c, count, NULL);
    CHECK_INT(dropped, 3);
    CHECK(watched_find(&ws, 4098) == NULL && ws.n == 1);
    watched_drop(&ws, root, NULL, NULL);
    CHECK(ws.root == NULL && ws.n == 0);
}

TEST(directories_above_the_limit_are_watched_after_others_went_away)
{
    static struct watches ws;
    struct watched *root = watched_put(&ws, 1, NULL, "");
    int wd = 2;

    while (ws.n < WATCHED_MAX)
        CHECK(watched_put(&ws, wd++, root, "d") != NULL);
    CHECK(watched_put(&ws, wd, root, "one more") == NULL);
    CHECK(watched_put(&ws, 2, root, "known") != NULL);
    watched_drop(&ws, watched_find(&ws, 2), NULL, NULL);
    CHECK(watched_put(&ws, wd, root, "one more") != NULL);
    watched_drop(&ws, root, NULL, NULL);
    CHECK_INT(ws.n, 0);
}
