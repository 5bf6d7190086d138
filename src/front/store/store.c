/* store.c - opens the database, migrates its schema, runs statements. */
#include "front/store/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "front/store/internal.h"
#include "mem/mem.h"

#define STORE_BUSY_MS 500
#define STORE_VFS "cove"
#define STORE_LOG_ROOM (6u << 20) /* SQLite restarts it after a thousand pages, about 4 MiB */

/* EXTEND  A change of the schema: a row at the end, never a change of an old
 *         one. user_version counts the rows that were applied. */
static const char *const migrations[] = {
    "CREATE TABLE sandboxes ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL,"
    " state INTEGER NOT NULL, template TEXT NOT NULL, network TEXT NOT NULL,"
    " metadata TEXT NOT NULL, env BLOB NOT NULL, cpu_milli INTEGER NOT NULL,"
    " memory INTEGER NOT NULL, pids INTEGER NOT NULL, disk INTEGER NOT NULL,"
    " nofile INTEGER NOT NULL, created_ms INTEGER NOT NULL, ends_ms INTEGER NOT NULL,"
    " on_timeout INTEGER NOT NULL, boot_id TEXT NOT NULL, reason TEXT NOT NULL);"
    "CREATE TABLE keys ("
    " id TEXT PRIMARY KEY, name TEXT NOT NULL, hash BLOB NOT NULL UNIQUE,"
    " created_ms INTEGER NOT NULL, revoked INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;",
    "ALTER TABLE sandboxes ADD COLUMN image BLOB NOT NULL DEFAULT x'';",
    /* wire/rules.h */
    "ALTER TABLE sandboxes ADD COLUMN rules BLOB NOT NULL DEFAULT x'';",
    "ALTER TABLE keys ADD COLUMN admin INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE sandboxes ADD COLUMN plane TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE sandboxes ADD COLUMN name TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE sandboxes ADD COLUMN timeout_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN changed_ms INTEGER NOT NULL DEFAULT 0;",
    "CREATE TABLE snapshots ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL,"
    " name TEXT NOT NULL, sandbox TEXT NOT NULL, template TEXT NOT NULL,"
    " bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL);"
    "ALTER TABLE sandboxes ADD COLUMN snapshot TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE sandboxes ADD COLUMN idle_ms INTEGER NOT NULL DEFAULT 0;",
    "CREATE TABLE points ("
    " n INTEGER PRIMARY KEY AUTOINCREMENT, sandbox INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
    " cpu_milli INTEGER NOT NULL, memory INTEGER NOT NULL, cache INTEGER NOT NULL,"
    " disk INTEGER NOT NULL, pids INTEGER NOT NULL, in_bytes INTEGER NOT NULL,"
    " out_bytes INTEGER NOT NULL);"
    "CREATE INDEX points_of ON points (sandbox, at_ms);"
    "CREATE TABLE logs ("
    " n INTEGER PRIMARY KEY AUTOINCREMENT, sandbox INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
    " level INTEGER NOT NULL, message TEXT NOT NULL, fields TEXT NOT NULL);"
    "CREATE INDEX logs_of ON logs (sandbox, n);",
    "CREATE TABLE tunnels ("
    " sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE, port INTEGER NOT NULL,"
    " token TEXT NOT NULL, name TEXT NOT NULL, created_ms INTEGER NOT NULL,"
    " PRIMARY KEY (sandbox, port)) WITHOUT ROWID;",
    "ALTER TABLE logs ADD COLUMN output INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX logs_output ON logs (n) WHERE output = 1;"
    "ALTER TABLE sandboxes ADD COLUMN log_output INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN log_boot TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandboxes ADD COLUMN log_next INTEGER NOT NULL DEFAULT 0;",
    /* store_is_joined(): a database that has a key has been used */
    "INSERT INTO counters (name, next) SELECT 'joined', 1 WHERE EXISTS (SELECT 1 FROM keys);",
    ("ALTER TABLE sandboxes ADD COLUMN bandwidth INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandboxes ADD COLUMN disk_io INTEGER NOT NULL DEFAULT 0;"),
    /* before, only the Cloudflare plane gave names */
    "ALTER TABLE sandboxes ADD COLUMN guarded INTEGER NOT NULL DEFAULT 0;"
    "UPDATE sandboxes SET guarded = 1 WHERE name != '';",
    ("CREATE TABLE quotas ("
     " key TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL,"
     " PRIMARY KEY (key, name)) WITHOUT ROWID;"
     "CREATE TABLE templates (name TEXT PRIMARY KEY, key TEXT NOT NULL) WITHOUT ROWID;"),
    ("ALTER TABLE sandboxes ADD COLUMN relaxed INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandboxes ADD COLUMN lost_ms INTEGER NOT NULL DEFAULT 0;"),
    ("CREATE TABLE archives ("
     " seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, owner TEXT NOT NULL,"
     " digest TEXT NOT NULL, space TEXT NOT NULL, template TEXT NOT NULL, base TEXT NOT NULL,"
     " entries INTEGER NOT NULL, bytes INTEGER NOT NULL, stored INTEGER NOT NULL,"
     " created_ms INTEGER NOT NULL);"
     "CREATE TABLE archive_spaces (key TEXT PRIMARY KEY, space TEXT NOT NULL) WITHOUT ROWID;"),
    ("CREATE TABLE workspaces ("
     " seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, name TEXT NOT NULL,"
     " state INTEGER NOT NULL, epoch INTEGER NOT NULL, route INTEGER NOT NULL,"
     " backend TEXT NOT NULL, sandbox TEXT NOT NULL, spec TEXT NOT NULL, digest TEXT NOT NULL,"
     " reason TEXT NOT NULL, grace_ms INTEGER NOT NULL, archive_ms INTEGER NOT NULL,"
     " background INTEGER NOT NULL, created_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL,"
     " used_ms INTEGER NOT NULL, UNIQUE (key, name));"
     "CREATE TABLE holders ("
     " workspace INTEGER NOT NULL REFERENCES workspaces (seq) ON DELETE CASCADE,"
     " kind INTEGER NOT NULL, id TEXT NOT NULL, epoch INTEGER NOT NULL, ends_ms INTEGER NOT NULL,"
     " PRIMARY KEY (workspace, kind, id)) WITHOUT ROWID;"),
};

