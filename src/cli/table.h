/* table.h - prints lists as aligned columns.
 *
 * Text that a tenant chose (arguments, metadata) is printed with control characters escaped,
 * so that it cannot control the user's terminal. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <jansson.h>
#include <stddef.h>

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL_MAX 120 /* bytes shown of one cell */

struct table {
    size_t columns, rows;
    char **cells; /* `rows` cells in all, owned; the first `columns` of them are the head */
};

#define autotable __attribute__((cleanup(table_free)))

/* The names of the columns, then NULL. */
void table_init(struct table *t, ...) __attribute__((sentinel));
void table_free(struct table *t);
/* A copy with control characters and invalid UTF-8 escaped, cut after about `max` bytes.
 * Belongs to the caller. */
char *table_printable(const char *s, size_t max);
/* Fills the next cell; NULL and "" are shown as "-". */
void table_add(struct table *t, const char *text);
/* The same without TABLE_CELL_MAX, for the last column. */
void table_add_whole(struct table *t, const char *text);
void table_print(const struct table *t); /* to stdout */

/* ---- lists of the API ---- */

#define TABLE_TEXT_MAX 256

/* A column shows field `field` of each item, or the whole item if that is NULL. `show` returns
 * the text of a cell; it may use `out` for it. A row without a head ends a table. */
struct table_column {
    const char *head, *field;
    const char *(*show)(json_t *value, char out[TABLE_TEXT_MAX]);
};

void table_print_list(json_t *list, const struct table_column *columns);

/* Functions for `show`: */
const char *table_text(json_t *text, char out[TABLE_TEXT_MAX]);
const char *table_number(json_t *number, char out[TABLE_TEXT_MAX]);
const char *table_size(json_t *bytes, char out[TABLE_TEXT_MAX]); /* "1.5G" */
/* Time since an RFC 3339 time: "12s", "5m", "3h", "2d"; "-" if it is null. */
const char *table_age(json_t *time, char out[TABLE_TEXT_MAX]);
/* Time until an RFC 3339 time: "in 5m"; "never" if it is null. */
const char *table_until(json_t *time, char out[TABLE_TEXT_MAX]);

#endif
