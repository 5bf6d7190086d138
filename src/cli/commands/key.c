/* key.c - `cove key`: creates, lists, shows, changes and revokes API keys. */
#include <stdio.h>
#include <string.h>

#include "base/quotas.h"
#include "base/str.h"

#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "name", "NAME", "create: a name, to recognize the key by"},
    {0, "admin", NULL, "create: the key may also manage keys and templates"},
    {0, "quota", "NAME=VALUE", "create, update: a quota, such as sandboxes=20 or memory=64G; 0: no limit; default: as the settings; repeatable"},
    {0, "sandboxes", "WHAT", "revoke: what becomes of the key's sandboxes: keep, stop or delete [keep]"},
    {0, "delete-sandboxes", NULL, "revoke: the same as --sandboxes delete"},
    {0, "json", NULL, "print JSON"},
    {0},
};
/* clang-format on */

static int read_number(const char *text, uint64_t *ret)
{
    return str_u64(text, INT64_MAX, ret);
}

/* clang-format off */
static const struct {
    const char *name;
    int (*read)(const char *text, uint64_t *ret);
} quotas[] = {
#define NUMBER read_number
#define SIZE str_size
#define ROW(A, B, member, name, type, ...) {name, type},
    QUOTAS(ROW, _, _)
#undef ROW
#undef SIZE
#undef NUMBER
};
/* clang-format on */

static int one_quota(json_t *obj, const char *text, struct err *e)
{
    const char *eq = strchr(text, '=');
    size_t n = eq == NULL ? strlen(text) : (size_t)(eq - text), i = 0;
    uint64_t v = 0;

    while (i < QUOTA_COUNT && (strlen(quotas[i].name) != n || memcmp(quotas[i].name, text, n) != 0))
        i++;
    if (i == QUOTA_COUNT)
        return err_set(e, ERR_INVALID,
                       "--quota: there is no quota '%.*s'; `cove key show` lists the names",
                       n > 60 ? 60 : (int)n, text);
    if (eq != NULL && strcmp(eq + 1, "default") == 0) {
        json_object_set_new(obj, quotas[i].name, json_null());
        return 0;
    }
    if (eq == NULL || quotas[i].read(eq + 1, &v) < 0 || v > INT64_MAX)
        return err_set(e, ERR_INVALID,
                       "--quota: '%.60s' is not NAME=VALUE, such as sandboxes=20 or memory=64G",
                       text);
    json_object_set_new(obj, quotas[i].name, json_integer((json_int_t)v));
    return 0;
}

static int add_quotas(const struct args *a, json_t *body, struct err *e)
{
    json_t *obj = json_object();
    const char *text;
    size_t at = 0;

    json_object_set_new(body, "quotas", obj);
    while ((text = args_next(a, "quota", &at)) != NULL)
        if (one_quota(obj, text, e) < 0)
            return -1;
    return 0;
}

static int create(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;

    json_object_set_new(body, "admin", json_boolean(args_flag(a, "admin")));
    if (request_text(body, "name", args_value(a, "name"), "--name", e) < 0 ||
        add_quotas(a, body, e) < 0 || client_call(s, "POST", "/v1/keys", body, &answer, e) < 0)
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

static const char *limit_text(json_t *quota, char out[TABLE_TEXT_MAX])
{
    json_t *limit = json_object_get(quota, "limit");

    return json_integer_value(limit) == 0 ? "none" : table_number(limit, out);
}

static const char *origin_text(json_t *quota, char out[TABLE_TEXT_MAX])
{
    (void)out;
    return json_is_true(json_object_get(quota, "own")) ? "this key" : "default";
}

/* clang-format off */
static const struct table_column quota_columns[] = {
    {"QUOTA", "name", table_text},
    {"USED",  "used", table_number},
    {"LIMIT", NULL,   limit_text},
    {"FROM",  NULL,   origin_text},
    {0},
};
/* clang-format on */

/* Of the own key without an id. */
static int show(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    path_key(path, a->noperands > 1 ? a->operands[1] : "self", "");
    if (client_call(s, "GET", path, NULL, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "quotas", quota_columns);
    return 0;
}

static int update(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (args_value(a, "quota") == NULL)
        return err_set(e, ERR_INVALID, "update: --quota NAME=VALUE is missing");
    if (add_quotas(a, body, e) < 0 ||
        client_call(s, "PATCH", path_key(path, a->operands[1], ""), body, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "quotas", quota_columns);
    return 0;
}

/* The server's words: "kept", "stopped", "deleted". */
static void print_revoked(json_t *answer)
{
    const char *done = json_string_value(json_object_get(answer, "sandboxes"));
    json_int_t n = json_integer_value(json_object_get(answer, "count"));

    printf("revoked; %lld sandbox%s %s%s\n", (long long)n, n == 1 ? "" : "es",
           done != NULL ? done : "",
           json_is_true(json_object_get(answer, "left"))
               ? " (`cove list --all-keys` and `--as KEY` show what the key left)"
               : "");
}

static int revoke(const struct args *a, const struct server *s, struct err *e)
{
    const char *what = args_flag(a, "delete-sandboxes") ? "delete" : args_value(a, "sandboxes");
    char key[PATH_TEXT_MAX], path[PATH_TEXT_MAX];
    autojson json_t *answer = NULL;

    path_query(path, path_key(key, a->operands[1], "?"), "sandboxes", what);
    if (client_call(s, "DELETE", path, NULL, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    else
        print_revoked(answer);
    return 0;
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"create", "",   "create a key and print it; only its hash is stored, so it cannot be shown again", create},
    {"list",   "",   "list all keys", list},
    {"show",   "[ID]", "show the quotas of a key (without an ID: of the key in use), and what is used of them", show},
    {"update", "ID", "change quotas of a key", update},
    {"revoke", "ID", "refuse this key from now on", revoke},
    {0},
};
/* clang-format on */

const struct cmd cmd_key = {
    .name = "key",
    .usage = "key create|list|show|update|revoke [OPTIONS] [ID]",
    .summary = "create, list, change and revoke API keys",
    .about =
        "Quotas bound what one key may have. A key has those of the settings quota-NAME unless it "
        "was\n"
        "given its own; an admin's key has none but its own.\n\n"
        "Each key sees only the sandboxes it created; `cove list --all-keys` shows an admin those "
        "of\n"
        "all keys, and `--as KEY` of any command acts for that key. The sandboxes of a revoked "
        "key\n"
        "stay until their timeouts, unless `cove key revoke` says otherwise with --sandboxes, "
        "also\n"
        "later.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};
