#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/run/user.h"

#define PASSWD                                                                                     \
    "root:x:0:0:root:/root:/bin/bash\n"                                                            \
    "# a comment\n"                                                                                \
    "broken:x:12\n"                                                                                \
    "user:x:1000:1001:U,,,:/home/user:/bin/zsh\n"                                                  \
    "user:x:2000:2000:second:/nowhere:/bin/sh\n"                                                   \
    "negative:x:-1:0::/:\n"                                                                        \
    "huge:x:4294967295:0::/:\n"                                                                    \
    "bare:x:1500:1500:::\n"                                                                        \
    "last:x:1600:1600::/last:/bin/sh"

/* A directory that stands for "/", gone with the test. */
struct root {
    char path[64];
    int fd;
};

static void root_put(const struct root *r, const char *name, const void *text, size_t n)
{
    int fd = openat(r->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, n), (ssize_t)n);
    close(fd);
}

static struct root root_open(const char *passwd, const char *group)
{
    struct root r = {.path = "/tmp/test_init_user.XXXXXX"};

    alarm(20); /* nothing here may wait: not on a FIFO, not on a terminal */
    CHECK(mkdtemp(r.path) != NULL);
    r.fd = open(r.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(mkdirat(r.fd, "etc", 0755), 0);
    if (passwd != NULL)
        root_put(&r, "etc/passwd", passwd, strlen(passwd));
    if (group != NULL)
        root_put(&r, "etc/group", group, strlen(group));
    return r;
}

static void root_close(struct root *r)
{
    unlinkat(r->fd, "etc/passwd", 0);
    unlinkat(r->fd, "etc/group", 0);
    unlinkat(r->fd, "etc", AT_REMOVEDIR);
    close(r->fd);
    rmdir(r->path);
    alarm(0);
}

TEST(a_name_gives_ids_home_shell_and_groups)
{
    struct root r = root_open(PASSWD, "wheel:x:10:other,user\nx:x:11:users\nuser:x:1001:\n"
                                      "sudo:x:27:user\ndup:x:10:user\n");
    struct user u;
    struct err e;

    CHECK_INT(user_find(r.fd, "user", &u, &e), 0);
    CHECK_INT(u.uid, 1000);
    CHECK_INT(u.gid, 1001);
    CHECK_STR(u.name, "user");
    CHECK_STR(u.home, "/home/user");
    CHECK_STR(u.shell, "/bin/zsh");
    CHECK_INT(u.ngroups, 3);
    CHECK_INT(u.groups[0], 1001);
    CHECK_INT(u.groups[1], 10);
    CHECK_INT(u.groups[2], 27);
    root_close(&r);
}

TEST(numbers_work_with_and_without_an_entry)
{
    struct root r = root_open(PASSWD, NULL);
    struct user u;
    struct err e;

    CHECK_INT(user_find(r.fd, "1000", &u, &e), 0);
    CHECK_STR(u.name, "user");
    CHECK_INT(u.gid, 1001);
    CHECK_INT(user_find(r.fd, "1000:7", &u, &e), 0);
    CHECK_INT(u.gid, 7);
    CHECK_INT(user_find(r.fd, "4242", &u, &e), 0);
    CHECK_INT(u.uid, 4242);
    CHECK_STR(u.name, "");
    CHECK_STR(u.home, "/");
    CHECK_STR(u.shell, "");
    CHECK_INT(user_find(r.fd, "4242:43", &u, &e), 0);
    CHECK_INT(u.gid, 43);
    CHECK_INT(u.ngroups, 1);
    CHECK_INT(user_find(r.fd, "bare", &u, &e), 0);
    CHECK_STR(u.home, "/");
    CHECK_INT(user_find(r.fd, "last", &u, &e), 0);
    CHECK_STR(u.home, "/last");
    root_close(&r);
}

TEST(an_unknown_user_is_an_error)
{
    static const char *const specs[] = {"bob",    "broken", "negative", "huge",
                                        "",       "-1",     "1000:",    ":5",
                                        "1000:x", "root:0", "use",      "4294967295"};
    struct root r = root_open(PASSWD, NULL);
    struct user u;
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        CHECK_INT(user_find(r.fd, specs[i], &u, &e), -1);
        CHECK_INT(e.kind, ERR_CANNOT_START);
    }
    CHECK_INT(user_find(r.fd, "bob", &u, &e), -1);
    CHECK_STR(e.msg, "user bob: no such user in /etc/passwd");
    root_close(&r);
}

