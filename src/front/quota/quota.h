/* quota.h - what each API key may have, and what it has.
 *
 * One book for the front. A user is the account of one key: its limits and what is counted to it.
 * Every check and every change is O(1). What is under way counts as well: a caller adds before it
 * asks the keeper and drops when that failed. Nothing of this is stored; the counts are made again
 * from what exists when the front starts.
 *
 * A NULL user has no limits and counts nothing. */
#ifndef FRONT_QUOTA_QUOTA_H
#define FRONT_QUOTA_QUOTA_H

#include <stdbool.h>

#include "base/err.h"
#include "base/map.h"
#include "base/quotas.h"

struct quota_book;

struct quota_user {
    struct map_node node;
    struct quota_book *book;
    size_t log_pending; /* entries of logs that are not written yet */
    uint64_t second;    /* in which the requests in `used` came */
    struct quotas most; /* 0: no limit */
    struct quotas used;
    char key[];
};

/* What a key was given instead of the settings. */
struct quota_own {
    bool has[QUOTA_COUNT];
    struct quotas values;
};

/* `defaults` are copied. */
struct quota_book *quota_book_new(const struct quotas *defaults);
/* What all users together may hold (quota_hold()); 0: no limit. */
void quota_hold_max(struct quota_book *b, uint64_t bytes);
uint64_t quota_held(const struct quota_book *b);
void quota_book_free(struct quota_book *b);

/* The account of a key, which lives as long as the book. NULL if the book is. */
struct quota_user *quota_user(struct quota_book *b, const char *key);
/* Its limits from now on. What is above a lower limit stays. An admin's key has only the limits
 * that it was given. */
void quota_allow(struct quota_book *b, const char *key, bool admin, const struct quota_own *own);

/* 0 if the user may have `more` as well, else ERR_LIMIT, which says what of and what to do. */
int quota_check(const struct quota_user *u, const struct quotas *more, struct err *e);
/* How much more it may have of one; UINT64_MAX without a limit. */
uint64_t quota_left(const struct quota_user *u, enum quota q);
void quota_add(struct quota_user *u, const struct quotas *what);
void quota_drop(struct quota_user *u, const struct quotas *what);

/* One request more at this time; ERR_LIMIT if there were too many in this second. */
int quota_request(struct quota_user *u, uint64_t now_ms, struct err *e);
/* quota_check() and quota_add() of one thing. */
int quota_take(struct quota_user *u, enum quota q, struct err *e);
void quota_give(struct quota_user *u, enum quota q);

/* Memory of the front, on the quota `buffers` and on the sum of all users. ERR_LIMIT beyond the
 * first, ERR_UNAVAILABLE beyond the second. */
int quota_hold(struct quota_user *u, uint64_t more, struct err *e);
void quota_release(struct quota_user *u, uint64_t less);

const char *quota_name(enum quota q);
/* Its place, or QUOTA_COUNT. */
enum quota quota_named(const char *name);
/* The largest value that it can be set to. */
uint64_t quota_largest(enum quota q);

#endif
