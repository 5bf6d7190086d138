/* Files without a name. Removing the only name of a file makes tmpfile_link() take the path for
 * older kernels. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/files/tmpfile.h"

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

/* As tmpfile_open() makes one where O_TMPFILE is not supported. */
static int forgotten(int at, const char *text)
{
    int fd = openat(at, "gone", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_INT(unlinkat(at, "gone", 0), 0);
    return fd;
}

TEST(a_tmpfile_leaves_nothing_and_gets_its_name_when_complete)
{
    int at = open_dir(), fd = tmpfile_open(at, ".");

    CHECK(fd >= 0);
    CHECK_INT(write(fd, "whole", 5), 5);
    CHECK_INT(tmpfile_link(fd, at, "name"), 0);
    holds(at, "name", "whole");
    close(fd);
    fd = tmpfile_open(at, ".");
    CHECK_INT(tmpfile_link(fd, at, "name"), -1);
    CHECK_INT(errno, EEXIST);
    holds(at, "name", "whole");
    close(fd);
    clean(at);
}

TEST(on_old_kernels_linking_copies_content_and_mode_and_updates_the_fd)
{
    int at = open_dir(), fd = forgotten(at, "old kernel");
    struct stat mine, there;
    char path[64];

    CHECK_INT(fchmod(fd, 0640), 0);
    snprintf(path, sizeof(path), "%s/name", dir);
    CHECK_INT(tmpfile_link(fd, AT_FDCWD, path), 0);
    holds(at, "name", "old kernel");
    CHECK_INT(fstat(fd, &mine), 0);
    CHECK_INT(fstatat(at, "name", &there, 0), 0);
    CHECK_INT(mine.st_ino, there.st_ino);
    CHECK_INT(there.st_mode & 07777, 0640);
    close(fd);
    clean(at);
}

TEST(linking_replaces_no_file_and_leaves_no_temporary_file)
{
    int at = open_dir(), first = forgotten(at, "first"), second = forgotten(at, "second");

    CHECK_INT(tmpfile_link(first, at, "name"), 0);
    CHECK_INT(tmpfile_link(second, at, "name"), -1);
    CHECK_INT(errno, EEXIST);
    holds(at, "name", "first");
    CHECK_INT(tmpfile_link(second, at, "no/such"), -1);
    CHECK_INT(errno, ENOENT);
    close(first);
    close(second);
    clean(at);
}
