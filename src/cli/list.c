/* list.c - `cove list`: the sandboxes of this key. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'q', "quiet", NULL, "only ids, one per line"},
    {0,   "json",  NULL, "as JSON"},
    {0},
};
/* clang-format on */

static int next_page(const struct server *s, const char *cursor, json_t **ret, struct err *e)
{
    char path[PATH_TEXT_MAX];

    path_query(path, "/v1/sandboxes?limit=100", "cursor", cursor);
    return client_call(s, "GET", path, NULL, ret, e);
}

/* Every page, in one array. */
static int fetch(const struct server *s, json_t *all, struct err *e)
{
    autofree char *cursor = NULL;

    do {
        autojson json_t *page = NULL;
        const char *next;

        if (next_page(s, cursor, &page, e) < 0)
            return -1;
        json_array_extend(all, json_object_get(page, "sandboxes"));
        next = json_string_value(json_object_get(page, "next_cursor"));
        free(cursor);
        cursor = next != NULL ? strdup(next) : NULL;
    } while (cursor != NULL);
    return 0;
}

static void metadata_text(json_t *metadata, char *out, size_t room)
{
    const char *key;
    json_t *value;
    size_t n = 0;

    out[0] = '\0';
    json_object_foreach(metadata, key, value) if (n < room) n += (size_t)snprintf(
        out + n, room - n, "%s%s=%s", n > 0 ? "," : "", key, json_string_value(value));
}

static void print_table(json_t *all)
{
    autotable struct table t;
    json_t *sandbox;
    size_t i;

    table_init(&t, "ID", "STATE", "TEMPLATE", "AGE", "ENDS", "METADATA", NULL);
    json_array_foreach(all, i, sandbox)
    {
        char age[TABLE_AGE_MAX], until[TABLE_AGE_MAX], metadata[256];

        metadata_text(json_object_get(sandbox, "metadata"), metadata, sizeof(metadata));
        table_add(&t, json_string_value(json_object_get(sandbox, "id")));
        table_add(&t, json_string_value(json_object_get(sandbox, "state")));
        table_add(&t, json_string_value(json_object_get(sandbox, "template")));
        table_add(&t, table_age(json_object_get(sandbox, "created_at"), age));
        table_add(&t, table_until(json_object_get(sandbox, "ends_at"), until));
        table_add(&t, metadata);
    }
    table_print(&t);
}

static int list(const struct args *a, struct err *e)
{
    autojson json_t *answer = json_object();
    json_t *all = json_array(), *sandbox;
    struct server s;
    size_t i;

    if (json_object_set_new(answer, "sandboxes", all) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (server_find(&s, e) < 0 || fetch(&s, all, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    else if (args_flag(a, "quiet"))
        json_array_foreach(all, i, sandbox)
            printf("%s\n", json_string_value(json_object_get(sandbox, "id")));
    else
        print_table(all);
    return 0;
}

const struct cmd cmd_list = {
    .name = "list",
    .usage = "list [-q] [--json]",
    .summary = "list sandboxes",
    .opts = opts,
    .run = list,
};