int store_fail(struct store *s, const char *what, struct err *e)
{
    int code = s->db != NULL ? sqlite3_errcode(s->db) : SQLITE_NOMEM;
    const char *text = s->db != NULL ? sqlite3_errmsg(s->db) : "out of memory";

    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_set(e, ERR_DISK_FULL, "database: %s: no space left", what);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, ERR_CONFLICT, "database: %s: another process has it open", what);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(e, ERR_INTERNAL, "database: %s: the file is damaged (%s)", what, text);
    default:
        return err_set(e, ERR_INTERNAL, "database: %s: %s", what, text);
    }
}

sqlite3_stmt *store_stmt(struct store *s, enum store_stmt which, const char *sql, struct err *e)
{
    sqlite3_stmt **q = &s->stmts[which];

    if (*q == NULL &&
        sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, q, NULL) != SQLITE_OK) {
        store_fail(s, "prepare", e);
        return NULL;
    }
    return *q;
}

int store_step(struct store *s, sqlite3_stmt *q, struct err *e)
{
    int r = sqlite3_step(q);

    if (r == SQLITE_ROW)
        return 1;
    if (r != SQLITE_DONE)
        store_fail(s, "write", e);
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    if (r != SQLITE_DONE)
        return -1;
    /* (a statement of its own is a transaction of its own) */
    return sqlite3_get_autocommit(s->db) && !sqlite3_stmt_readonly(q) ? store_flush(s, e) : 0;
}

int store_do(struct store *s, sqlite3_stmt *q, struct err *e)
{
    int r = store_step(s, q, e);

    if (r == 1) {
        sqlite3_reset(q);
        return err_set(e, ERR_INTERNAL, "database: a row where none was expected");
    }
    return r;
}

void store_bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text == NULL ? "" : text, -1, SQLITE_STATIC);
}

const char *store_text(sqlite3_stmt *q, int at)
{
    const unsigned char *t = sqlite3_column_text(q, at);

    return t == NULL ? "" : (const char *)t;
}

static int run_plain(struct store *s, enum store_stmt which, const char *sql, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, which, sql, e);

    return q == NULL ? -1 : store_do(s, q, e);
}

static int exec_sql(struct store *s, const char *what, const char *sql, struct err *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_fail(s, what, e);
}

int store_begin(struct store *s, struct err *e)
{
    return run_plain(s, STMT_BEGIN, "BEGIN IMMEDIATE", e);
}

int store_begin_light(struct store *s, struct err *e)
{
    s->light = store_begin(s, e) == 0;
    return s->light ? 0 : -1;
}

int store_flush(struct store *s, struct err *e)
{
    return s->log_fd >= 0 && fdatasync(s->log_fd) < 0 ? err_sys(e, "database: flush") : 0;
}

int store_commit(struct store *s, struct err *e)
{
    bool light = s->light;

    if (run_plain(s, STMT_COMMIT, "COMMIT", e) < 0)
        return -1;
    s->light = false;
    return light ? 0 : store_flush(s, e);
}

void store_rollback(struct store *s)
{
    struct err ignored;

    s->light = false;
    if (!sqlite3_get_autocommit(s->db))
        run_plain(s, STMT_ROLLBACK, "ROLLBACK", &ignored);
}

