#include "unit.h"

#include <errno.h>

TEST(every_kind_has_a_word_a_status_and_an_exit_code_of_its_own_or_shared)
{
    for (int i = 0; i < ERR_KIND_COUNT; i++) {
        CHECK(err_code((enum err_kind)i)[0] != '\0');
        CHECK(err_meaning((enum err_kind)i)[0] != '\0');
        CHECK(err_http((enum err_kind)i) >= 400 && err_http((enum err_kind)i) < 600);
        /* no status of a command's own: up to 127, or 128 and a signal */
        CHECK(err_exit((enum err_kind)i) >= 200 && err_exit((enum err_kind)i) <= 213);
        CHECK_INT(err_from_code(err_code((enum err_kind)i)), i);
    }
}

TEST(an_unknown_code_is_internal)
{
    CHECK_INT(err_from_code("surprise"), ERR_INTERNAL);
    CHECK_INT(err_from_code(NULL), ERR_INTERNAL);
    CHECK_STR(err_code((enum err_kind)4711), "internal");
}

TEST(err_sys_reads_errno_and_leaves_it)
{
    struct err e;

    errno = ENOENT;
    CHECK_INT(err_sys(&e, "open %s", "/x"), -1);
    CHECK_INT(errno, ENOENT);
    CHECK_INT(e.sys, ENOENT);
    CHECK_INT(e.kind, ERR_INTERNAL);
    CHECK_STR(e.msg, "open /x: No such file or directory");
}

TEST(a_full_disk_and_a_full_quota_are_the_same_to_a_client)
{
    struct err e;

    errno = ENOSPC;
    err_sys(&e, "write");
    CHECK_INT(e.kind, ERR_DISK_FULL);
    errno = EDQUOT;
    err_sys(&e, "write");
    CHECK_INT(e.kind, ERR_DISK_FULL);
}

TEST(wrapping_puts_the_attempt_before_the_cause)
{
    struct err e;

    err_set(&e, ERR_LIMIT, "no free subnet");
    CHECK_INT(err_wrap(&e, "sandbox %s", "s2"), -1);
    CHECK_STR(e.msg, "sandbox s2: no free subnet");
    CHECK_INT(e.kind, ERR_LIMIT);
}

TEST(the_cause_survives_a_context_that_is_too_long)
{
    struct err e;
    char context[1024];

    memset(context, 'c', sizeof(context) - 1);
    context[sizeof(context) - 1] = '\0';
    err_set(&e, ERR_INVALID, "the cause");
    err_wrap(&e, "%s", context);
    CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
    CHECK_STR(e.msg + strlen(e.msg) - 11, ": the cause");
}

TEST(a_cause_that_fills_the_message_is_not_pushed_out)
{
    struct err e;
    char cause[1024];

    memset(cause, 'x', sizeof(cause) - 1);
    cause[sizeof(cause) - 1] = '\0';
    err_set(&e, ERR_INVALID, "%s", cause);
    err_wrap(&e, "context");
    CHECK_INT(strlen(e.msg), sizeof(e.msg) - 1);
    CHECK_INT(e.msg[0], 'x');
}
