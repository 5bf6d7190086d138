#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/tree/tree.h"

static char top[32];
static struct err e;

static int open_top(void)
{
    strcpy(top, "/tmp/cove-unit-XXXXXX");
    CHECK(mkdtemp(top) != NULL);
    return open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* d/d/d/..., a file in the innermost. */
static void make_deep(int at, unsigned depth)
{
    int dir = dup(at), fd;

    for (unsigned i = 0; i < depth; i++) {
        CHECK_INT(mkdirat(dir, "d", 0700), 0);
        fd = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = fd;
    }
    fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    close(dir);
}

TEST(trees_are_removed_up_to_the_depth_limit)
{
    int at = open_top();
    unsigned fds = (unsigned)dup(at);

    close((int)fds);
    make_deep(at, TREE_DEPTH_MAX);
    CHECK_INT(tree_remove(at, "d", &e), 0);
    CHECK_INT(faccessat(at, "d", F_OK, 0), -1);

    make_deep(at, TREE_DEPTH_MAX + 1);
    CHECK_INT(tree_remove(at, "d", &e), -1);
    CHECK_INT(e.kind, ERR_LIMIT);
    CHECK_HAS(e.msg, "more than 400 directories deep");
    CHECK_INT(faccessat(at, "d/d", F_OK, 0), 0);
    CHECK_INT(dup(at), fds); /* no fd was leaked */
    close((int)fds);

    /* one level less can be removed */
    CHECK_INT(renameat(at, "d/d", at, "e"), 0);
    CHECK_INT(tree_remove(at, "d", &e), 0);
    CHECK_INT(tree_remove(at, "e", &e), 0);
    close(at);
    CHECK_INT(rmdir(top), 0);
}
