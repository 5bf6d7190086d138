/* test_token.c - tokens of sandboxes. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "front/auth/token.h"

static char dir[64];
static int dir_fd;

static void enter(void)
{
    strcpy(dir, "/tmp/cove-token-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir_fd >= 0);
}

static void leave(void)
{
    unlinkat(dir_fd, TOKEN_FILE, 0);
    drop_fd(&dir_fd);
    rmdir(dir);
}

TEST(a_token_is_stable_and_valid_for_one_sandbox_and_use)
{
    char first[TOKEN_SIZE], again[TOKEN_SIZE], other[TOKEN_SIZE];
    struct token_mint *m = NULL;
    struct err e = {0};
    struct stat st;

    enter();
    CHECK_INT(token_open(dir_fd, &m, &e), 0);
    token_make(m, TOKEN_ENVD, "abc", first);
    token_free(m);
    CHECK_INT(token_open(dir_fd, &m, &e), 0);
    token_make(m, TOKEN_ENVD, "abc", again);
    CHECK_STR(first, again);
    CHECK(token_is(m, TOKEN_ENVD, "abc", first));
    CHECK(!token_is(m, TOKEN_ENVD, "abd", first));
    CHECK(!token_is(m, TOKEN_TRAFFIC, "abc", first));
    CHECK(!token_is(m, TOKEN_ENVD, "abc", NULL));
    CHECK(!token_is(m, TOKEN_ENVD, "abc", ""));
    first[0] ^= 1;
    CHECK(!token_is(m, TOKEN_ENVD, "abc", first));
    token_make(m, TOKEN_TRAFFIC, "abc", other);
    CHECK(strcmp(again, other) != 0);
    CHECK_INT(fstatat(dir_fd, TOKEN_FILE, &st, 0), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    token_free(m);
    leave();
}

TEST(two_servers_have_different_secrets)
{
    char a[TOKEN_SIZE], b[TOKEN_SIZE];
    struct token_mint *m = NULL;
    struct err e = {0};

    enter();
    CHECK_INT(token_open(dir_fd, &m, &e), 0);
    token_make(m, TOKEN_ENVD, "abc", a);
    token_free(m);
    leave();
    enter();
    CHECK_INT(token_open(dir_fd, &m, &e), 0);
    token_make(m, TOKEN_ENVD, "abc", b);
    CHECK(strcmp(a, b) != 0);
    token_free(m);
    leave();
}

TEST(a_damaged_secret_is_reported_and_not_replaced)
{
    struct token_mint *m = NULL;
    struct err e = {0};
    int fd;

    enter();
    fd = openat(dir_fd, TOKEN_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_INT(write(fd, "short", 5), 5);
    drop_fd(&fd);
    CHECK_INT(token_open(dir_fd, &m, &e), -1);
    CHECK(strstr(e.msg, TOKEN_FILE) != NULL);
    leave();
}
