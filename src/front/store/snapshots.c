/* snapshots.c - the table of snapshots. */
#include "front/store/internal.h"

int store_snapshot_insert(struct store *s, struct store_snapshot *row, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SNAPSHOT_INSERT,
                                 "INSERT INTO snapshots (id, key, name, sandbox, template, bytes,"
                                 " created_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
                                 e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, row->id);
    store_bind_text(q, 2, row->key);
    store_bind_text(q, 3, row->name);
    store_bind_text(q, 4, row->sandbox);
    store_bind_text(q, 5, row->template);
    sqlite3_bind_int64(q, 6, (sqlite3_int64)row->bytes);
    sqlite3_bind_int64(q, 7, (sqlite3_int64)row->created_ms);
    if (store_do(s, q, e) < 0)
        return err_wrap(e, "snapshot %s", row->id);
    row->seq = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

int store_snapshot_delete(struct store *s, const char *id, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SNAPSHOT_DELETE, "DELETE FROM snapshots WHERE id = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, id);
    return store_do(s, q, e);
}

int store_snapshot_each(struct store *s,
                        int (*each)(void *arg, const struct store_snapshot *row, struct err *e),
                        void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SNAPSHOT_EACH,
                                 "SELECT seq, id, key, name, sandbox, template, bytes, created_ms"
                                 " FROM snapshots ORDER BY seq",
                                 e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1) {
        struct store_snapshot row = {.seq = (uint64_t)sqlite3_column_int64(q, 0),
                                     .id = store_text(q, 1),
                                     .key = store_text(q, 2),
                                     .name = store_text(q, 3),
                                     .sandbox = store_text(q, 4),
                                     .template = store_text(q, 5),
                                     .bytes = (uint64_t)sqlite3_column_int64(q, 6),
                                     .created_ms = (uint64_t)sqlite3_column_int64(q, 7)};

        if (each(arg, &row, e) < 0) {
            sqlite3_reset(q);
            return -1;
        }
    }
    return r;
}
