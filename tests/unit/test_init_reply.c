#include "unit.h"

#include "init/reply.h"

static struct reply got;
static size_t used;

static int says(const char *text)
{
    used = 0;
    got = (struct reply){0};
    return reply_read(text, strlen(text), "/dev/cove/7", &got, &used);
}

TEST(a_reply_is_found_in_what_bash_prints_around_it)
{
    CHECK_INT(says("bash: line 1: /dev/cove/7/-/n3.4711.: No such file or directory\n"), 1);
    CHECK_INT(got.kind, REPLY_READY);
    CHECK_INT(got.status, 3);
    CHECK_INT(got.pid, 4711);
    CHECK_INT(says("+ traced\nbash: /dev/cove/7/-/x252.12.: Datei\nrest"), 1);
    CHECK_INT(got.kind, REPLY_CHILD);
    CHECK_INT(used, strlen("+ traced\nbash: /dev/cove/7/-/x252.12.: Datei\n"));
    CHECK_INT(says("/dev/cove/7/-/e0..\n"), 1);
    CHECK_INT(got.kind, REPLY_LEAVE);
    CHECK_INT(got.pid, 0);
    CHECK_INT(says("/dev/cove/7/-/b1..\n"), 1);
    CHECK_INT(got.kind, REPLY_BIRTH);
    CHECK_INT(says("/dev/cove/7/-/d1..\n"), 1);
    CHECK_INT(got.kind, REPLY_LEFT);
    CHECK_INT(says("/dev/cove/7/-/k0..\n"), 1);
    CHECK_INT(got.kind, REPLY_STOP);
}

TEST(half_a_line_is_waited_for)
{
    static const char text[] = "bash: line 1: /dev/cove/7/-/n3.4711.: No such file\n";

    for (size_t n = 0; n < sizeof(text) - 1; n++)
        CHECK_INT(reply_read(text, n, "/dev/cove/7", &got, &used), 0);
    CHECK_INT(says("nothing of ours\n"), 0);
    CHECK_INT(says("/dev/cove/71/-/n0.1.\n"), 0);
}

TEST(our_own_text_is_no_reply)
{
    CHECK_INT(says("+ 2<&\"/dev/cove/7/-/n$?..\"\n"), 0);
    CHECK_INT(says("/dev/cove/7/-/x${__cove_status}.${BASHPID-}.\nbash: /dev/cove/7/-/n4..: no\n"),
              1);
    CHECK_INT(got.kind, REPLY_READY);
    CHECK_INT(got.status, 4);
    CHECK_INT(says("/dev/cove/7/-/$\n"), -1);
}

TEST(what_has_no_meaning_is_refused)
{
    static const char *const bad[] = {
        "/dev/cove/7/-/\n",        "/dev/cove/7/-/q0.1.\n",   "/dev/cove/7/-/n\n",
        "/dev/cove/7/-/n.1.\n",    "/dev/cove/7/-/n256.1.\n", "/dev/cove/7/-/n-1.1.\n",
        "/dev/cove/7/-/n1.1\n",    "/dev/cove/7/-/n1.-5.\n",  "/dev/cove/7/-/n1.99999999999.\n",
        "/dev/cove/7/-/n1.1x1.\n", "/dev/cove/7/-/n 1.1.\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_INT(says(bad[i]), -1);
}

TEST(who_says_nothing_in_the_bytes_it_has_says_nothing)
{
    char text[REPLY_MAX];

    memset(text, 'x', sizeof(text));
    CHECK_INT(reply_read(text, sizeof(text) - 1, "/dev/cove/7", &got, &used), 0);
    CHECK_INT(reply_read(text, sizeof(text), "/dev/cove/7", &got, &used), -1);
    memset(text, '\n', sizeof(text));
    CHECK_INT(reply_read(text, sizeof(text), "/dev/cove/7", &got, &used), -1);
}
