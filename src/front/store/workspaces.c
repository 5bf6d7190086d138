/* workspaces.c - the tables of workspaces and of their named holders. */
#include "base/own.h"
#include "front/store/internal.h"

enum column_type { COLUMN_TEXT, COLUMN_NUMBER };

/* Bound and read in this order. */
static const struct column {
    enum column_type type;
    size_t offset;
} columns[] = {
#define X(type, name) {COLUMN_##type, offsetof(struct store_workspace, name)},
    STORE_WORKSPACE_COLUMNS(X)
#undef X
};

#define NAME(type, name) ", " #name
#define MARK(type, name) ", ?"
#define SET(type, name) ", " #name " = ?"
#define NAMES "seq" STORE_WORKSPACE_COLUMNS(NAME)

static void bind_all(sqlite3_stmt *q, const struct store_workspace *row)
{
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        const void *from = (const char *)row + columns[i].offset;

        if (columns[i].type == COLUMN_TEXT)
            store_bind_text(q, (int)i + 1, *(const char *const *)from);
        else
            sqlite3_bind_int64(q, (int)i + 1, (sqlite3_int64) * (const uint64_t *)from);
    }
}

int store_workspace_insert(struct store *s, struct store_workspace *row, struct err *e)
{
    sqlite3_stmt *q = store_stmt(
        s, STMT_WORKSPACE_INSERT,
        "INSERT INTO workspaces (" NAMES ") VALUES (NULL" STORE_WORKSPACE_COLUMNS(MARK) ")", e);

    if (q == NULL)
        return -1;
    bind_all(q, row);
    if (store_do(s, q, e) < 0)
        return err_wrap(e, "workspace %s", row->name);
    row->seq = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

int store_workspace_set(struct store *s, const struct store_workspace *row, struct err *e)
{
    sqlite3_stmt *q = store_stmt(
        s, STMT_WORKSPACE_SET,
        "UPDATE workspaces SET seq = seq" STORE_WORKSPACE_COLUMNS(SET) " WHERE seq = ?", e);

    if (q == NULL)
        return -1;
    bind_all(q, row);
    sqlite3_bind_int64(q, (int)ARRAY_LEN(columns) + 1, (sqlite3_int64)row->seq);
    return store_do(s, q, e) < 0 ? err_wrap(e, "workspace %s", row->name) : 0;
}

int store_workspace_delete(struct store *s, uint64_t seq, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_WORKSPACE_DELETE, "DELETE FROM workspaces WHERE seq = ?", e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)seq);
    return store_do(s, q, e);
}

int store_workspace_each(struct store *s,
                         int (*each)(void *arg, const struct store_workspace *row, struct err *e),
                         void *arg, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_WORKSPACE_EACH, "SELECT " NAMES " FROM workspaces ORDER BY seq", e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1) {
        struct store_workspace row = {.seq = (uint64_t)sqlite3_column_int64(q, 0)};

        for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
            void *to = (char *)&row + columns[i].offset;

            if (columns[i].type == COLUMN_TEXT)
                *(const char **)to = store_text(q, (int)i + 1);
            else
                *(uint64_t *)to = (uint64_t)sqlite3_column_int64(q, (int)i + 1);
        }
        if (each(arg, &row, e) < 0) {
            sqlite3_reset(q);
            return -1;
        }
    }
    return r;
}

/* ---- holders ---- */

static void bind_holder(sqlite3_stmt *q, const struct store_holder *row)
{
    sqlite3_bind_int64(q, 1, (sqlite3_int64)row->workspace);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)row->kind);
    store_bind_text(q, 3, row->id);
}

int store_holder_put(struct store *s, const struct store_holder *row, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_HOLDER_PUT,
                                 "REPLACE INTO holders (workspace, kind, id, epoch, ends_ms)"
                                 " VALUES (?, ?, ?, ?, ?)",
                                 e);

    if (q == NULL)
        return -1;
    bind_holder(q, row);
    sqlite3_bind_int64(q, 4, (sqlite3_int64)row->epoch);
    sqlite3_bind_int64(q, 5, (sqlite3_int64)row->ends_ms);
    return store_do(s, q, e) < 0 ? err_wrap(e, "holder %s", row->id) : 0;
}

int store_holder_delete(struct store *s, const struct store_holder *row, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_HOLDER_DELETE,
                   "DELETE FROM holders WHERE workspace = ? AND kind = ? AND id = ?", e);

    if (q == NULL)
        return -1;
    bind_holder(q, row);
    return store_do(s, q, e);
}

int store_holders_expire(struct store *s, uint64_t now_ms, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_HOLDERS_EXPIRE, "DELETE FROM holders WHERE ends_ms <= ?", e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)now_ms);
    return store_do(s, q, e) < 0 ? err_wrap(e, "holders whose time is over") : 0;
}

int store_holder_each(struct store *s, void (*each)(void *arg, const struct store_holder *row),
                      void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_HOLDER_EACH,
                                 "SELECT workspace, kind, id, epoch, ends_ms FROM holders"
                                 " ORDER BY workspace",
                                 e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1)
        each(arg, &(struct store_holder){.workspace = (uint64_t)sqlite3_column_int64(q, 0),
                                         .kind = (uint64_t)sqlite3_column_int64(q, 1),
                                         .id = store_text(q, 2),
                                         .epoch = (uint64_t)sqlite3_column_int64(q, 3),
                                         .ends_ms = (uint64_t)sqlite3_column_int64(q, 4)});
    return r;
}
