/* test_auth.c - keys and scopes. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "front/auth/auth.h"
#include "front/store/internal.h"
#include "front/store/store.h"

/* echo -n cove_abc | sha256sum */
#define HASH_ABC "bd144169172237d9caa39b642ad1975d6c338ff391937d64e8fd0edaa115549d"

static struct store *store;

static struct auth *auth_with(const char *hash, struct err *e)
{
    struct auth *a = NULL;

    CHECK_INT(store_open(":memory:", &store, e), 0);
    auth_new(store, hash, &a, e);
    return a;
}

static void done(struct auth *a)
{
    auth_free(a);
    store_close(store);
}

TEST(the_first_key_opens_as_bearer_and_bare)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    const char *id = NULL;

    CHECK_INT(auth_key(a, "Bearer cove_abc", &id, &e), 0);
    CHECK_STR(id, AUTH_ROOT);
    CHECK_INT(auth_key(a, "bearer   cove_abc", &id, &e), 0);
    CHECK_INT(auth_key(a, "cove_abc", &id, &e), 0);
    done(a);
}

TEST(a_missing_wrong_or_malformed_key_is_refused)
{
    static const char *const wrong[] = {"",          "Bearer ",        "Bearer",    "cove_ab",
                                        "cove_abc ", "Basic cove_abc", "cove_abcd", HASH_ABC};
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    const char *id = NULL;
    char huge[4096];

    memset(huge, 'a', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    CHECK_INT(auth_key(a, NULL, &id, &e), -1);
    CHECK_INT(e.kind, ERR_UNAUTHORIZED);
    CHECK_INT(auth_key(a, huge, &id, &e), -1);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        e.kind = ERR_INTERNAL;
        CHECK_INT(auth_key(a, wrong[i], &id, &e), -1);
        CHECK_INT(e.kind, ERR_UNAUTHORIZED);
        CHECK(*wrong[i] == '\0' || strstr(e.msg, "cove_") == NULL); /* never shown */
    }
    CHECK(id == NULL);
    done(a);
}

TEST(a_malformed_hash_is_refused_at_start)
{
    struct err e = {0};

    CHECK(auth_with("abc", &e) == NULL);
    CHECK_INT(e.kind, ERR_INVALID);
    store_close(store);
}

TEST(a_new_first_key_replaces_the_old_one)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    const char *id = NULL;

    auth_free(a);
    CHECK_INT(
        auth_new(store, "0000000000000000000000000000000000000000000000000000000000000000", &a, &e),
        0);
    CHECK_INT(auth_key(a, "cove_abc", &id, &e), -1);
    done(a);
}

TEST(only_admins_are_admin_and_a_forgotten_scope_denies_even_them)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    char key[AUTH_KEY_SIZE];
    struct auth_info plain, admin;

    CHECK_INT(auth_create(a, "plain", false, key, &plain, &e), 0);
    CHECK_INT(auth_create(a, "admin", true, key, &admin, &e), 0);
    CHECK_INT(auth_allows(a, AUTH_ROOT, SCOPE_ADMIN, &e), 0);
    CHECK_INT(auth_allows(a, AUTH_ROOT, SCOPE_NOBODY, &e), -1);
    CHECK_INT(auth_allows(a, admin.id, SCOPE_ADMIN, &e), 0);
    CHECK_INT(auth_allows(a, plain.id, SCOPE_RUN, &e), 0);
    CHECK_INT(auth_allows(a, plain.id, SCOPE_ADMIN, &e), -1);
    CHECK_INT(e.kind, ERR_DENIED);
    CHECK_INT(auth_allows(a, "other", SCOPE_RUN, &e), -1);
    CHECK_INT(auth_allows(a, NULL, SCOPE_READ, &e), -1);
    CHECK_INT(auth_allows(a, NULL, SCOPE_PUBLIC, &e), 0);
    done(a);
}

static void count(void *arg, const struct auth_info *k)
{
    (void)k;
    (*(size_t *)arg)++;
}

TEST(a_made_key_opens_until_it_is_revoked_also_after_a_restart)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    char key[AUTH_KEY_SIZE], made[64];
    struct auth_info info;
    const char *id = NULL;
    size_t n = 0;

    CHECK_INT(auth_create(a, "ci", false, key, &info, &e), 0);
    CHECK_STR(info.name, "ci");
    snprintf(made, sizeof(made), "%s", info.id);
    CHECK_INT(strspn(key + strlen(AUTH_KEY_PREFIX), "0123456789abcdef"), 2 * AUTH_KEY_RANDOM);
    auth_free(a);
    CHECK_INT(auth_new(store, HASH_ABC, &a, &e), 0);
    CHECK_INT(auth_key(a, key, &id, &e), 0);
    CHECK_STR(id, made);
    auth_each(a, count, &n);
    CHECK_INT(n, 2);
    CHECK_INT(auth_revoke(a, made, &e), 0);
    CHECK_STR(id, made); /* calls that it began may still ask for its id */
    CHECK_INT(auth_allows(a, id, SCOPE_READ, &e), -1);
    CHECK_INT(auth_key(a, key, &id, &e), -1);
    auth_free(a);
    CHECK_INT(auth_new(store, HASH_ABC, &a, &e), 0);
    CHECK_INT(auth_key(a, key, &id, &e), -1);
    CHECK_INT(auth_revoke(a, made, &e), -1);
    CHECK_INT(e.kind, ERR_NOT_FOUND);
    done(a);
}

TEST(a_key_that_was_not_durable_is_unknown_after_a_restart)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    char key[AUTH_KEY_SIZE];
    struct auth_info info;
    int pipes[2];
    size_t n = 0;

    CHECK_INT(pipe(pipes), 0);
    store->log_fd = pipes[0]; /* which cannot be flushed */
    CHECK_INT(auth_create(a, "ci", true, key, &info, &e), -1);
    store->log_fd = -1;
    close(pipes[0]);
    close(pipes[1]);
    auth_free(a);
    CHECK_INT(auth_new(store, HASH_ABC, &a, &e), 0);
    auth_each(a, count, &n);
    CHECK_INT(n, 1);
    done(a);
}

TEST(the_first_key_cannot_be_revoked)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);

    CHECK_INT(auth_revoke(a, AUTH_ROOT, &e), -1);
    CHECK_INT(e.kind, ERR_CONFLICT);
    done(a);
}

TEST(keys_and_their_names_are_bounded)
{
    struct err e = {0};
    struct auth *a = auth_with(HASH_ABC, &e);
    char key[AUTH_KEY_SIZE], name[AUTH_NAME_MAX + 2] = "";
    struct auth_info info;
    int made = 1; /* the first */

    memset(name, 'n', AUTH_NAME_MAX + 1);
    CHECK_INT(auth_create(a, name, false, key, &info, &e), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    while (auth_create(a, "", false, key, &info, &e) == 0)
        made++;
    CHECK_INT(e.kind, ERR_LIMIT);
    CHECK_INT(made, AUTH_KEYS_MAX);
    done(a);
}
