/* quota.c - see quota.h. */
#include "front/quota/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "mem/mem.h"

struct quota_book {
    struct map users;
    struct quotas defaults;
};

/* clang-format off */
static const struct {
    const char *name, *counts;
    uint64_t largest;
} rows[QUOTA_COUNT] = {
#define ROW(A, B, member, name, type, def, max, doc) [QUOTA_##member] = {name, doc, max},
    QUOTAS(ROW, _, _)
#undef ROW
};
/* clang-format on */

struct quota_book *quota_book_new(const struct quotas *defaults)
{
    struct quota_book *b = mem_zeroed(1, sizeof(*b));

    map_init(&b->users);
    b->defaults = *defaults;
    return b;
}

void quota_book_free(struct quota_book *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->users.nslots; i++) {
        while (b->users.slots[i] != NULL) {
            struct quota_user *u = CONTAINER_OF(b->users.slots[i], struct quota_user, node);

            map_del(&b->users, &u->node);
            free(u);
        }
    }
    map_free(&b->users);
    free(b);
}

struct quota_user *quota_user(struct quota_book *b, const char *key)
{
    struct map_node *n = b == NULL ? NULL : map_get(&b->users, key);
    struct quota_user *u;

    if (n != NULL || b == NULL)
        return n == NULL ? NULL : CONTAINER_OF(n, struct quota_user, node);
    u = mem_zeroed(1, sizeof(*u) + strlen(key) + 1);
    strcpy(u->key, key);
    u->most = b->defaults;
    if (map_put(&b->users, &u->node, u->key) < 0)
        abort(); /* as mem.h does */
    return u;
}

void quota_allow(struct quota_book *b, const char *key, bool admin, const struct quota_own *own)
{
    struct quota_user *u = quota_user(b, key);

    for (size_t i = 0; u != NULL && i < QUOTA_COUNT; i++)
        u->most.of[i] = own->has[i] ? own->values.of[i] : admin ? 0 : b->defaults.of[i];
}

/* Sums cannot overflow: a limit is below 2^56, and what has none is not compared. */
int quota_check(const struct quota_user *u, const struct quotas *more, struct err *e)
{
    for (size_t i = 0; u != NULL && i < QUOTA_COUNT; i++) {
        uint64_t most = u->most.of[i], used = u->used.of[i];

        if (more->of[i] == 0 || most == 0 || (used <= most && more->of[i] <= most - used))
            continue;
        return err_set(e, ERR_LIMIT,
                       "quota %s of this key: %llu of %llu in use, %llu more needed (%s); free "
                       "some, or let an admin raise it (`cove key update`)",
                       rows[i].name, (unsigned long long)used, (unsigned long long)most,
                       (unsigned long long)more->of[i], rows[i].counts);
    }
    return 0;
}

void quota_add(struct quota_user *u, const struct quotas *what)
{
    for (size_t i = 0; u != NULL && i < QUOTA_COUNT; i++)
        u->used.of[i] += what->of[i];
}

void quota_drop(struct quota_user *u, const struct quotas *what)
{
    for (size_t i = 0; u != NULL && i < QUOTA_COUNT; i++)
        u->used.of[i] -= what->of[i];
}

const char *quota_name(enum quota q)
{
    return rows[q].name;
}

uint64_t quota_largest(enum quota q)
{
    return rows[q].largest;
}

enum quota quota_named(const char *name)
{
    size_t i = 0;

    while (i < QUOTA_COUNT && strcmp(rows[i].name, name) != 0)
        i++;
    return (enum quota)i;
}
