/* logs.c - log entries of sandboxes, numbered in the order of time. */
#include <string.h>

#include "front/store/internal.h"

#define PRUNE_AT_ONCE 2000u /* rows; takes some milliseconds, during which no client is served */

int store_log_add(struct store *s, const struct store_log *l, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_LOG_ADD,
                                 "INSERT INTO logs (sandbox, at_ms, level, message, fields, output)"
                                 " VALUES (?, ?, ?, ?, ?, ?)",
                                 e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)l->sandbox);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)l->at_ms);
    sqlite3_bind_int(q, 3, (int)l->level);
    store_bind_text(q, 4, l->message);
    store_bind_text(q, 5, l->fields);
    sqlite3_bind_int(q, 6, l->output);
    return store_do(s, q, e);
}

#define SIZE "length(CAST(message AS BLOB)) + length(CAST(fields AS BLOB)) + 64"
#define RETURNING " RETURNING sandbox, " SIZE
_Static_assert(STORE_LOG_COST == 64, "SIZE says the same");

uint64_t store_log_size(const struct store_log *l)
{
    return strlen(l->message) + strlen(l->fields) + STORE_LOG_COST;
}

int store_log_sizes(struct store *s, void (*each)(void *arg, uint64_t sandbox, uint64_t bytes),
                    void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_LOGS_SIZES,
                                 "SELECT sandbox, sum(" SIZE ") FROM logs GROUP BY sandbox", e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1)
        each(arg, (uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
    return r;
}

void store_on_log_gone(struct store *s, void (*gone)(void *arg, uint64_t sandbox, uint64_t bytes),
                       void *arg)
{
    s->log_gone = gone;
    s->log_gone_arg = arg;
}

/* Runs a delete that returns what it deleted; *ret: how many. */
static int run_delete(struct store *s, sqlite3_stmt *q, uint64_t *ret, struct err *e)
{
    int r;

    *ret = 0;
    while ((r = store_step(s, q, e)) == 1) {
        ++*ret;
        if (s->log_gone != NULL)
            s->log_gone(s->log_gone_arg, (uint64_t)sqlite3_column_int64(q, 0),
                        (uint64_t)sqlite3_column_int64(q, 1));
    }
    return r;
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

int store_log_mark(struct store *s, uint64_t sandbox, const char *boot, uint64_t next,
                   struct err *e)
{
    sqlite3_stmt *q = store_stmt(
        s, STMT_LOG_MARK, "UPDATE sandboxes SET log_boot = ?, log_next = ? WHERE seq = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, boot);
    sqlite3_bind_int64(q, 2, bounded(next));
    sqlite3_bind_int64(q, 3, (sqlite3_int64)sandbox);
    return store_do(s, q, e);
}

int store_output_prune(struct store *s, uint64_t sandbox, uint64_t most, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_OUTPUT_PRUNE,
                                 "DELETE FROM logs WHERE sandbox = ?1 AND output = 1 AND n <="
                                 " (SELECT n FROM logs WHERE sandbox = ?1 AND output = 1"
                                 " ORDER BY n DESC LIMIT 1 OFFSET ?2)" RETURNING,
                                 e);
    uint64_t ignored;

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)sandbox);
    sqlite3_bind_int64(q, 2, bounded(most));
    return run_delete(s, q, &ignored, e);
}

int store_log_trim(struct store *s, uint64_t sandbox, uint64_t n, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_LOGS_TRIM,
                                 "DELETE FROM logs WHERE n IN (SELECT n FROM logs WHERE"
                                 " sandbox = ?1 ORDER BY n LIMIT ?2)" RETURNING,
                                 e);
    uint64_t ignored;

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)sandbox);
    sqlite3_bind_int64(q, 2, bounded(n));
    return run_delete(s, q, &ignored, e);
}

static int count_logs(struct store *s, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_LOG_COUNT, "SELECT count(*) FROM logs", e);
    int r = q == NULL ? -1 : store_step(s, q, e);

    if (r < 0)
        return -1;
    *ret = r == 1 ? (uint64_t)sqlite3_column_int64(q, 0) : 0;
    sqlite3_reset(q);
    return 0;
}

/* Runs a delete with two numbers; *gone: rows deleted. */
static int prune(struct store *s, sqlite3_stmt *q, uint64_t first, uint64_t second, uint64_t *gone,
                 struct err *e)
{
    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, bounded(first));
    sqlite3_bind_int64(q, 2, bounded(second));
    return run_delete(s, q, gone, e);
}

static uint64_t at_once(uint64_t n)
{
    return n < PRUNE_AT_ONCE ? n : PRUNE_AT_ONCE;
}

static int prune_more(struct store *s, uint64_t excess, uint64_t *gone, struct err *e)
{
    uint64_t output = 0, any = 0;

    if (excess > 0 &&
        prune(s,
              store_stmt(s, STMT_LOGS_PRUNE_OUTPUT,
                         "DELETE FROM logs WHERE n IN (SELECT n FROM logs WHERE output = ?1"
                         " ORDER BY n LIMIT ?2)" RETURNING,
                         e),
              1, at_once(excess), &output, e) < 0)
        return -1;
    if (output < at_once(excess) &&
        prune(s,
              store_stmt(s, STMT_LOGS_PRUNE,
                         "DELETE FROM logs WHERE n IN (SELECT n FROM logs WHERE ?1"
                         " ORDER BY n LIMIT ?2)" RETURNING,
                         e),
              1, at_once(excess) - output, &any, e) < 0)
        return -1;
    *gone = output + any;
    return 0;
}

int store_logs_prune(struct store *s, uint64_t before_ms, uint64_t most, bool *ret_more,
                     struct err *e)
{
    uint64_t have, old, gone;

    if (prune(s,
              store_stmt(s, STMT_LOGS_PRUNE_OLD,
                         "DELETE FROM logs WHERE n IN (SELECT n FROM logs ORDER BY n LIMIT ?2)"
                         " AND at_ms < ?1" RETURNING,
                         e),
              before_ms, PRUNE_AT_ONCE, &old, e) < 0 ||
        count_logs(s, &have, e) < 0 || prune_more(s, have > most ? have - most : 0, &gone, e) < 0)
        return -1;
    *ret_more = old == PRUNE_AT_ONCE || gone == PRUNE_AT_ONCE;
    return 0;
}
