/* quota.c - see quota.h. */
#include "front/quota/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "mem/mem.h"

struct quota_book {
    struct map users;
    struct quotas defaults;
    uint64_t held, held_max;
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
    u->book = b;
    u->most = b->defaults;
    mem_put(&b->users, &u->node, u->key);
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

uint64_t quota_left(const struct quota_user *u, enum quota q)
{
    if (u == NULL || u->most.of[q] == 0)
        return UINT64_MAX;
    return u->used.of[q] < u->most.of[q] ? u->most.of[q] - u->used.of[q] : 0;
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

int quota_take(struct quota_user *u, enum quota q, struct err *e)
{
    struct quotas one = {0};

    one.of[q] = 1;
    if (quota_check(u, &one, e) < 0)
        return -1;
    quota_add(u, &one);
    return 0;
}

void quota_give(struct quota_user *u, enum quota q)
{
    if (u != NULL)
        u->used.of[q]--;
}

int quota_request(struct quota_user *u, uint64_t now_ms, struct err *e)
{
    if (u == NULL)
        return 0;
    if (u->second != now_ms / 1000) {
        u->second = now_ms / 1000;
        u->used.of[QUOTA_requests] = 0;
    }
    return quota_take(u, QUOTA_requests, e);
}

/* ---- memory ---- */

void quota_hold_max(struct quota_book *b, uint64_t bytes)
{
    b->held_max = bytes;
}

uint64_t quota_held(const struct quota_book *b)
{
    return b->held;
}

int quota_hold(struct quota_user *u, uint64_t more, struct err *e)
{
    struct quotas what = {{[QUOTA_buffers] = more}};
    struct quota_book *b;

    if (u == NULL)
        return 0;
    b = u->book;
    if (quota_check(u, &what, e) < 0)
        return -1;
    if (b->held_max != 0 && (b->held > b->held_max || more > b->held_max - b->held))
        return err_set(e, ERR_UNAVAILABLE,
                       "the server holds %llu bytes for requests, of %llu (the setting "
                       "buffers-max), and this one needs %llu; try again",
                       (unsigned long long)b->held, (unsigned long long)b->held_max,
                       (unsigned long long)more);
    quota_add(u, &what);
    b->held += more;
    return 0;
}

void quota_release(struct quota_user *u, uint64_t less)
{
    struct quotas what = {{[QUOTA_buffers] = less}};

    if (u == NULL)
        return;
    quota_drop(u, &what);
    u->book->held -= less;
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
