/* auth.h - who is asking, and what they may do.
 *
 * Only hashes of keys are known here; a presented key is hashed, compared in
 * constant time and forgotten. A key is never printed, logged or stored. */
#ifndef FRONT_AUTH_AUTH_H
#define FRONT_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "front/quota/quota.h"

struct auth;
struct store;

/* What E2B's clients of some versions insist on: their prefix, then hexadecimal
 * digits. 160 bits, so a plain hash suffices. */
#define AUTH_KEY_PREFIX "e2b_"
#define AUTH_KEY_RANDOM 20 /* bytes after the prefix */
#define AUTH_KEY_SIZE (sizeof(AUTH_KEY_PREFIX) + 2 * AUTH_KEY_RANDOM)
#define AUTH_PRESENTED_MAX 256
#define AUTH_HASH 32     /* bytes of SHA-256 */
#define AUTH_ROOT "root" /* id of the first key, which is always an admin's */
#define AUTH_KEYS_MAX 1000
#define AUTH_NAME_MAX 64 /* bytes of a key's name */

/* What a route needs. The zero value is what a forgotten decision gets. */
enum scope {
    SCOPE_NOBODY, /* refused for every key */
    SCOPE_PUBLIC, /* no key wanted */
    SCOPE_READ,
    SCOPE_RUN,
    SCOPE_ADMIN,
    SCOPE_COUNT
};

/* Loads every key that is not revoked. `store` is borrowed for the life of `a`. `first_hash`
 * (64 hex digits, or NULL) becomes or replaces the hash of key AUTH_ROOT. */
int auth_new(struct store *store, const char *first_hash, struct auth **ret, struct err *e);
void auth_free(struct auth *a);

/* The id of the key in the value of an `Authorization: Bearer K` or an
 * `X-API-Key: K` header (the whole value is given, with or without "Bearer ").
 * NULL, unknown or malformed: ERR_UNAUTHORIZED. *ret_key_id lives as long as `a`. */
int auth_key(struct auth *a, const char *presented, const char **ret_key_id, struct err *e);

/* 0 if that key may do what `needs` says, else ERR_DENIED. */
int auth_allows(struct auth *a, const char *key_id, enum scope needs, struct err *e);

/* ---- keys ---- */

struct auth_info { /* points into `a` */
    const char *id, *name;
    uint64_t created_ms;
    bool admin;
    const struct quota_own *quotas; /* that it was given */
};

/* From now on the book has the limits of every key, also of new ones. Borrowed for the life of `a`. */
void auth_keep_book(struct auth *a, struct quota_book *book);
/* The account of a key; NULL without a book. */
struct quota_user *auth_user(struct auth *a, const char *key_id);

/* Makes a key and writes it to `key`: it cannot be read again. Durable when it
 * returns. ERR_LIMIT at AUTH_KEYS_MAX. */
int auth_create(struct auth *a, const char *name, bool admin, char key[AUTH_KEY_SIZE],
                struct auth_info *ret, struct err *e);
/* ERR_NOT_FOUND. */
int auth_get(struct auth *a, const char *id, struct auth_info *ret, struct err *e);
/* What `change` has is set. Where it has not, `reset` gives the key back the value of the settings.
 * Durable when it returns; all or nothing. */
int auth_set_quotas(struct auth *a, const char *id, const struct quota_own *change,
                    const bool reset[QUOTA_COUNT], struct err *e);
/* Oldest first. */
void auth_each(struct auth *a, void (*each)(void *arg, const struct auth_info *k), void *arg);
/* From now on it is refused, also after a restart. ERR_NOT_FOUND;
 * ERR_CONFLICT for AUTH_ROOT, which is a file of root's. */
int auth_revoke(struct auth *a, const char *id, struct err *e);

#endif
