/* table.h - lists for people: columns that line up, ages instead of dates.
 *
 * What comes from a tenant (arguments, metadata) is shown with control characters
 * escaped: a process name must not be able to repaint somebody's terminal. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <jansson.h>
#include <stddef.h>

#define TABLE_COLUMNS_MAX 8
#define TABLE_CELL_MAX 120 /* bytes shown of one cell */

struct table {
    size_t columns, rows;
    char **cells; /* rows x columns, belong to the table; the first row is the head */
};

#define autotable __attribute__((cleanup(table_free)))

/* Heads, then NULL. */
void table_init(struct table *t, ...) __attribute__((sentinel));
void table_free(struct table *t);
/* A copy that is safe to print: UTF-8 without control characters, of about `max` bytes at
 * most. Belongs to the caller. */
char *table_printable(const char *s, size_t max);
/* Puts a text into the next free cell; NULL is shown as "-". */
void table_add(struct table *t, const char *text);
/* What nothing stands behind need not be cut. */
void table_add_whole(struct table *t, const char *text);
void table_print(const struct table *t); /* to stdout */

#define TABLE_AGE_MAX 32
/* "12s", "5m", "3h", "2d" between an RFC 3339 time and now; "-" if there is none. */
const char *table_age(json_t *time, char out[TABLE_AGE_MAX]);
/* The same for a time to come: "in 5m", "never" if there is none. */
const char *table_until(json_t *time, char out[TABLE_AGE_MAX]);
/* "1.5G" for a number of bytes. */
const char *table_size(json_t *bytes, char out[TABLE_AGE_MAX]);

#endif
