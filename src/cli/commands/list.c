/* list.c - `cove list`: lists the sandboxes of this key. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/live.h"
#include "cli/table.h"

#define COLUMNS_DEFAULT "id,name,state,template,age,ends,metadata"
#define COLUMNS_ALL "id,key,name,state,template,age,ends,metadata"
#define META_MAX 512

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'q', "quiet",    NULL,    "print only ids, one per line"},
    {0,   "state",    "STATE", "only sandboxes in this state: running, paused, stopped or damaged"},
    {0,   "template", "NAME",  "only sandboxes of this template"},
    {0,   "all-keys", NULL,    "sandboxes of all keys, with the key of each; for admin keys only"},
    {0,   "meta",     "K=V",   "only sandboxes with this label; repeatable"},
    {0,   "columns",  "LIST",  "columns to show, separated by commas [" COLUMNS_DEFAULT "]; also key, changed, cpu, memory, disk, pids, network, snapshot, reason, on-timeout"},
    {0,   "watch",    NULL,    "show the list again every two seconds"},
    {0,   "json",     NULL,    "print JSON"},
    {0},
};
/* clang-format on */

/* "K=V,K=V" */
static const char *metadata_text(json_t *metadata, char out[TABLE_TEXT_MAX])
{
    const char *key;
    json_t *value;
    size_t n = 0;

    out[0] = '\0';
    json_object_foreach(metadata, key, value)
    {
        if (n < TABLE_TEXT_MAX)
            n += (size_t)snprintf(out + n, TABLE_TEXT_MAX - n, "%s%s=%s", n > 0 ? "," : "", key,
                                  json_string_value(value));
    }
    return out;
}

static const char *cpu_text(json_t *sandbox, char out[TABLE_TEXT_MAX])
{
    json_t *limits = json_object_get(sandbox, "limits");

    str_fmt(out, TABLE_TEXT_MAX, "%.3g",
            (double)json_integer_value(json_object_get(limits, "cpu_milli")) / 1000);
    return out;
}

static const char *memory_text(json_t *sandbox, char out[TABLE_TEXT_MAX])
{
    return table_size(json_object_get(json_object_get(sandbox, "limits"), "memory"), out);
}

static const char *disk_text(json_t *sandbox, char out[TABLE_TEXT_MAX])
{
    return table_size(json_object_get(json_object_get(sandbox, "limits"), "disk"), out);
}

static const char *pids_text(json_t *sandbox, char out[TABLE_TEXT_MAX])
{
    return table_number(json_object_get(json_object_get(sandbox, "limits"), "pids"), out);
}

/* clang-format off */
static const struct {
    const char *name; /* in --columns */
    struct table_column column;
} all_columns[] = {
    {"id",         {"ID",         "id",         table_text}},
    {"key",        {"KEY",        "key",        table_text}},
    {"name",       {"NAME",       "name",       table_text}},
    {"state",      {"STATE",      "state",      table_text}},
    {"template",   {"TEMPLATE",   "template",   table_text}},
    {"age",        {"AGE",        "created_at", table_age}},
    {"ends",       {"ENDS",       "ends_at",    table_until}},
    {"metadata",   {"METADATA",   "metadata",   metadata_text}},
    {"changed",    {"CHANGED",    "changed_at", table_age}},
    {"cpu",        {"CPU",        NULL,         cpu_text}},
    {"memory",     {"MEMORY",     NULL,         memory_text}},
    {"disk",       {"DISK",       NULL,         disk_text}},
    {"pids",       {"PIDS",       NULL,         pids_text}},
    {"network",    {"NETWORK",    "network",    table_text}},
    {"snapshot",   {"SNAPSHOT",   "snapshot",   table_text}},
    {"reason",     {"REASON",     "reason",     table_text}},
    {"on-timeout", {"ON TIMEOUT", "on_timeout", table_text}},
};
/* clang-format on */

struct listing {
    const struct args *a;
    struct server s;
    char path[PATH_TEXT_MAX];
    struct table_column columns[TABLE_COLUMNS_MAX + 1];
};

static int choose_columns(struct listing *l, const char *names, struct err *e)
{
    size_t n = 0;

    for (const char *p = names; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        size_t len = strcspn(p, ","), i = 0;

        while (i < sizeof(all_columns) / sizeof(all_columns[0]) &&
               (strlen(all_columns[i].name) != len || strncmp(all_columns[i].name, p, len) != 0))
            i++;
        if (i == sizeof(all_columns) / sizeof(all_columns[0]))
            return err_set(e, ERR_INVALID,
                           "--columns: no column '%.*s'; `cove help list` shows them", (int)len, p);
        if (n == TABLE_COLUMNS_MAX)
            return err_set(e, ERR_INVALID, "--columns: more than %d columns", TABLE_COLUMNS_MAX);
        l->columns[n++] = all_columns[i].column;
    }
    return n > 0 ? 0 : err_set(e, ERR_INVALID, "--columns: no column is named");
}

static int choose_sandboxes(struct listing *l, struct err *e)
{
    char path[PATH_TEXT_MAX];
    const char *pair;
    size_t at = 0;

    path_query(path,
               args_flag(l->a, "all-keys") ? "/v1/sandboxes?limit=100&all_keys=true"
                                           : "/v1/sandboxes?limit=100",
               "state", args_value(l->a, "state"));
    path_query(l->path, path, "template", args_value(l->a, "template"));
    while ((pair = args_next(l->a, "meta", &at)) != NULL) {
        char name[META_MAX + 16], key[META_MAX];
        size_t n = strcspn(pair, "=");

        if (pair[n] != '=' || n == 0 || n >= META_MAX / 3)
            return err_set(e, ERR_INVALID, "--meta: '%.60s' is not NAME=VALUE", pair);
        str_fmt(key, sizeof(key), "%.*s", (int)n, pair);
        str_fmt(name, sizeof(name), "metadata.");
        path_encode(name + strlen(name), META_MAX, key, "");
        memcpy(path, l->path, sizeof(path));
        path_query(l->path, path, name, pair + n + 1);
    }
    return 0;
}

static int draw(void *arg, struct err *e)
{
    struct listing *l = arg;
    autojson json_t *answer = NULL;

    if (client_list(&l->s, l->path, "sandboxes", &answer, e) < 0)
        return -1;
    request_print_list(l->a, answer, "sandboxes", l->columns);
    return 0;
}

static int list(const struct args *a, struct err *e)
{
    static struct listing l; /* large */
    const char *columns = args_value(a, "columns");

    l.a = a;
    if (columns == NULL)
        columns = args_flag(a, "all-keys") ? COLUMNS_ALL : COLUMNS_DEFAULT;
    if (choose_columns(&l, columns, e) < 0 || choose_sandboxes(&l, e) < 0 ||
        server_find(&l.s, e) < 0)
        return -1;
    return args_flag(a, "watch") ? live_draw(draw, &l, e) : draw(&l, e);
}

const struct cmd cmd_list = {
    .name = "list",
    .usage = "list [OPTIONS]",
    .summary = "list sandboxes",
    .opts = opts,
    .run = list,
};
