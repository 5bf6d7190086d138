/* templates.c - the table of who added which template. */
#include "front/store/internal.h"

int store_template_put(struct store *s, const char *name, const char *key, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_TEMPLATE_PUT, "REPLACE INTO templates (name, key) VALUES (?, ?)", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, name);
    store_bind_text(q, 2, key);
    return store_do(s, q, e) < 0 ? err_wrap(e, "template %s", name) : 0;
}

int store_template_delete(struct store *s, const char *name, struct err *e)
{
    sqlite3_stmt *q =
        store_stmt(s, STMT_TEMPLATE_DELETE, "DELETE FROM templates WHERE name = ?", e);

    if (q == NULL)
        return -1;
    store_bind_text(q, 1, name);
    return store_do(s, q, e);
}

int store_template_each(struct store *s, void (*each)(void *arg, const char *name, const char *key),
                        void *arg, struct err *e)
{
    sqlite3_stmt *q = store_stmt(s, STMT_TEMPLATE_EACH, "SELECT name, key FROM templates", e);
    int r = q == NULL ? -1 : 0;

    while (q != NULL && (r = store_step(s, q, e)) == 1)
        each(arg, store_text(q, 0), store_text(q, 1));
    return r;
}
