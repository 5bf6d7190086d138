/* auth.c - see auth.h. */
#include "front/auth/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/list.h"
#include "base/str.h"
#include "front/store/store.h"
#include "mem/mem.h"

#define AUTH_ID_MAX 64
#define AUTH_ID_PREFIX "key"
#define AUTH_ID_RANDOM 12
#define AUTH_FIRST_NAME "first key"

struct key {
    struct list link;
    unsigned char hash[AUTH_HASH];
    bool admin;
    uint64_t created_ms;
    struct quota_own quotas;
    char id[AUTH_ID_MAX], name[AUTH_NAME_MAX + 1];
};

struct auth {
    struct store *store;
    struct quota_book *book; /* or NULL */
    struct list keys;        /* those not revoked; few, so a list that is always walked whole */
    struct list revoked;     /* since we began: requests under way still point to their ids */
    size_t nkeys;
};

_Static_assert(AUTH_HASH == STORE_HASH, "both are SHA-256");

static struct key *add(struct auth *a, const struct store_key *k)
{
    struct key *n = mem_zeroed(1, sizeof(*n));

    memcpy(n->hash, k->hash, AUTH_HASH);
    n->admin = k->admin || strcmp(k->id, AUTH_ROOT) == 0;
    n->created_ms = k->created_ms;
    str_fmt(n->id, sizeof(n->id), "%s", k->id);
    str_fmt(n->name, sizeof(n->name), "%s", k->name);
    list_add_tail(&a->keys, &n->link);
    a->nkeys++;
    return n;
}

static int keep(void *arg, const struct store_key *k, struct err *e)
{
    if (k->revoked)
        return 0;
    if (strlen(k->id) >= AUTH_ID_MAX || strlen(k->name) > AUTH_NAME_MAX)
        return err_set(e, ERR_INTERNAL, "a key's id or name is too long");
    add(arg, k);
    return 0;
}

static struct key *find(struct auth *a, const char *id)
{
    struct key *k;

    LIST_EACH (&a->keys, k, struct key, link)
        if (strcmp(k->id, id) == 0)
            return k;
    return NULL;
}

/* One of a newer release, or of a key that is gone, is ignored. */
static void keep_quota(void *arg, const char *key, const char *name, uint64_t value)
{
    struct key *k = find(arg, key);
    enum quota q = quota_named(name);

    if (k == NULL || q == QUOTA_COUNT)
        return;
    k->quotas.has[q] = true;
    k->quotas.values.of[q] = value;
}

static int nibble(char c)
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    const char *p = c != '\0' ? strchr(hex, c) : NULL;

    return p == NULL ? -1 : (int)((p - hex) % 16);
}

static int unhex(const char *text, unsigned char out[AUTH_HASH], struct err *e)
{
    if (strlen(text) != 2 * AUTH_HASH)
        return err_set(e, ERR_INVALID, "the first key's hash is not 64 hex digits");
    for (size_t i = 0; i < AUTH_HASH; i++) {
        int hi = nibble(text[2 * i]), lo = nibble(text[2 * i + 1]);

        if (hi < 0 || lo < 0)
            return err_set(e, ERR_INVALID, "the first key's hash is not 64 hex digits");
        out[i] = (unsigned char)(hi << 4 | lo);
    }
    return 0;
}

static int put_first(struct store *store, const char *first_hash, struct err *e)
{
    struct store_key k = {.id = AUTH_ROOT, .name = AUTH_FIRST_NAME, .created_ms = clock_real_ms()};

    if (first_hash == NULL)
        return 0;
    return unhex(first_hash, k.hash, e) < 0 ? -1 : store_key_put(store, &k, e);
}

int auth_new(struct store *store, const char *first_hash, struct auth **ret, struct err *e)
{
    struct auth *a = mem_zeroed(1, sizeof(*a));

    a->store = store;
    list_init(&a->keys);
    list_init(&a->revoked);
    if (put_first(store, first_hash, e) < 0 || store_key_each(store, keep, a, e) < 0 ||
        store_quota_each(store, keep_quota, a, e) < 0) {
        auth_free(a);
        return err_wrap(e, "API keys");
    }
    *ret = a;
    return 0;
}

