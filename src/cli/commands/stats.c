/* stats.c - `cove stats`, `cove top`: what running sandboxes use. */
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/live.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "all-keys",  NULL, "sandboxes of all keys; for admin keys only"},
    {0, "no-stream", NULL, "print once instead of every two seconds"},
    {0, "json",      NULL, "print JSON, once"},
    {0},
};
/* clang-format on */

static json_int_t number(json_t *item, const char *name)
{
    return json_integer_value(json_object_get(item, name));
}

/* "12% of 2" */
static const char *cpu_text(json_t *item, char out[TABLE_TEXT_MAX])
{
    str_fmt(out, TABLE_TEXT_MAX, "%.1f%% of %.3g", (double)number(item, "cpu_milli") / 10,
            (double)number(item, "cpu_limit") / 1000);
    return out;
}

/* "120M/1.0G 12%" */
static const char *part(json_int_t used, json_int_t limit, char out[TABLE_TEXT_MAX])
{
    char a[TABLE_TEXT_MAX], b[TABLE_TEXT_MAX];
    autojson json_t *u = json_integer(used), *l = json_integer(limit);

    str_fmt(out, TABLE_TEXT_MAX, "%.20s/%.20s %.0f%%", table_size(u, a), table_size(l, b),
            limit > 0 ? (double)used * 100 / (double)limit : 0.0);
    return out;
}

/* Without cached files, which are given back when there is need. */
static const char *memory_text(json_t *item, char out[TABLE_TEXT_MAX])
{
    json_int_t used = number(item, "memory") - number(item, "cache");

    return part(used > 0 ? used : 0, number(item, "memory_limit"), out);
}

static const char *disk_text(json_t *item, char out[TABLE_TEXT_MAX])
{
    return part(number(item, "disk"), number(item, "disk_limit"), out);
}

static const char *pids_text(json_t *item, char out[TABLE_TEXT_MAX])
{
    str_fmt(out, TABLE_TEXT_MAX, "%lld/%lld", (long long)number(item, "pids"),
            (long long)number(item, "pids_limit"));
    return out;
}

/* "in/out" */
static const char *net_text(json_t *item, char out[TABLE_TEXT_MAX])
{
    char a[TABLE_TEXT_MAX], b[TABLE_TEXT_MAX];

    str_fmt(out, TABLE_TEXT_MAX, "%.20s/%.20s", table_size(json_object_get(item, "in_bytes"), a),
            table_size(json_object_get(item, "out_bytes"), b));
    return out;
}

/* clang-format off */
static const struct table_column columns[] = {
    {"ID",         "id",   table_text},
    {"NAME",       "name", table_text},
    {"CPU",        NULL,   cpu_text},
    {"MEMORY",     NULL,   memory_text},
    {"DISK",       NULL,   disk_text},
    {"PROCESSES",  NULL,   pids_text},
    {"NET IN/OUT", NULL,   net_text},
    {0},
};
/* clang-format on */

struct drawing {
    const struct args *a;
    struct server s;
    char path[PATH_TEXT_MAX];
};

static int busier(const void *a, const void *b)
{
    json_int_t x = number(*(json_t *const *)a, "cpu_milli");
    json_int_t y = number(*(json_t *const *)b, "cpu_milli");

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The busiest first, as many as the terminal shows. */
static json_t *by_use(json_t *list)
{
    size_t n = json_array_size(list), lines = live_lines();
    json_t **all = calloc(n + 1, sizeof(json_t *)), *ret = json_array();

    if (all == NULL || ret == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        all[i] = json_array_get(list, i);
    qsort(all, n, sizeof(json_t *), busier);
    for (size_t i = 0; i < n && (lines == 0 || i + 2 < lines); i++)
        json_array_append(ret, all[i]);
    free(all);
    return ret;
}

static int draw(void *arg, struct err *e)
{
    struct drawing *d = arg;
    autojson json_t *answer = NULL, *sorted = NULL;

    if (client_call(&d->s, "GET", d->path, NULL, &answer, e) < 0)
        return -1;
    if (args_flag(d->a, "json")) {
        request_print(answer);
        return 0;
    }
    sorted = by_use(json_object_get(answer, "sandboxes"));
    table_print_list(sorted, columns);
    return 0;
}

static int stats(const struct args *a, struct err *e)
{
    struct drawing d = {.a = a};

    path_query(d.path, args_flag(a, "all-keys") ? "/v1/usage?all_keys=true" : "/v1/usage?",
               "sandbox", a->noperands > 0 ? a->operands[0] : NULL);
    if (server_find(&d.s, e) < 0)
        return -1;
    return args_flag(a, "json") || args_flag(a, "no-stream") ? draw(&d, e) : live_draw(draw, &d, e);
}

const struct cmd cmd_stats = {
    .name = "stats",
    .alias = "top",
    .usage = "stats [--no-stream] [--json] [SANDBOX]",
    .summary = "show what running sandboxes use, live",
    .about =
        "CPU is in percent of one core, memory without cached files. Ctrl-C ends it. If stdout\n"
        "is no terminal it prints once.",
    .opts = opts,
    .max = 1,
    .run = stats,
};
