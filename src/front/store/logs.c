/* logs.c - what happened to sandboxes, in words. Numbered in the order of time. */
#include "front/store/inside.h"

#define PRUNE_AT_ONCE "20000"

int store_log_add(struct store *s, const struct store_log *l, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_LOG_ADD,
                                 "INSERT INTO logs (sandbox, at_ms, level, message, fields)"
                                 " VALUES (?, ?, ?, ?, ?)",
                                 e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)l->sandbox);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)l->at_ms);
    sqlite3_bind_int(q, 3, (int)l->level);
    store_bind_text(q, 4, l->message);
    store_bind_text(q, 5, l->fields);
    return store_do(s, q, e);
}

static sqlite3_stmt *each_stmt(struct store *s, bool backward, struct err *e)
{
    return backward ? store_stmt(s, STMT_LOG_BACKWARD,
                                 "SELECT n, sandbox, at_ms, level, message, fields FROM logs WHERE"
                                 " sandbox = ? AND n < ? AND at_ms <= ? ORDER BY n DESC LIMIT ?",
                                 e)
                    : store_stmt(s, STMT_LOG_FORWARD,
                                 "SELECT n, sandbox, at_ms, level, message, fields FROM logs WHERE"
                                 " sandbox = ? AND n > ? AND at_ms >= ? ORDER BY n LIMIT ?",
                                 e);
}

static int64_t bounded(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

int store_log_each(struct store *s, const struct store_log_span *span,
                   bool (*each)(void *arg, const struct store_log *l), void *arg, struct err *e)
{
    sqlite3_stmt *q = each_stmt(s, span->backward, e);
    int r = 0;

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)span->sandbox);
    sqlite3_bind_int64(q, 2, bounded(span->from));
    sqlite3_bind_int64(q, 3, bounded(span->from_ms));
    sqlite3_bind_int64(q, 4, (sqlite3_int64)span->limit);
    while ((r = store_step(s, q, e)) == 1) {
        struct store_log l = {.n = (uint64_t)sqlite3_column_int64(q, 0),
                              .sandbox = (uint64_t)sqlite3_column_int64(q, 1),
                              .at_ms = (uint64_t)sqlite3_column_int64(q, 2),
                              .level = (unsigned)sqlite3_column_int(q, 3),
                              .message = store_text(q, 4),
                              .fields = store_text(q, 5)};

        if (!each(arg, &l)) {
            sqlite3_reset(q);
            sqlite3_clear_bindings(q);
            return 0;
        }
    }
    return r;
}

int store_logs_prune(struct store *s, uint64_t before_ms, uint64_t most, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_LOGS_PRUNE,
                                 "DELETE FROM logs WHERE n IN (SELECT n FROM logs ORDER BY n"
                                 " LIMIT " PRUNE_AT_ONCE ") AND (at_ms < ? OR"
                                 " n <= (SELECT max(n) FROM logs) - ?)",
                                 e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)before_ms);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)most);
    return store_do(s, q, e);
}