static void free_all(struct list *keys)
{
    struct key *k;

    while ((k = LIST_FIRST(keys, struct key, link)) != NULL) {
        list_del(&k->link);
        free(k);
    }
}

void auth_free(struct auth *a)
{
    if (a == NULL)
        return;
    free_all(&a->keys);
    free_all(&a->revoked);
    free(a);
}

static int hash_of(const char *key, unsigned char out[AUTH_HASH], struct err *e)
{
    static EVP_MD *sha256; /* looking for it takes longer than using it */

    if (sha256 == NULL)
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (sha256 == NULL || EVP_Digest(key, strlen(key), out, NULL, sha256, NULL) != 1)
        return err_set(e, ERR_INTERNAL, "SHA-256 is not available");
    return 0;
}

/* The value of an Authorization header has its scheme in front; X-API-Key does not. */
static const char *bare(const char *presented)
{
    static const char scheme[] = "Bearer ";

    if (strncasecmp(presented, scheme, sizeof(scheme) - 1) != 0)
        return presented;
    presented += sizeof(scheme) - 1;
    return presented + strspn(presented, " ");
}

int auth_key(struct auth *a, const char *presented, const char **ret_key_id, struct err *e)
{
    unsigned char hash[AUTH_HASH];
    const struct key *found = NULL;
    struct key *k;

    if (presented == NULL)
        return err_set(e, ERR_UNAUTHORIZED, "an API key is needed (Authorization: Bearer KEY)");
    presented = bare(presented);
    if (*presented == '\0' || strnlen(presented, AUTH_PRESENTED_MAX) >= AUTH_PRESENTED_MAX)
        return err_set(e, ERR_UNAUTHORIZED, "this is not an API key");
    if (hash_of(presented, hash, e) < 0)
        return -1;
    /* No early end: how long this takes says nothing about which key matched. */
    LIST_EACH (&a->keys, k, struct key, link) {
        if (CRYPTO_memcmp(k->hash, hash, AUTH_HASH) == 0)
            found = k;
    }
    if (found == NULL)
        return err_set(e, ERR_UNAUTHORIZED, "this API key is not known here");
    *ret_key_id = found->id;
    return 0;
}

int auth_allows(struct auth *a, const char *key_id, enum scope needs, struct err *e)
{
    const struct key *k = key_id != NULL ? find(a, key_id) : NULL;
    bool allowed[SCOPE_COUNT] = {
        [SCOPE_PUBLIC] = true,
        [SCOPE_READ] = k != NULL,
        [SCOPE_RUN] = k != NULL,
        [SCOPE_ADMIN] = k != NULL && k->admin,
    };

    if (needs < SCOPE_COUNT && allowed[needs])
        return 0;
    return err_set(e, ERR_DENIED, "this API key may not do that");
}

/* ---- keys ---- */

static struct auth_info info_of(const struct key *k)
{
    return (struct auth_info){.id = k->id,
                              .name = k->name,
                              .created_ms = k->created_ms,
                              .admin = k->admin,
                              .quotas = &k->quotas};
}

static void allow(struct auth *a, const struct key *k)
{
    if (a->book != NULL)
        quota_allow(a->book, k->id, k->admin, &k->quotas);
}

void auth_keep_book(struct auth *a, struct quota_book *book)
{
    struct key *k;

    a->book = book;
    LIST_EACH (&a->keys, k, struct key, link)
        allow(a, k);
}

struct quota_user *auth_user(struct auth *a, const char *key_id)
{
    return quota_user(a->book, key_id);
}

int auth_get(struct auth *a, const char *id, struct auth_info *ret, struct err *e)
{
    const struct key *k = find(a, id);

    if (k == NULL)
        return err_set(e, ERR_NOT_FOUND, "no API key %.64s; `cove key list` shows the ids", id);
    *ret = info_of(k);
    return 0;
}

