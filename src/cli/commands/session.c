/* session.c - `cove session`: shells that keep their state between commands. */

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/run/feed.h"
#include "cli/run/remote.h"
#include "cli/table.h"

#define STDIN_MAX (16u << 20) /* what the server accepts for a command */
#define TEXT_MAX (16u << 20)

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0,   "id",      "NAME", "create: name of the session"},
    REQUEST_AS_OPTS,
    {0,   "timeout", "TIME", "kill a command after this time, such as 30s; the exit status is then 124"},
    {0,   "restart", NULL,   "create: `exit` ends the command, not the session"},
    {'i', "stdin",   NULL,   "exec: read stdin to its end and pass it to the command"},
    {0,   "json",    NULL,   "print JSON"},
    {0},
};
/* clang-format on */

/* ---- create, list, interrupt, delete ---- */

static int create(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (request_as(a, body, e) < 0 || request_duration(a, "timeout", "timeout_ms", body, e) < 0 ||
        request_text(body, "id", args_value(a, "id"), "--id", e) < 0)
        return -1;
    if (args_flag(a, "restart"))
        json_object_set_new(body, "restart", json_true());
    if (client_call(s, "POST", path_sandbox(path, a->operands[1], "sessions"), body, &answer, e) <
        0)
        return -1;
    return request_print_made(a, answer, "id", e);
}

/* clang-format off */
static const struct table_column columns[] = {
    {"SESSION", "id",         table_text},
    {"STATE",   "state",      table_text},
    {"USER",    "user",       table_text},
    {"AGE",     "created_at", table_age},
    {"CWD",     "cwd",        table_text},
    {"REASON",  "reason",     table_text},
    {0},
};
/* clang-format on */

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "GET", path_sandbox(path, a->operands[1], "sessions"), NULL, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "sessions", columns);
    return 0;
}

static int interrupt(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "POST", path_session(path, a->operands[1], a->operands[2], "interrupt"),
                    NULL, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    return 0;
}

static int delete (const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];

    return client_call(s, "DELETE", path_session(path, a->operands[1], a->operands[2], ""), NULL,
                       NULL, e);
}

/* ---- exec ---- */

/* The operands after SESSION, joined by blanks: one command line for the shell. */
static int add_text(const struct args *a, json_t *body, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);

    for (int i = 3; i < a->noperands; i++)
        buf_addf(&text, "%s%s", i > 3 ? " " : "", a->operands[i]);
    if (text.failed)
        return err_set(e, ERR_TOO_LARGE, "the command is longer than %u bytes", TEXT_MAX);
    if (str_is_utf8(buf_data(&text), text.len))
        return json_object_set_new(body, "command", json_string(buf_cstr(&text)));
    return err_set(e, ERR_INVALID, "the command is not UTF-8");
}

static int add_stdin(json_t *body, struct err *e)
{
    autobuf struct buf in = BUF_INIT(STDIN_MAX), b64 = BUF_INIT(2 * STDIN_MAX);
    char *room;
    ssize_t n;

    while ((room = buf_room(&in, 65536)) != NULL && (n = feed_read(room, 65536, e)) > 0)
        buf_added(&in, (size_t)n);
    if (room == NULL)
        return err_set(e, ERR_TOO_LARGE, "stdin is longer than %u bytes", STDIN_MAX);
    if (n < 0)
        return -1;
    if (str_base64(&b64, buf_data(&in), in.len) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return json_object_set_new(body, "stdin_base64", json_string(buf_cstr(&b64)));
}

static int exec(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;

    if (args_value(a, "user") != NULL)
        return err_set(e, ERR_INVALID,
                       "exec: --user is an option of `session create`; a session keeps its user");
    if (request_as(a, body, e) < 0 || request_duration(a, "timeout", "timeout_ms", body, e) < 0 ||
        add_text(a, body, e) < 0 || (args_flag(a, "stdin") && add_stdin(body, e) < 0))
        return -1;
    if (remote_catch_signals(e) < 0)
        return -1;
    if (!args_flag(a, "json"))
        return remote_exec(s, a->operands[1], a->operands[2], body, e);
    if (remote_result(s, a->operands[1], a->operands[2], body, &answer, e) < 0)
        return -1;
    request_print(answer);
    return (int)json_integer_value(json_object_get(answer, "exit_code"));
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"create",    "SANDBOX",                    "start a session and print its id", create},
    {"list",      "SANDBOX",                    "list the sessions of a sandbox", list},
    {"exec",      "SANDBOX SESSION COMMAND...", "run a command in a session and wait until it ends", exec},
    {"interrupt", "SANDBOX SESSION",            "interrupt the command that a session runs", interrupt},
    {"delete",    "SANDBOX SESSION",            "end a session and its processes", delete},
    {0},
};
/* clang-format on */

const struct cmd cmd_session = {
    .name = "session",
    .usage =
        "session create|list|exec|interrupt|delete [OPTIONS] SANDBOX [SESSION [--] COMMAND...]",
    .summary = "run commands in shells that keep directory, variables and functions",
    .about =
        "`exec` passes COMMAND, joined by blanks, to the bash of the session, and exits with its\n"
        "status. Ctrl-C interrupts the command, not the session. A restart of the daemon does not\n"
        "interrupt it, except with --json, which waits for the whole result.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .command_at = 4,
    .run = sub_run,
};
