#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/xattr.h"

static int fd = -1;

/* False where the filesystem of temporary files has no attributes. */
static bool open_file(void)
{
    char name[] = "/var/tmp/cove-xattr-XXXXXX";

    fd = mkstemp(name);
    CHECK(fd >= 0);
    unlink(name);
    return fsetxattr(fd, "user.other", "o", 1, 0) == 0;
}

static const char *value(const char *name)
{
    static char text[64];
    ssize_t n = fgetxattr(fd, name, text, sizeof(text) - 1);

    if (n < 0)
        return NULL;
    text[n] = '\0';
    return text;
}

TEST(attributes_of_the_prefix_are_replaced_and_others_kept)
{
    if (!open_file())
        skip();
    CHECK_INT(xattr_replace(fd, "user.t.", "a=1\nb=x=y z\nc=\n"), 0);
    CHECK_STR(value("user.t.a"), "1");
    CHECK_STR(value("user.t.b"), "x=y z");
    CHECK_STR(value("user.t.c"), "");
    CHECK_INT(xattr_replace(fd, "user.t.", "b=2\nbb=3\n"), 0);
    CHECK(value("user.t.a") == NULL && value("user.t.c") == NULL);
    CHECK_STR(value("user.t.b"), "2");
    CHECK_STR(value("user.t.bb"), "3");
    CHECK_INT(xattr_replace(fd, "user.t.", ""), 0);
    CHECK(value("user.t.b") == NULL && value("user.t.bb") == NULL);
    CHECK_STR(value("user.other"), "o");
    drop_fd(&fd);
}

TEST(a_name_that_is_too_long_or_no_line_at_all_is_an_error)
{
    char line[400];

    if (!open_file())
        skip();
    memset(line, 'n', sizeof(line));
    strcpy(line + 300, "=v\n");
    CHECK_INT(xattr_replace(fd, "user.t.", line), -1);
    CHECK_INT(errno, ERANGE);
    CHECK_INT(xattr_replace(fd, "user.t.", "nothing\n"), -1);
    drop_fd(&fd);
}

TEST(a_filesystem_without_any_is_fine_if_none_is_wanted)
{
    autofd int proc = open("/proc/self/status", 0);

    CHECK_INT(xattr_replace(proc, "user.t.", ""), 0);
    CHECK_INT(xattr_replace(proc, "user.t.", "a=1\n"), -1);
}
