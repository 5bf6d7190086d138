/* key.c - `cove key`: creates, lists and revokes API keys. */

#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "name", "NAME", "create: a name, to recognize the key by"},
    {0, "admin", NULL, "create: the key may also manage keys and templates"},
    {0, "delete-sandboxes", NULL, "revoke: delete the key's sandboxes too"},
    {0, "json", NULL, "print JSON"},
    {0},
};
/* clang-format on */

static int create(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;

    json_object_set_new(body, "admin", json_boolean(args_flag(a, "admin")));
    if (request_text(body, "name", args_value(a, "name"), "--name", e) < 0 ||
        client_call(s, "POST", "/v1/keys", body, &answer, e) < 0)
        return -1;
    return request_print_made(a, answer, "key", e);
}

static const char *kind_text(json_t *key, char out[TABLE_TEXT_MAX])
{
    (void)out;
    return json_is_true(json_object_get(key, "revoked")) ? "revoked"
           : json_is_true(json_object_get(key, "admin")) ? "admin"
                                                         : "user";
}

/* clang-format off */
static const struct table_column columns[] = {
    {"ID",        "id",         table_text},
    {"NAME",      "name",       table_text},
    {"KIND",      NULL,         kind_text},
    {"SANDBOXES", "sandboxes",  table_number},
    {"AGE",       "created_at", table_age},
    {0},
};
/* clang-format on */

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;

    if (client_call(s, "GET", "/v1/keys", NULL, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "keys", columns);
    return 0;
}

static int revoke(const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];

    path_key(path, a->operands[1],
             args_flag(a, "delete-sandboxes") ? "?delete_sandboxes=true" : "");
    return client_call(s, "DELETE", path, NULL, NULL, e);
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"create", "",   "create a key and print it; only its hash is stored, so it cannot be shown again", create},
    {"list",   "",   "list all keys", list},
    {"revoke", "ID", "refuse this key from now on", revoke},
    {0},
};
/* clang-format on */

const struct cmd cmd_key = {
    .name = "key",
    .usage = "key create|list|revoke [OPTIONS] [ID]",
    .summary = "create, list and revoke API keys",
    .about =
        "Each key sees only the sandboxes it created. The sandboxes of a revoked key stay until\n"
        "their timeouts, or until `cove key revoke --delete-sandboxes ID`.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};
