/* test_quota.c - accounts of keys. */
#include "unit.h"

#include "front/quota/quota.h"

static struct quota_book *book(void)
{
    return quota_book_new(&(struct quotas){{[QUOTA_sandboxes] = 2, [QUOTA_memory] = 100}});
}

static const struct quotas one = {{[QUOTA_sandboxes] = 1, [QUOTA_memory] = 60}};

TEST(a_key_without_values_of_its_own_has_the_defaults)
{
    struct quota_book *b = book();
    struct quota_user *u = quota_user(b, "key1");
    struct err e;

    CHECK_INT(quota_check(u, &one, &e), 0);
    quota_add(u, &one);
    CHECK_INT(quota_check(u, &one, &e), -1);
    CHECK_INT(e.kind, ERR_LIMIT);
    CHECK(strstr(e.msg, "quota memory of this key: 60 of 100 in use, 60 more") != NULL);
    CHECK_INT(quota_check(quota_user(b, "key2"), &one, &e), 0);
    quota_drop(u, &one);
    CHECK_INT(quota_check(u, &one, &e), 0);
    CHECK(quota_user(b, "key1") == u);
    quota_book_free(b);
}

TEST(an_admin_has_only_the_limits_that_it_was_given)
{
    struct quota_book *b = book();
    struct quota_own own = {.has = {[QUOTA_sandboxes] = true}, .values = {{[QUOTA_sandboxes] = 1}}};
    struct quotas huge = {{[QUOTA_memory] = UINT64_MAX}};
    struct quota_user *u = quota_user(b, "root");
    struct err e;

    quota_allow(b, "root", true, &own);
    CHECK_INT(quota_check(u, &huge, &e), 0);
    quota_add(u, &one);
    CHECK_INT(quota_check(u, &one, &e), -1);
    quota_book_free(b);
}

TEST(a_lower_limit_takes_nothing_away)
{
    struct quota_book *b = book();
    struct quota_own own = {.has = {[QUOTA_sandboxes] = true, [QUOTA_memory] = true},
                            .values = {{[QUOTA_sandboxes] = 1, [QUOTA_memory] = 10}}};
    struct quotas none = {0}, sandbox = {{[QUOTA_sandboxes] = 1}};
    struct quota_user *u = quota_user(b, "k");
    struct err e;

    quota_add(u, &one);
    quota_add(u, &sandbox);
    quota_allow(b, "k", false, &own);
    CHECK_INT(quota_check(u, &none, &e), 0);
    CHECK_INT(quota_check(u, &sandbox, &e), -1);
    CHECK_INT((long)u->used.of[QUOTA_sandboxes], 2);
    quota_book_free(b);
}

TEST(every_quota_has_a_name_and_is_found_by_it)
{
    for (enum quota q = 0; q < QUOTA_COUNT; q++)
        CHECK_INT(quota_named(quota_name(q)), q);
    CHECK_INT(quota_named("nothing"), QUOTA_COUNT);
    CHECK(quota_user(NULL, "k") == NULL);
    CHECK_INT(quota_check(NULL, &one, NULL), 0);
}
