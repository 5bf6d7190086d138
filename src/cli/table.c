/* table.c - see table.h. */
#include "cli/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "mem/mem.h"

/* Columns on a terminal, assuming one per character. */
static size_t width(const char *s)
{
    size_t n = 0;

    for (; *s != '\0'; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

char *table_printable(const char *s, size_t max)
{
    size_t left = strlen(s), room = left < max ? left : max;
    char *out = mem_zeroed(1, room * 4 + 8), *to = out;

    while (left > 0 && (size_t)(to - out) < max) {
        int n = str_utf8_char(s, left);
        unsigned char c = (unsigned char)*s;

        /* terminals also obey C1 controls, which are two bytes in UTF-8 */
        if (n <= 0 || c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)s[1] < 0xa0)) {
            n = n <= 0 ? 1 : n;
            to += snprintf(to, 5, "\\x%02x", n == 2 ? (unsigned char)s[1] : c);
        } else {
            memcpy(to, s, (size_t)n);
            to += n;
        }
        s += n;
        left -= (size_t)n;
    }
    if (left > 0)
        strcpy(to, "...");
    return out;
}

static void add(struct table *t, const char *text, size_t max)
{
    char **cells = realloc(t->cells, (t->rows + 1) * sizeof(*cells));

    if (cells == NULL)
        abort();
    t->cells = cells;
    t->cells[t->rows++] = table_printable(text != NULL && *text != '\0' ? text : "-", max);
}

void table_add(struct table *t, const char *text)
{
    add(t, text, TABLE_CELL_MAX);
}

void table_add_whole(struct table *t, const char *text)
{
    add(t, text, SIZE_MAX);
}

void table_init(struct table *t, ...)
{
    const char *head;
    va_list ap;

    *t = (struct table){0};
    va_start(ap, t);
    while ((head = va_arg(ap, const char *)) != NULL) {
        table_add(t, head);
        t->columns++;
    }
    va_end(ap);
    assert(t->columns > 0 && t->columns <= TABLE_COLUMNS_MAX);
}

void table_free(struct table *t)
{
    for (size_t i = 0; i < t->rows; i++)
        free(t->cells[i]);
    free(t->cells);
}

void table_print(const struct table *t)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};

    for (size_t i = 0; i < t->rows; i++) {
        size_t w = width(t->cells[i]), c = i % t->columns;

        widths[c] = w > widths[c] ? w : widths[c];
    }
    for (size_t i = 0; i < t->rows; i++) {
        size_t c = i % t->columns;

        fputs(t->cells[i], stdout);
        if (c + 1 == t->columns)
            putchar('\n');
        else
            printf("%*s", (int)(widths[c] - width(t->cells[i]) + 2), "");
    }
}

/* ---- lists of the API ---- */

void table_print_list(json_t *list, const struct table_column *columns)
{
    autotable struct table t = {0};
    json_t *item;
    size_t i;

    for (const struct table_column *c = columns; c->head != NULL; c++, t.columns++)
        table_add(&t, c->head);
    json_array_foreach(list, i, item)
    {
        for (const struct table_column *c = columns; c->head != NULL; c++) {
            char text[TABLE_TEXT_MAX];

            table_add(&t, c->show(c->field != NULL ? json_object_get(item, c->field) : item, text));
        }
    }
    table_print(&t);
}

const char *table_text(json_t *text, char out[TABLE_TEXT_MAX])
{
    (void)out;
    return json_string_value(text);
}

const char *table_number(json_t *number, char out[TABLE_TEXT_MAX])
{
    str_fmt(out, TABLE_TEXT_MAX, "%lld", (long long)json_integer_value(number));
    return out;
}

/* Seconds since 1970 of an RFC 3339 time in UTC; -1 if it is null or invalid. */
static int64_t seconds_of(json_t *time)
{
    const char *text = json_string_value(time);
    uint64_t ms;

    return text == NULL || clock_read(text, &ms) < 0 ? -1 : (int64_t)(ms / 1000);
}

static const char *span(int64_t s, const char *before, char out[TABLE_TEXT_MAX])
{
    long long v = s < 0 ? 0 : (long long)s;

    if (v < 120)
        str_fmt(out, TABLE_TEXT_MAX, "%s%llds", before, v);
    else if (v < 2 * 3600)
        str_fmt(out, TABLE_TEXT_MAX, "%s%lldm", before, v / 60);
    else if (v < 2 * 86400)
        str_fmt(out, TABLE_TEXT_MAX, "%s%lldh", before, v / 3600);
    else
        str_fmt(out, TABLE_TEXT_MAX, "%s%lldd", before, v / 86400);
    return out;
}

const char *table_age(json_t *time, char out[TABLE_TEXT_MAX])
{
    int64_t at = seconds_of(time);

    return at < 0 ? "-" : span((int64_t)(clock_real_ms() / 1000) - at, "", out);
}

const char *table_until(json_t *time, char out[TABLE_TEXT_MAX])
{
    int64_t at = seconds_of(time);

    return at < 0 ? "never" : span(at - (int64_t)(clock_real_ms() / 1000), "in ", out);
}

const char *table_size(json_t *bytes, char out[TABLE_TEXT_MAX])
{
    static const char units[] = "BKMGTP";
    double v = (double)json_integer_value(bytes);
    size_t u = 0;

    for (; v >= 1024 && u + 2 < sizeof(units); u++)
        v /= 1024;
    str_fmt(out, TABLE_TEXT_MAX, v < 10 && u > 0 ? "%.1f%c" : "%.0f%c", v, units[u]);
    return out;
}
