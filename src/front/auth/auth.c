/* auth.c - see auth.h. */
#include "front/auth/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/list.h"
#include "front/store/store.h"

#define AUTH_ID_MAX 64
#define AUTH_FIRST_NAME "first key"

struct key {
    struct list link;
    unsigned char hash[AUTH_HASH];
    char id[AUTH_ID_MAX];
};

struct auth {
    struct list keys; /* those not revoked; few, so a list that is always walked whole */
};

_Static_assert(AUTH_HASH == STORE_HASH, "both are SHA-256");

static int keep(void *arg, const struct store_key *k, struct err *e)
{
    struct auth *a = arg;
    struct key *n;

    if (k->revoked)
        return 0;
    if (strlen(k->id) >= AUTH_ID_MAX)
        return err_set(e, ERR_INTERNAL, "a key's id is too long");
    n = calloc(1, sizeof(*n));
    if (n == NULL)
        return err_set(e, ERR_INTERNAL, "keys: out of memory");
    memcpy(n->hash, k->hash, AUTH_HASH);
    strcpy(n->id, k->id);
    list_add_tail(&a->keys, &n->link);
    return 0;
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
    struct auth *a = calloc(1, sizeof(*a));

    if (a == NULL)
        return err_set(e, ERR_INTERNAL, "auth: out of memory");
    list_init(&a->keys);
    if (put_first(store, first_hash, e) < 0 || store_key_each(store, keep, a, e) < 0) {
        auth_free(a);
        return err_wrap(e, "API keys");
    }
    *ret = a;
    return 0;
}

void auth_free(struct auth *a)
{
    struct key *k;

    if (a == NULL)
        return;
    LIST_EACH (&a->keys, k, struct key, link) {
        free(k);
    }
    free(a);
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
    if (EVP_Digest(presented, strlen(presented), hash, NULL, EVP_sha256(), NULL) != 1)
        return err_set(e, ERR_INTERNAL, "SHA-256 is not available");
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
    bool root = key_id != NULL && strcmp(key_id, AUTH_ROOT) == 0;
    bool allowed[SCOPE_COUNT] = {
        [SCOPE_PUBLIC] = true,
        [SCOPE_READ] = key_id != NULL,
        [SCOPE_RUN] = key_id != NULL,
        [SCOPE_ADMIN] = root,
    };

    (void)a;
    if (needs < SCOPE_COUNT && allowed[needs])
        return 0;
    return err_set(e, ERR_DENIED, "this API key may not do that");
}
