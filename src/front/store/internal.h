/* internal.h - shared by the files of the store. */
#ifndef FRONT_STORE_INTERNAL_H
#define FRONT_STORE_INTERNAL_H

#include <sqlite3.h>

#include "front/store/store.h"

enum store_stmt {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_ROLLBACK,
    STMT_SANDBOX_INSERT,
    STMT_SANDBOX_LIFE,
    STMT_SANDBOX_ENDS,
    STMT_SANDBOX_RULES,
    STMT_SANDBOX_LOST,
    STMT_SANDBOX_ABOUT,
    STMT_SANDBOX_DELETE,
    STMT_SANDBOX_EACH,
    STMT_KEY_PUT,
    STMT_KEY_DELETE,
    STMT_KEY_EACH,
    STMT_QUOTA_PUT,
    STMT_QUOTA_DELETE,
    STMT_QUOTA_EACH,
    STMT_TEMPLATE_PUT,
    STMT_TEMPLATE_DELETE,
    STMT_TEMPLATE_EACH,
    STMT_TUNNEL_PUT,
    STMT_TUNNEL_GET,
    STMT_TUNNEL_COUNT,
    STMT_TUNNEL_DELETE,
    STMT_RESERVE,
    STMT_JOINED,
    STMT_SET_JOINED,
    STMT_POINT_ADD,
    STMT_POINT_EACH,
    STMT_POINTS_PRUNE,
    STMT_LOG_ADD,
    STMT_LOG_FORWARD,
    STMT_LOG_BACKWARD,
    STMT_LOG_MARK,
    STMT_LOG_COUNT,
    STMT_OUTPUT_PRUNE,
    STMT_LOGS_PRUNE,
    STMT_LOGS_PRUNE_OUTPUT,
    STMT_LOGS_PRUNE_OLD,
    STMT_LOGS_TRIM,
    STMT_LOGS_SIZES,
    STMT_SNAPSHOT_INSERT,
    STMT_SNAPSHOT_DELETE,
    STMT_SNAPSHOT_EACH,
    STMT_ARCHIVE_INSERT,
    STMT_ARCHIVE_DELETE,
    STMT_ARCHIVE_EACH,
    STMT_SPACE_PUT,
    STMT_SPACE_EACH,
    STMT_WORKSPACE_INSERT,
    STMT_WORKSPACE_SET,
    STMT_WORKSPACE_DELETE,
    STMT_WORKSPACE_EACH,
    STMT_HOLDER_PUT,
    STMT_HOLDER_DELETE,
    STMT_HOLDERS_EXPIRE,
    STMT_HOLDER_EACH,
    STMT_COUNT
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *stmts[STMT_COUNT];                               /* prepared at first use, kept */
    bool light;                                                    /* no flush at this commit */
    void (*log_gone)(void *arg, uint64_t sandbox, uint64_t bytes); /* or NULL */
    void *log_gone_arg;
    int log_fd; /* SQLite's log, the file to flush; -1: all is in memory */
};

/* The statement, reset and ready to bind; NULL with `e` set. */
sqlite3_stmt *store_stmt(struct store *s, enum store_stmt which, const char *sql, struct err *e);
/* 1: a row; 0: done, and reset; -1: failed, and reset. */
int store_step(struct store *s, sqlite3_stmt *q, struct err *e);
/* For statements that return no row. */
int store_do(struct store *s, sqlite3_stmt *q, struct err *e);
/* Sets `e` from the error of the database. */
int store_fail(struct store *s, const char *what, struct err *e);

void store_bind_text(sqlite3_stmt *q, int at, const char *text);
const char *store_text(sqlite3_stmt *q, int at); /* never NULL */

#endif
