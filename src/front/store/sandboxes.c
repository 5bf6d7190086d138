/* sandboxes.c - the table of sandboxes. Rows of deleted ones are deleted. */
#include "base/own.h"
#include "front/store/internal.h"

enum column_type { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BYTES };

/* Bound and read in this order, after seq. */
static const struct column {
    enum column_type type;
    size_t offset;
} columns[] = {
#define X(type, name) {COLUMN_##type, offsetof(struct store_sandbox, name)},
    STORE_SANDBOX_COLUMNS(X)
#undef X
};

#define NAME(type, name) ", " #name
#define MARK(type, name) ", ?"
#define NAMES "seq" STORE_SANDBOX_COLUMNS(NAME)
static const char insert_sql[] =
    "INSERT INTO sandboxes (" NAMES ") VALUES (NULL" STORE_SANDBOX_COLUMNS(MARK) ")";
static const char each_sql[] = "SELECT " NAMES " FROM sandboxes ORDER BY seq";

static void bind(sqlite3_stmt *q, int at, const struct column *c, const void *from)
{
    const struct store_bytes *b = from;

    switch (c->type) {
    case COLUMN_TEXT:
        store_bind_text(q, at, *(const char *const *)from);
        return;
    case COLUMN_NUMBER:
        sqlite3_bind_int64(q, at, (sqlite3_int64) * (const uint64_t *)from);
        return;
    case COLUMN_BYTES:
        sqlite3_bind_blob64(q, at, b->len > 0 ? b->p : "", b->len, SQLITE_STATIC);
        return;
    }
}

static void take(sqlite3_stmt *q, int at, const struct column *c, void *to)
{
    switch (c->type) {
    case COLUMN_TEXT:
        *(const char **)to = store_text(q, at);
        return;
    case COLUMN_NUMBER:
        *(uint64_t *)to = (uint64_t)sqlite3_column_int64(q, at);
        return;
    case COLUMN_BYTES:
        /* Read the pointer first, then the length: reading the pointer may convert the value. */
        ((struct store_bytes *)to)->p = sqlite3_column_blob(q, at);
        ((struct store_bytes *)to)->len = (size_t)sqlite3_column_bytes(q, at);
        return;
    }
}

int store_sandbox_insert(struct store *s, struct store_sandbox *row, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SANDBOX_INSERT, insert_sql, e);

    if (q == NULL)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        bind(q, (int)i + 1, &columns[i], (const char *)row + columns[i].offset);
    if (store_do(s, q, e) < 0)
        return err_wrap(e, "sandbox %s", row->id);
    row->seq = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

static int change(struct store *s, sqlite3_stmt *q, const char *id, struct err *e)
{
    if (store_do(s, q, e) < 0)
        return err_wrap(e, "sandbox %s", id);
    if (sqlite3_changes(s->db) == 0)
        return err_set(e, ERR_NOT_FOUND, "no sandbox %s", id);
    return 0;
}

int store_sandbox_set_life(struct store *s, const char *id, const struct store_life *l,
                           struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SANDBOX_LIFE,
                                 "UPDATE sandboxes SET state = ?, boot_id = ?, reason = ?, ends_ms "
                                 "= ?, changed_ms = ? WHERE id = ?",
                                 e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int(q, 1, (int)l->state);
    store_bind_text(q, 2, l->boot_id);
    store_bind_text(q, 3, l->reason);
    sqlite3_bind_int64(q, 4, (sqlite3_int64)l->ends_ms);
    sqlite3_bind_int64(q, 5, (sqlite3_int64)l->changed_ms);
    store_bind_text(q, 6, id);
    return change(s, q, id, e);
}

int store_sandbox_set_ends(struct store *s, const char *id, uint64_t ends_ms, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_SANDBOX_ENDS, "UPDATE sandboxes SET ends_ms = ? WHERE id = ?", e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)ends_ms);
    store_bind_text(q, 2, id);
    return change(s, q, id, e);
}

int store_sandbox_set_rules(struct store *s, const char *id, const struct store_bytes *rules,
                            struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_SANDBOX_RULES, "UPDATE sandboxes SET rules = ? WHERE id = ?", e);

    if (q == NULL)
        return -1;
    sqlite3_bind_blob64(q, 1, rules->len > 0 ? rules->p : "", rules->len, SQLITE_STATIC);
    store_bind_text(q, 2, id);
    return change(s, q, id, e);
}

int store_sandbox_set_lost(struct store *s, const char *id, uint64_t lost_ms, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_SANDBOX_LOST, "UPDATE sandboxes SET lost_ms = ? WHERE id = ?", e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)lost_ms);
    store_bind_text(q, 2, id);
    return change(s, q, id, e);
}

int store_sandbox_set_about(struct store *s, const char *id, const struct store_about *a,
                            struct err *e)
{
#define SET(A, B, member, ...) ", " #member " = ?"
#define BIND(q, at, member, ...) sqlite3_bind_int64(q, (at)++, (sqlite3_int64)a->limits.member);
    sqlite3_stmt *q = store_stmt(s, STMT_SANDBOX_ABOUT,
                                 "UPDATE sandboxes SET name = ?, metadata = ?, on_timeout = ?, "
                                 "auto_resume = ?, relaxed = ?" LIMITS(SET, _, _) " WHERE id = ?",
                                 e);
    int at = 6;

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, a->name);
    store_bind_text(q, 2, a->metadata);
    sqlite3_bind_int64(q, 3, (sqlite3_int64)a->on_timeout);
    sqlite3_bind_int64(q, 4, (sqlite3_int64)a->auto_resume);
    sqlite3_bind_int64(q, 5, (sqlite3_int64)a->relaxed);
    LIMITS(BIND, q, at)
    store_bind_text(q, at, id);
#undef BIND
#undef SET
    return change(s, q, id, e);
}

int store_sandbox_delete(struct store *s, const char *id, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SANDBOX_DELETE, "DELETE FROM sandboxes WHERE id = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, id);
    return store_do(s, q, e);
}

int store_sandbox_each(struct store *s,
                       int (*each)(void *arg, const struct store_sandbox *row, struct err *e),
                       void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SANDBOX_EACH, each_sql, e);
    struct store_sandbox row;
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1) {
        row.seq = (uint64_t)sqlite3_column_int64(q, 0);
        for (size_t i = 0; i < ARRAY_LEN(columns); i++)
            take(q, (int)i + 1, &columns[i], (char *)&row + columns[i].offset);
        if (each(arg, &row, e) < 0) {
            sqlite3_reset(q);
            return -1;
        }
    }
    return r;
}
