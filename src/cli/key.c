/* key.c - `cove key`: who may use this server. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "name", "NAME", "create: what it is for"},
    {0, "admin", NULL, "create: it may also manage keys and templates"},
    {0, "delete-sandboxes", NULL, "revoke: end its sandboxes too"},
    {0, "json", NULL, "as JSON"},
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
    if (!args_flag(a, "json"))
        return request_print_text(answer, "key", e);
    request_print(answer);
    return 0;
}

static void add_row(struct table *t, json_t *key)
{
    char age[TABLE_AGE_MAX], sandboxes[24];
    bool revoked = json_is_true(json_object_get(key, "revoked"));
    bool admin = json_is_true(json_object_get(key, "admin"));

    snprintf(sandboxes, sizeof(sandboxes), "%lld",
             (long long)json_integer_value(json_object_get(key, "sandboxes")));
    table_add(t, json_string_value(json_object_get(key, "id")));
    table_add(t, json_string_value(json_object_get(key, "name")));
    table_add(t, revoked ? "revoked" : admin ? "admin" : "user");
    table_add(t, sandboxes);
    table_add(t, table_age(json_object_get(key, "created_at"), age));
}

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    autotable struct table t;
    json_t *key;
    size_t i;

    table_init(&t, "ID", "NAME", "KIND", "SANDBOXES", "AGE", NULL);
    if (client_call(s, "GET", "/v1/keys", NULL, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json")) {
        request_print(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "keys"), i, key) add_row(&t, key);
    table_print(&t);
    return 0;
}

static int take_away(const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];

    path_key(path, a->operands[1],
             args_flag(a, "delete-sandboxes") ? "?delete_sandboxes=true" : "");
    return client_call(s, "DELETE", path, NULL, NULL, e);
}

/* clang-format off */
static const struct {
    const char *name;
    int operands; /* itself included */
    int (*run)(const struct args *a, const struct server *s, struct err *e);
} subs[] = {
    {"create", 1, create},
    {"list",   1, list},
    {"revoke", 2, take_away},
};
/* clang-format on */

static int key_run(const struct args *a, struct err *e)
{
    struct server s;

    for (size_t i = 0; i < ARRAY_LEN(subs); i++)
        if (strcmp(a->operands[0], subs[i].name) == 0 && a->noperands == subs[i].operands)
            return server_find(&s, e) < 0 ? -1 : subs[i].run(a, &s, e);
    return err_set(e, ERR_INVALID, "it is `cove %s`", a->cmd->usage);
}

const struct cmd cmd_key = {
    .name = "key",
    .usage = "key create|list|revoke [OPTIONS] [ID]",
    .summary = "make, list and revoke API keys",
    .about = "create      prints a new key: it is stored hashed and cannot be shown again\n"
             "list        all keys, by their ids\n"
             "revoke ID   from now on nobody gets in with it\n\n"
             "Each key sees only the sandboxes it made. Those of a revoked key stay until their\n"
             "timeouts, or until `cove key revoke --delete-sandboxes ID`.",
    .opts = opts,
    .min = 1,
    .max = 2,
    .words = "create list revoke",
    .run = key_run,
};
