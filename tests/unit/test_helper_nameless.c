/* Files without a name; the way of older kernels is taken where a file's only name is gone. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/nameless.h"

static char dir[32];

static int open_dir(void)
{
    strcpy(dir, "/tmp/cove-unit-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void clean(int at)
{
    unlinkat(at, "name", 0);
    close(at);
    CHECK_INT(rmdir(dir), 0); /* nothing else was left */
}

static void holds(int at, const char *name, const char *text)
{
    int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
    char got[64] = "";

    CHECK(read(fd, got, sizeof(got) - 1) >= 0);
    CHECK_STR(got, text);
    close(fd);
}

/* As nameless_open() makes one where O_TMPFILE is not supported. */
static int forgotten(int at, const char *text)
{
    int fd = openat(at, "gone", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_INT(unlinkat(at, "gone", 0), 0);
    return fd;
}

TEST(a_file_without_a_name_leaves_nothing_and_gets_one_when_it_is_whole)
{
    int at = open_dir(), fd = nameless_open(at, ".");

    CHECK(fd >= 0);
    CHECK_INT(write(fd, "whole", 5), 5);
    CHECK_INT(nameless_link(fd, at, "name"), 0);
    holds(at, "name", "whole");
    close(fd);
    fd = nameless_open(at, ".");
    CHECK_INT(nameless_link(fd, at, "name"), -1);
    CHECK_INT(errno, EEXIST);
    holds(at, "name", "whole");
    close(fd);
    clean(at);
}

TEST(one_whose_name_was_removed_appears_whole_with_its_mode_and_the_fd_is_of_what_appeared)
{
    int at = open_dir(), fd = forgotten(at, "old kernel");
    struct stat mine, there;
    char path[64];

    CHECK_INT(fchmod(fd, 0640), 0);
    snprintf(path, sizeof(path), "%s/name", dir);
    CHECK_INT(nameless_link(fd, AT_FDCWD, path), 0);
    holds(at, "name", "old kernel");
    CHECK_INT(fstat(fd, &mine), 0);
    CHECK_INT(fstatat(at, "name", &there, 0), 0);
    CHECK_INT(mine.st_ino, there.st_ino);
    CHECK_INT(there.st_mode & 07777, 0640);
    close(fd);
    clean(at);
}

TEST(it_replaces_nothing_and_leaves_nothing_beside_what_is_there)
{
    int at = open_dir(), first = forgotten(at, "first"), second = forgotten(at, "second");

    CHECK_INT(nameless_link(first, at, "name"), 0);
    CHECK_INT(nameless_link(second, at, "name"), -1);
    CHECK_INT(errno, EEXIST);
    holds(at, "name", "first");
    CHECK_INT(nameless_link(second, at, "no/such"), -1);
    CHECK_INT(errno, ENOENT);
    close(first);
    close(second);
    clean(at);
}