TEST(root_works_without_any_file)
{
    struct root r = root_open(NULL, NULL);
    struct user u;
    struct err e;

    CHECK_INT(user_find(r.fd, "root", &u, &e), 0);
    CHECK_INT(u.uid, 0);
    CHECK_INT(u.gid, 0);
    CHECK_STR(u.home, "/root");
    CHECK_INT(user_find(r.fd, "user", &u, &e), -1);
    root_close(&r);
}

TEST(a_fifo_in_place_of_passwd_does_not_block)
{
    struct root r = root_open(NULL, NULL);
    struct user u;
    struct err e;

    CHECK_INT(mkfifoat(r.fd, "etc/passwd", 0644), 0);
    CHECK_INT(mkfifoat(r.fd, "etc/group", 0644), 0);
    CHECK_INT(user_find(r.fd, "user", &u, &e), -1);
    CHECK_INT(user_find(r.fd, "root", &u, &e), 0);
    root_close(&r);
}

TEST(a_link_out_of_the_root_is_not_followed)
{
    static const char *const targets[] = {"/etc/passwd", "/proc/kmsg", "../../../etc/passwd",
                                          "/proc/self/fd/0", "passwd"};
    struct user u;
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct root r = root_open(NULL, NULL);

        CHECK_INT(symlinkat(targets[i], r.fd, "etc/passwd"), 0);
        CHECK_INT(user_find(r.fd, "daemon", &u, &e), -1);
        root_close(&r);
    }
}

TEST(a_huge_file_is_read_only_in_part)
{
    struct root r = root_open("user:x:1000:1000::/home/user:/bin/sh\n", NULL);
    int fd = openat(r.fd, "etc/passwd", O_WRONLY | O_APPEND | O_CLOEXEC);
    static const char late[] = "\nlate:x:1:1::/:\n";
    struct user u;
    struct err e;

    CHECK_INT(ftruncate(fd, 1ll << 32), 0);
    CHECK_INT(write(fd, late, sizeof(late) - 1), (ssize_t)sizeof(late) - 1);
    CHECK_INT(user_find(r.fd, "user", &u, &e), 0);
    CHECK_INT(user_find(r.fd, "late", &u, &e), -1);
    close(fd);
    root_close(&r);
}

TEST(a_line_with_a_nul_or_a_giant_field_is_skipped)
{
    static const char nul[] = "user:x:1:1::/a\0b:/bin/sh\nuser:x:2:2::/home:/bin/sh\n";
    struct root r = root_open(NULL, NULL);
    char *giant = malloc(5000);
    struct user u;
    struct err e;

    root_put(&r, "etc/passwd", nul, sizeof(nul) - 1);
    CHECK_INT(user_find(r.fd, "user", &u, &e), 0);
    CHECK_INT(u.uid, 2);
    snprintf(giant, 5000, "user:x:1:1::/%04000d:/bin/sh\n", 0);
    root_put(&r, "etc/passwd", giant, strlen(giant));
    CHECK_INT(user_find(r.fd, "user", &u, &e), -1);
    free(giant);
    root_close(&r);
}

TEST(groups_beyond_USER_GROUPS_MAX_are_left_out)
{
    struct root r = root_open(PASSWD, NULL);
    char text[8192];
    size_t n = 0;
    struct user u;
    struct err e;

    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "g%d:x:%d:user\n", i, 5000 + i);
    root_put(&r, "etc/group", text, n);
    CHECK_INT(user_find(r.fd, "user", &u, &e), 0);
    CHECK_INT(u.ngroups, USER_GROUPS_MAX);
    root_close(&r);
}