static int plain_path(sqlite3_vfs *vfs, const char *path, int room, char *out)
{
    (void)vfs;
    if (strlen(path) >= (size_t)room)
        return SQLITE_CANTOPEN;
    strcpy(out, path);
    return SQLITE_OK;
}

/* SQLite resolves every symlink of a path and so would turn /proc/self/fd/N/cove.db
 * into a path that this user may not be able to walk: root opened the directory for
 * us. This VFS keeps paths as given. */
static int vfs_register(void)
{
    static sqlite3_vfs vfs;
    sqlite3_vfs *unix_vfs;

    if (sqlite3_vfs_find(STORE_VFS) != NULL)
        return SQLITE_OK;
    unix_vfs = sqlite3_vfs_find(NULL);
    if (unix_vfs == NULL)
        return SQLITE_ERROR;
    vfs = *unix_vfs;
    vfs.zName = STORE_VFS;
    vfs.pNext = NULL;
    vfs.xFullPathname = plain_path;
    return sqlite3_vfs_register(&vfs, 0);
}

/* The first column of the first row. */
static int ask(struct store *s, const char *sql, char *out, size_t room, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int r = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

    if (r == SQLITE_OK)
        r = sqlite3_step(q);
    if (r == SQLITE_ROW)
        sqlite3_snprintf((int)room, out, "%s", store_text(q, 0));
    else
        store_fail(s, "read", e);
    sqlite3_finalize(q);
    return r == SQLITE_ROW ? 0 : -1;
}

static int migrate(struct store *s, struct err *e)
{
    char text[64];
    size_t have;

    if (ask(s, "PRAGMA user_version", text, sizeof(text), e) < 0)
        return -1;
    have = (size_t)strtoul(text, NULL, 10);
    if (have > ARRAY_LEN(migrations))
        return err_set(e, ERR_CONFLICT,
                       "database: written by a newer Cove (schema %zu, this one knows %zu)", have,
                       ARRAY_LEN(migrations));
    for (; have < ARRAY_LEN(migrations); have++) {
        char version[64];

        sqlite3_snprintf(sizeof(version), version, "PRAGMA user_version = %d", (int)have + 1);
        if (store_begin(s, e) < 0)
            return -1;
        if (exec_sql(s, "migrate", migrations[have], e) < 0 ||
            exec_sql(s, "migrate", version, e) < 0 || store_commit(s, e) < 0) {
            store_rollback(s);
            return err_wrap(e, "schema %zu", have + 1);
        }
    }
    return 0;
}

/* SQLite flushes its log only when it copies it into the database; all other flushes are
 * ours. So the log and its directory entry must be durable before anything depends on it. */
static int take_over_log(struct store *s, const char *path, struct err *e)
{
    char name[PATH_MAX];

    if (strcmp(path, ":memory:") == 0)
        return 0;
    sqlite3_snprintf(sizeof(name), name, "%s-wal", path);
    if (exec_sql(s, "flush", "REPLACE INTO counters (name, next) VALUES ('flush', 1)", e) < 0)
        return -1;
    s->log_fd = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (s->log_fd < 0)
        return err_sys(e, "open the log of the database");
    /* Deletes must work on a full disk, so reserve room for the log. (If the file system
     * cannot reserve, a full disk refuses deletes.) */
    fallocate(s->log_fd, FALLOC_FL_KEEP_SIZE, 0, STORE_LOG_ROOM);
    return exec_sql(s, "set synchronous", "PRAGMA synchronous=NORMAL", e);
}

/* The exclusive lock is taken by the first read and kept: it needs no shared
 * memory file, and a second process fails at once. */
static int prepare(struct store *s, const char *path, struct err *e)
{
    char text[128];

    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
    if (exec_sql(s, "open",
                 "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
                 "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;"
                 "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON; PRAGMA cache_size=-2048;",
                 e) < 0 ||
        ask(s, "PRAGMA quick_check(1)", text, sizeof(text), e) < 0)
        return -1;
    if (strcmp(text, "ok") != 0)
        return err_set(e, ERR_INTERNAL, "database: the file is damaged (%s)", text);
    return migrate(s, e) < 0 ? -1 : take_over_log(s, path, e);
}

int store_open(const char *path, struct store **ret, struct err *e)
{
    struct store *s = mem_zeroed(1, sizeof(*s));
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

    s->log_fd = -1;
    if (vfs_register() != SQLITE_OK) {
        free(s);
        return err_set(e, ERR_INTERNAL, "database: SQLite offers no file system");
    }
    if (sqlite3_open_v2(path, &s->db, flags, STORE_VFS) != SQLITE_OK) {
        store_fail(s, "open", e);
        store_close(s);
        return -1;
    }
    if (prepare(s, path, e) < 0) {
        store_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < STMT_COUNT; i++)
        sqlite3_finalize(s->stmts[i]);
    sqlite3_close(s->db);
    drop_fd(&s->log_fd);
    free(s);
}