static int store_quotas(struct auth *a, const char *id, const struct quota_own *change,
                        const bool reset[QUOTA_COUNT], struct err *e)
{
    int r = store_begin(a->store, e);

    for (enum quota q = 0; r == 0 && q < QUOTA_COUNT; q++) {
        if (change->has[q])
            r = store_quota_put(a->store, id, quota_name(q), change->values.of[q], e);
        else if (reset[q])
            r = store_quota_delete(a->store, id, quota_name(q), e);
    }
    if (r == 0 && store_commit(a->store, e) == 0)
        return 0;
    store_rollback(a->store);
    return err_wrap(e, "API keys");
}

int auth_set_quotas(struct auth *a, const char *id, const struct quota_own *change,
                    const bool reset[QUOTA_COUNT], struct err *e)
{
    struct key *k = find(a, id);

    if (k == NULL)
        return err_set(e, ERR_NOT_FOUND, "no API key %.64s; `cove key list` shows the ids", id);
    if (store_quotas(a, id, change, reset, e) < 0)
        return -1;
    for (size_t q = 0; q < QUOTA_COUNT; q++) {
        k->quotas.has[q] = change->has[q] || (k->quotas.has[q] && !reset[q]);
        if (change->has[q])
            k->quotas.values.of[q] = change->values.of[q];
    }
    allow(a, k);
    return 0;
}

/* Durable first: a key that a client has works after any crash. */
static struct key *put_new(struct auth *a, const char *key, const char *name, bool admin,
                           struct err *e)
{
    char id[sizeof(AUTH_ID_PREFIX) + AUTH_ID_RANDOM] = AUTH_ID_PREFIX;
    struct store_key row = {.id = id, .name = name, .created_ms = clock_real_ms(), .admin = admin};
    struct key *k = NULL;
    struct err ignored;

    id_random(id + strlen(id), AUTH_ID_RANDOM);
    if (hash_of(key, row.hash, e) == 0 && store_key_put(a->store, &row, e) == 0)
        k = add(a, &row);
    if (k != NULL)
        allow(a, k);
    else /* its row may be there, if only the disk did not confirm it */
        store_key_delete(a->store, id, &ignored);
    return k;
}

int auth_create(struct auth *a, const char *name, bool admin, char key[AUTH_KEY_SIZE],
                struct auth_info *ret, struct err *e)
{
    unsigned char random[AUTH_KEY_RANDOM];
    const struct key *k;

    if (strlen(name) > AUTH_NAME_MAX)
        return err_set(e, ERR_INVALID, "name: at most %d bytes", AUTH_NAME_MAX);
    if (a->nkeys >= AUTH_KEYS_MAX)
        return err_set(e, ERR_LIMIT, "there are %d keys already; revoke some", AUTH_KEYS_MAX);
    id_bytes(random, sizeof(random));
    strcpy(key, AUTH_KEY_PREFIX);
    str_hex(key + strlen(key), random, sizeof(random));
    OPENSSL_cleanse(random, sizeof(random));
    k = put_new(a, key, name, admin, e);
    if (k == NULL)
        return err_wrap(e, "API keys");
    *ret = info_of(k);
    return 0;
}

void auth_each(struct auth *a, void (*each)(void *arg, const struct auth_info *k), void *arg)
{
    struct key *k;

    LIST_EACH (&a->keys, k, struct key, link) {
        struct auth_info info = info_of(k);

        each(arg, &info);
    }
}

int auth_revoke(struct auth *a, const char *id, struct err *e)
{
    struct key *k = find(a, id);

    if (k == NULL)
        return err_set(e, ERR_NOT_FOUND, "no API key %.64s", id);
    if (strcmp(id, AUTH_ROOT) == 0)
        return err_set(e, ERR_CONFLICT,
                       "the first key is the file api-key of the state directory: change it there");
    /* quotas of a key that is gone are ignored */
    if (store_key_delete(a->store, id, e) < 0 || store_quota_delete(a->store, id, "", e) < 0)
        return err_wrap(e, "API keys");
    list_del(&k->link);
    list_add_tail(&a->revoked, &k->link);
    a->nkeys--;
    return 0;
}
