/* df.c - `cove df`: what takes disk space on the server. */
#include <stdio.h>

#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'v', "verbose", NULL, "list each sandbox, snapshot and template too"},
    {0,   "json",    NULL, "print JSON"},
    {0},
};

static const struct {
    const char *kind, *path, *key, *size;
} rows[] = {
    {"running sandboxes", "/v1/usage",                "sandboxes", "disk"},
    {"snapshots",         "/v1/snapshots?limit=1000", "snapshots", "bytes"},
    {"templates",         "/v1/templates",            "templates", "bytes"},
};

static const struct table_column sandboxes[] = {
    {"SANDBOX", "id",         table_text},
    {"NAME",    "name",       table_text},
    {"SIZE",    "disk",       table_size},
    {"LIMIT",   "disk_limit", table_size},
    {0},
};
static const struct table_column snapshots[] = {
    {"SNAPSHOT", "id",         table_text},
    {"NAME",     "name",       table_text},
    {"SIZE",     "bytes",      table_size},
    {"AGE",      "created_at", table_age},
    {0},
};
static const struct table_column templates[] = {
    {"TEMPLATE", "name",       table_text},
    {"STATE",    "state",      table_text},
    {"SIZE",     "bytes",      table_size},
    {"AGE",      "created_at", table_age},
    {0},
};
static const struct table_column *const details[] = {sandboxes, snapshots, templates};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void print_kind(struct table *t, const char *kind, json_t *list, const char *size)
{
    char text[TABLE_TEXT_MAX];
    json_int_t sum = 0;
    json_t *item, *total;
    size_t i;

    json_array_foreach(list, i, item) sum += json_integer_value(json_object_get(item, size));
    total = json_integer(sum);
    table_add(t, kind);
    snprintf(text, sizeof(text), "%zu", json_array_size(list));
    table_add(t, text);
    table_add(t, table_size(total, text));
    json_decref(total);
}

static int df(const struct args *a, struct err *e)
{
    autojson json_t *all = json_object();
    autotable struct table t = {0};
    json_t *disk = NULL;
    struct server s;
    char used[TABLE_TEXT_MAX], total[TABLE_TEXT_MAX], left[TABLE_TEXT_MAX];

    if (server_find(&s, e) < 0 || client_call(&s, "GET", "/v1/disk", NULL, &disk, e) < 0)
        return -1;
    json_object_set_new(all, "disk", disk);
    table_init(&t, "KIND", "COUNT", "SIZE", NULL);
    for (size_t i = 0; i < ROWS; i++) {
        autojson json_t *answer = NULL;

        if (client_call(&s, "GET", rows[i].path, NULL, &answer, e) < 0)
            return -1;
        json_object_set(all, rows[i].key, json_object_get(answer, rows[i].key));
        print_kind(&t, rows[i].kind, json_object_get(answer, rows[i].key), rows[i].size);
    }
    if (args_flag(a, "json")) {
        request_print(all);
        return 0;
    }
    printf("disk: %s used of %s, %s can still be written\n",
           table_size(json_object_get(disk, "used"), used),
           table_size(json_object_get(disk, "total"), total),
           table_size(json_object_get(disk, "free"), left));
    putchar('\n');
    table_print(&t);
    for (size_t i = 0; i < ROWS && args_flag(a, "verbose"); i++) {
        putchar('\n');
        table_print_list(json_object_get(all, rows[i].key), details[i]);
    }
    return 0;
}

const struct cmd cmd_df = {
    .name = "df",
    .usage = "df [-v] [--json]",
    .summary = "show the disk space of the server and what takes it",
    .about =
        "Sandboxes and snapshots are those of this key; templates share layers, so their sum may\n"
        "be more than the disk holds. `cove prune` frees space.",
    .opts = opts,
    .run = df,
};
