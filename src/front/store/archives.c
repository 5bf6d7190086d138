/* archives.c - the tables of archives, and of each key's part of their store. */
#include "front/store/internal.h"

int store_archive_insert(struct store *s, struct store_archive *row, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_ARCHIVE_INSERT,
                                 "INSERT INTO archives (key, owner, digest, space, template, base,"
                                 " entries, bytes, stored, created_ms)"
                                 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                 e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, row->key);
    store_bind_text(q, 2, row->owner);
    store_bind_text(q, 3, row->digest);
    store_bind_text(q, 4, row->space);
    store_bind_text(q, 5, row->template);
    store_bind_text(q, 6, row->base);
    sqlite3_bind_int64(q, 7, (sqlite3_int64)row->entries);
    sqlite3_bind_int64(q, 8, (sqlite3_int64)row->bytes);
    sqlite3_bind_int64(q, 9, (sqlite3_int64)row->stored);
    sqlite3_bind_int64(q, 10, (sqlite3_int64)row->created_ms);
    if (store_do(s, q, e) < 0)
        return err_wrap(e, "archive of %s", row->owner);
    row->seq = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

int store_archive_delete(struct store *s, uint64_t seq, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_ARCHIVE_DELETE, "DELETE FROM archives WHERE seq = ?", e);

    if (q == NULL)
        return -1;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)seq);
    return store_do(s, q, e);
}

int store_archive_each(struct store *s,
                       int (*each)(void *arg, const struct store_archive *row, struct err *e),
                       void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_ARCHIVE_EACH,
                                 "SELECT seq, key, owner, digest, space, template, base, entries,"
                                 " bytes, stored, created_ms FROM archives ORDER BY seq",
                                 e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1) {
        struct store_archive row = {.seq = (uint64_t)sqlite3_column_int64(q, 0),
                                    .key = store_text(q, 1),
                                    .owner = store_text(q, 2),
                                    .digest = store_text(q, 3),
                                    .space = store_text(q, 4),
                                    .template = store_text(q, 5),
                                    .base = store_text(q, 6),
                                    .entries = (uint64_t)sqlite3_column_int64(q, 7),
                                    .bytes = (uint64_t)sqlite3_column_int64(q, 8),
                                    .stored = (uint64_t)sqlite3_column_int64(q, 9),
                                    .created_ms = (uint64_t)sqlite3_column_int64(q, 10)};

        if (each(arg, &row, e) < 0) {
            sqlite3_reset(q);
            return -1;
        }
    }
    return r;
}

int store_space_put(struct store *s, const char *key, const char *space, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_SPACE_PUT, "INSERT INTO archive_spaces (key, space) VALUES (?, ?)", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, key);
    store_bind_text(q, 2, space);
    return store_do(s, q, e);
}

int store_space_each(struct store *s, void (*each)(void *arg, const char *key, const char *space),
                     void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_SPACE_EACH, "SELECT key, space FROM archive_spaces", e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1)
        each(arg, store_text(q, 0), store_text(q, 1));
    return r;
}
