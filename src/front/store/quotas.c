/* quotas.c - the table of quotas that single keys were given. */
#include "front/store/internal.h"

int store_quota_put(struct store *s, const char *key, const char *name, uint64_t value,
                    struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_QUOTA_PUT, "REPLACE INTO quotas (key, name, value) VALUES (?, ?, ?)", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, key);
    store_bind_text(q, 2, name);
    sqlite3_bind_int64(q, 3, (sqlite3_int64)value);
    return store_do(s, q, e) < 0 ? err_wrap(e, "quota %s of key %s", name, key) : 0;
}

int store_quota_delete(struct store *s, const char *key, const char *name, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_QUOTA_DELETE,
                                 "DELETE FROM quotas WHERE key = ?1 AND (?2 = '' OR name = ?2)", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, key);
    store_bind_text(q, 2, name);
    return store_do(s, q, e);
}

int store_quota_each(struct store *s,
                     void (*each)(void *arg, const char *key, const char *name, uint64_t value),
                     void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_QUOTA_EACH, "SELECT key, name, value FROM quotas", e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1)
        each(arg, store_text(q, 0), store_text(q, 1), (uint64_t)sqlite3_column_int64(q, 2));
    return r;
}
