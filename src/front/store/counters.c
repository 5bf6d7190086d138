/* counters.c - numbers that are never given out twice in the life of a state directory. */
#include "front/store/internal.h"

int store_reserve(struct store *s, const char *counter, uint64_t count, uint64_t *ret_first,
                  struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_RESERVE,
                                 "INSERT INTO counters (name, next) VALUES (?1, 1 + ?2)"
                                 " ON CONFLICT (name) DO UPDATE SET next = next + ?2"
                                 " RETURNING next - ?2",
                                 e);
    int r;

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, counter);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)count);
    r = store_step(s, q, e);
    if (r == 1) {
        *ret_first = (uint64_t)sqlite3_column_int64(q, 0);
        /* The change is committed only when the statement has run to its end. */
        r = store_step(s, q, e);
        return r == 1 ? err_set(e, ERR_INTERNAL, "database: two rows for one counter") : r;
    }
    return r < 0 ? r : err_set(e, ERR_INTERNAL, "database: counter %s returned no row", counter);
}

#define JOINED "joined" /* store.c: the migration of a 0.1.0 database sets it */

int store_is_joined(struct store *s, bool *ret, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_JOINED, "SELECT 1 FROM counters WHERE name = '" JOINED "'", e);
    int r = q == NULL ? -1 : store_step(s, q, e);

    if (r < 0)
        return -1;
    *ret = r == 1;
    sqlite3_reset(q);
    return 0;
}

int store_set_joined(struct store *s, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_SET_JOINED,
                   "INSERT OR IGNORE INTO counters (name, next) VALUES ('" JOINED "', 1)", e);

    return q == NULL ? -1 : store_do(s, q, e);
}
