/* workspace.c - `cove workspace`: names with at most one live sandbox behind each.
 *
 * Every other command takes @NAME in place of a sandbox (client/path.h). */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/table.h"
#include "cli/terminal/attach.h"

#define NAME_ROOM 256

/* clang-format off */
static const struct cmd_opt opts[] = {
    REQUEST_SANDBOX_OPTS,
    {0,   "snapshot", "ID",   "create: start from a snapshot instead of a template"},
    REQUEST_COMMAND_OPTS,
    {0,   "grace",    "TIME", "create: pause its sandbox after this time without use"},
    {0,   "archive",  "TIME", "create: then archive and delete it after this time; 0: never"},
    {0,   "ignore-background", NULL, "create: processes in the background are no use of it"},
    {0,   "id",       "ID",   "hold, release: name of the holder [cli]"},
    {0,   "kind",     "KIND", "hold, release: turn or viewer [turn]"},
    {0,   "ttl",      "TIME", "hold: for so long [30s]"},
    {0,   "state",    "STATE", "list: only those that are cold, warming, warm or draining"},
    {0,   "all-keys", NULL,   "list: those of all keys; for admin keys only"},
    {'q', "quiet",    NULL,   "list: names only"},
    {0,   "force",    NULL,   "delete: also while a turn holds it"},
    {0,   "json",     NULL,   "print JSON"},
    {0},
};

static const struct table_column columns[] = {
    {"WORKSPACE", "name",     table_text},
    {"STATE",     "state",    table_text},
    {"SANDBOX",   "sandbox",  table_text},
    {"EPOCH",     "epoch",    table_number},
    {"TURNS",     "turns",    table_number},
    {"VIEWERS",   "viewers",  table_number},
    {"USED",      "used_at",  table_age},
    {"REASON",    "reason",   table_text},
    {0},
};
/* clang-format on */

/* ---- create, list, show, delete ---- */

static int create(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (request_sandbox(a, body, e) < 0 || request_pairs(a, "env", "env", body, e) < 0 ||
        request_text(body, "snapshot", args_value(a, "snapshot"), "--snapshot", e) < 0 ||
        request_duration(a, "grace", "grace_ms", body, e) < 0 ||
        request_duration(a, "archive", "archive_ms", body, e) < 0)
        return -1;
    if (args_flag(a, "ignore-background"))
        json_object_set_new(body, "background", json_false());
    if (client_call(s, "PUT", path_workspace(path, a->operands[1], ""), body, &answer, e) < 0)
        return -1;
    return request_print_made(a, answer, "name", e);
}

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *all = NULL;
    char path[PATH_TEXT_MAX];

    path_query(path,
               args_flag(a, "all-keys") ? "/v1/workspaces?limit=100&all_keys=true"
                                        : "/v1/workspaces?limit=100",
               "state", args_value(a, "state"));
    if (client_list(s, path, "workspaces", &all, e) < 0)
        return -1;
    if (args_flag(a, "quiet")) {
        json_t *row;
        size_t i;

        json_array_foreach(json_object_get(all, "workspaces"), i, row)
            puts(json_string_value(json_object_get(row, "name")));
        return 0;
    }
    request_print_list(a, all, "workspaces", columns);
    return 0;
}

static int show(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "GET", path_workspace(path, a->operands[1], ""), NULL, &answer, e) < 0)
        return -1;
    request_print(answer);
    return 0;
}

static int delete (const struct args *a, const struct server *s, struct err *e)
{
    const char *query = args_flag(a, "force") ? "?force=true" : "";
    char path[PATH_TEXT_MAX], all[PATH_TEXT_MAX + 16];

    str_fmt(all, sizeof(all), "%s%s", path_workspace(path, a->operands[1], ""), query);
    return client_call(s, "DELETE", all, NULL, NULL, e);
}

/* ---- exec, shell ---- */

static int at_name(const struct args *a, char out[NAME_ROOM], struct err *e)
{
    if (strlen(a->operands[1]) + 2 > NAME_ROOM)
        return err_set(e, ERR_INVALID, "the name of the workspace is too long");
    str_fmt(out, NAME_ROOM, "%c%s", PATH_WORKSPACE, a->operands[1]);
    return 0;
}

static int exec(const struct args *a, const struct server *s, struct err *e)
{
    char name[NAME_ROOM];

    (void)s;
    return at_name(a, name, e) < 0 ? -1 : exec_in(a, name, 2, e);
}

static int shell(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *request = json_object();
    char name[NAME_ROOM];

    if (at_name(a, name, e) < 0 || attach_check(e) < 0 || request_argv(a, 2, request, e) < 0 ||
        request_as(a, request, e) < 0)
        return -1;
    return attach_start(s, name, request, KEYS_DEFAULT, e);
}

/* ---- hold, release ---- */

static const char *holder(const struct args *a)
{
    return args_value(a, "id") != NULL ? args_value(a, "id") : "cli";
}

static int hold(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (request_text(body, "holder", holder(a), "--id", e) < 0 ||
        request_text(body, "kind", args_value(a, "kind"), "--kind", e) < 0 ||
        request_duration(a, "ttl", "ttl_ms", body, e) < 0 ||
        client_call(s, "POST", path_workspace(path, a->operands[1], "holders"), body, &answer, e) <
            0)
        return -1;
    return request_print_made(a, answer, "role", e);
}

static int release(const struct args *a, const struct server *s, struct err *e)
{
    char id[1024], rest[1200], path[PATH_TEXT_MAX], all[PATH_TEXT_MAX];

    path_encode(id, sizeof(id), holder(a), "");
    str_fmt(rest, sizeof(rest), "holders/%s?epoch=0", id);
    path_workspace(path, a->operands[1], rest);
    path_query(all, path, "kind", args_value(a, "kind"));
    return client_call(s, "DELETE", all, NULL, NULL, e);
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"create",  "NAME",              "make a workspace, or find the one of that name", create},
    {"list",    "",                  "list workspaces", list},
    {"show",    "NAME",              "show one, without using it", show},
    {"exec",    "NAME COMMAND...",   "run a command in its sandbox, which is made if it must be", exec},
    {"shell",   "NAME [COMMAND...]", "open a terminal in its sandbox", shell},
    {"hold",    "NAME",              "keep its sandbox running for a time, and print: spawner, attached or rearmed", hold},
    {"release", "NAME",              "end a hold", release},
    {"delete",  "NAME",              "delete it with its sandbox and its archives", delete},
    {0},
};
/* clang-format on */

const struct cmd cmd_workspace = {
    .name = "workspace",
    .usage = "workspace create|list|show|exec|shell|hold|release|delete [OPTIONS] [NAME [--] "
             "COMMAND...]",
    .summary = "names with one sandbox behind each, whose files are kept",
    .about =
        "The sandbox of a workspace is made at the first use, shared by all who use the name,\n"
        "paused and archived when nothing uses it, and brought back with its files at the next\n"
        "use. Every command that takes a SANDBOX takes @NAME as well:\n"
        "  cove workspace create web && cove exec @web make && cove cp @web:out.tar .",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .command_at = 3,
    .run = sub_run,
};
