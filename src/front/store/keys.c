/* keys.c - the table of API keys: hashes only. */
#include <string.h>

#include "front/store/internal.h"

int store_key_put(struct store *s, const struct store_key *k, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_KEY_PUT,
                                 "INSERT INTO keys (id, name, hash, created_ms, revoked, admin)"
                                 " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
                                 " SET name = excluded.name, hash = excluded.hash,"
                                 " revoked = excluded.revoked, admin = excluded.admin",
                                 e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, k->id);
    store_bind_text(q, 2, k->name);
    sqlite3_bind_blob(q, 3, k->hash, STORE_HASH, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, (sqlite3_int64)k->created_ms);
    sqlite3_bind_int(q, 5, k->revoked);
    sqlite3_bind_int(q, 6, k->admin);
    return store_do(s, q, e) < 0 ? err_wrap(e, "key %s", k->id) : 0;
}

int store_key_delete(struct store *s, const char *id, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_KEY_DELETE, "DELETE FROM keys WHERE id = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, id);
    return store_do(s, q, e);
}

static int take(sqlite3_stmt *q, struct store_key *k, struct err *e)
{
    const void *hash = sqlite3_column_blob(q, 2);

    k->id = store_text(q, 0);
    k->name = store_text(q, 1);
    if (sqlite3_column_bytes(q, 2) != STORE_HASH)
        return err_set(e, ERR_INTERNAL, "database: the hash of key %s is malformed", k->id);
    memcpy(k->hash, hash, STORE_HASH);
    k->created_ms = (uint64_t)sqlite3_column_int64(q, 3);
    k->revoked = sqlite3_column_int(q, 4) != 0;
    k->admin = sqlite3_column_int(q, 5) != 0;
    return 0;
}

int store_key_each(struct store *s,
                   int (*each)(void *arg, const struct store_key *k, struct err *e), void *arg,
                   struct err *e)
{
    sqlite3_stmt *q = store_stmt(
        s, STMT_KEY_EACH,
        "SELECT id, name, hash, created_ms, revoked, admin FROM keys ORDER BY created_ms, id", e);
    struct store_key k;
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1) {
        if (take(q, &k, e) < 0 || each(arg, &k, e) < 0) {
            sqlite3_reset(q);
            return -1;
        }
    }
    return r;
}
