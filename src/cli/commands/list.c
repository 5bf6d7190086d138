/* list.c - `cove list`: lists the sandboxes of this key. */
#include <stdio.h>

#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'q', "quiet", NULL, "print only ids, one per line"},
    {0,   "json",  NULL, "print JSON"},
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

/* clang-format off */
static const struct table_column columns[] = {
    {"ID",       "id",         table_text},
    {"STATE",    "state",      table_text},
    {"TEMPLATE", "template",   table_text},
    {"AGE",      "created_at", table_age},
    {"ENDS",     "ends_at",    table_until},
    {"METADATA", "metadata",   metadata_text},
    {0},
};
/* clang-format on */

static int list(const struct args *a, struct err *e)
{
    autojson json_t *answer = NULL;
    struct server s;

    if (server_find(&s, e) < 0 ||
        client_list(&s, "/v1/sandboxes?limit=100", "sandboxes", &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "sandboxes", columns);
    return 0;
}

const struct cmd cmd_list = {
    .name = "list",
    .usage = "list [-q] [--json]",
    .summary = "list sandboxes",
    .opts = opts,
    .run = list,
};
