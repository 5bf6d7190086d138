/* tunnels.c - ports of sandboxes that are open to clients with their token. A row is deleted
 * with its sandbox. */
#include <stdio.h>

#include "front/store/internal.h"

int store_tunnel_put(struct store *s, const char *sandbox, const struct store_tunnel *t,
                     struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_TUNNEL_PUT,
                                 "INSERT INTO tunnels (sandbox, port, token, name, created_ms)"
                                 " VALUES (?, ?, ?, ?, ?)",
                                 e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, sandbox);
    sqlite3_bind_int(q, 2, (int)t->port);
    store_bind_text(q, 3, t->token);
    store_bind_text(q, 4, t->name);
    sqlite3_bind_int64(q, 5, (sqlite3_int64)t->created_ms);
    return store_do(s, q, e) < 0 ? err_wrap(e, "tunnel of %s", sandbox) : 0;
}

int store_tunnel_get(struct store *s, const char *sandbox, unsigned port, struct store_tunnel *ret,
                     struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_TUNNEL_GET,
                   "SELECT token, name, created_ms FROM tunnels WHERE sandbox = ? AND port = ?", e);
    int r;

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, sandbox);
    sqlite3_bind_int(q, 2, (int)port);
    r = store_step(s, q, e);
    if (r != 1)
        return r;
    ret->port = port;
    snprintf(ret->token, sizeof(ret->token), "%s", store_text(q, 0));
    snprintf(ret->name, sizeof(ret->name), "%s", store_text(q, 1));
    ret->created_ms = (uint64_t)sqlite3_column_int64(q, 2);
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    return 1;
}

int store_tunnel_count(struct store *s, const char *sandbox, uint64_t *ret, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_TUNNEL_COUNT, "SELECT count(*) FROM tunnels WHERE sandbox = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, sandbox);
    if (store_step(s, q, e) != 1)
        return -1;
    *ret = (uint64_t)sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return 0;
}

int store_tunnel_delete(struct store *s, const char *sandbox, unsigned port, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_TUNNEL_DELETE, "DELETE FROM tunnels WHERE sandbox = ? AND port = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, sandbox);
    sqlite3_bind_int(q, 2, (int)port);
    return store_do(s, q, e);
}
