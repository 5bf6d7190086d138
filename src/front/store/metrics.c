/* metrics.c - usage samples of sandboxes. Numbered in the order of time: the oldest have the
 * lowest numbers. */
#include "front/store/internal.h"

#define PRUNE_AT_ONCE "20000" /* rows; bounds how long clients wait */

int store_point_add(struct store *s, const struct store_point *p, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_POINT_ADD,
                   "INSERT INTO points (sandbox, at_ms, cpu_milli, memory, cache, disk,"
                   " pids, in_bytes, out_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   e);
    const uint64_t values[] = {p->sandbox, p->at_ms, p->cpu_milli, p->memory,   p->cache,
                               p->disk,    p->pids,  p->in_bytes,  p->out_bytes};

    if (q == NULL)
        return -1;
    for (int i = 0; i < 9; i++)
        sqlite3_bind_int64(q, i + 1, (sqlite3_int64)values[i]);
    return store_do(s, q, e);
}

static void take(sqlite3_stmt *q, struct store_point *p)
{
    uint64_t *const to[] = {&p->sandbox, &p->at_ms, &p->cpu_milli, &p->memory,   &p->cache,
                            &p->disk,    &p->pids,  &p->in_bytes,  &p->out_bytes};

    for (int i = 0; i < 9; i++)
        *to[i] = (uint64_t)sqlite3_column_int64(q, i);
}

int store_point_each(struct store *s, const struct store_span *span,
                     void (*each)(void *arg, const struct store_point *p), void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_POINT_EACH,
                                 "SELECT * FROM (SELECT sandbox, at_ms, cpu_milli, memory, cache,"
                                 " disk, pids, in_bytes, out_bytes FROM points WHERE sandbox = ?"
                                 " AND at_ms BETWEEN ? AND ? ORDER BY at_ms DESC LIMIT ?)"
                                 " ORDER BY at_ms",
                                 e);
    struct store_point p;
    int r = q == NULL ? -1 : 0;

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)span->sandbox);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)span->since_ms);
    sqlite3_bind_int64(q, 3,
                       (sqlite3_int64)(span->until_ms > INT64_MAX ? INT64_MAX : span->until_ms));
    sqlite3_bind_int64(q, 4, (sqlite3_int64)span->limit);
    while ((r = store_step(s, q, e)) == 1) {
        take(q, &p);
        each(arg, &p);
    }
    return r;
}

int store_points_prune(struct store *s, uint64_t before_ms, uint64_t most, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_POINTS_PRUNE,
                                 "DELETE FROM points WHERE n IN (SELECT n FROM points ORDER BY n"
                                 " LIMIT " PRUNE_AT_ONCE ") AND (at_ms < ? OR"
                                 " n <= (SELECT max(n) FROM points) - ?)",
                                 e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)before_ms);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)most);
    return store_do(s, q, e);
}
