/* session.c - `cove session`: shells that remember. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/feed.h"
#include "cli/path.h"
#include "cli/remote.h"
#include "cli/request.h"
#include "cli/table.h"

#define STDIN_MAX (16u << 20) /* what the server takes for a command */
#define TEXT_MAX (16u << 20)

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0,   "id",      "NAME", "create: its name"},
    REQUEST_AS_OPTS,
    {0,   "timeout", "TIME", "kill a command after this time, such as 30s; exit status 124"},
    {0,   "restart", NULL,   "create: `exit` ends a command and not the session"},
    {'i', "stdin",   NULL,   "exec: read our stdin to its end and give it to the command"},
    {0,   "json",    NULL,   "as JSON"},
    {0},
};
/* clang-format on */

static const char *text_of(json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));

    return s != NULL ? s : "";
}

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
    if (!args_flag(a, "json"))
        return request_print_text(answer, "id", e);
    request_print(answer);
    return 0;
}

static void print_table(json_t *sessions)
{
    autotable struct table t;
    json_t *session;
    size_t i;

    table_init(&t, "SESSION", "STATE", "USER", "AGE", "CWD", "REASON", NULL);
    json_array_foreach(sessions, i, session)
    {
        char age[TABLE_AGE_MAX];

        table_add(&t, text_of(session, "id"));
        table_add(&t, text_of(session, "state"));
        table_add(&t, text_of(session, "user"));
        table_add(&t, table_age(json_object_get(session, "created_at"), age));
        table_add(&t, text_of(session, "cwd"));
        table_add(&t, text_of(session, "reason"));
    }
    table_print(&t);
}

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "GET", path_sandbox(path, a->operands[1], "sessions"), NULL, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    else
        print_table(json_object_get(answer, "sessions"));
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

/* What the user typed behind the session, as one text: it is for a shell. */
static int add_text(const struct args *a, json_t *body, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);

    for (int i = 3; i < a->noperands; i++)
        buf_addf(&text, "%s%s", i > 3 ? " " : "", a->operands[i]);
    if (text.failed)
        return err_set(e, ERR_TOO_LARGE, "a command of more than %u bytes", TEXT_MAX);
    if (str_is_utf8(buf_data(&text), text.len))
        return json_object_set_new(body, "command", json_string(buf_cstr(&text)));
    return err_set(e, ERR_INVALID, "a command that is not UTF-8");
}

static int add_stdin(json_t *body, struct err *e)
{
    autobuf struct buf in = BUF_INIT(STDIN_MAX), b64 = BUF_INIT(2 * STDIN_MAX);
    char *room;
    ssize_t n;

    while ((room = buf_room(&in, 65536)) != NULL && (n = feed_read(room, 65536, e)) > 0)
        buf_added(&in, (size_t)n);
    if (room == NULL)
        return err_set(e, ERR_TOO_LARGE, "stdin: more than %u bytes", STDIN_MAX);
    if (n < 0)
        return -1;
    if (str_base64(&b64, buf_data(&in), in.len) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return json_object_set_new(body, "stdin_base64", json_string(buf_cstr(&b64)));
}

static int print_result(const struct server *s, const struct args *a, json_t *body, struct err *e)
{
    autojson json_t *answer = NULL;

    if (remote_result(s, a->operands[1], a->operands[2], body, &answer, e) < 0)
        return -1;
    request_print(answer);
    return (int)json_integer_value(json_object_get(answer, "exit_code"));
}

static int exec(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object();

    if (a->noperands < 4)
        return err_set(e, ERR_INVALID, "session exec: a command is missing");
    if (args_value(a, "user") != NULL)
        return err_set(e, ERR_INVALID, "session exec: a session has its user since it was created");
    if (request_as(a, body, e) < 0 || request_duration(a, "timeout", "timeout_ms", body, e) < 0 ||
        add_text(a, body, e) < 0 || (args_flag(a, "stdin") && add_stdin(body, e) < 0))
        return -1;
    if (remote_catch_signals(e) < 0)
        return -1;
    if (args_flag(a, "json"))
        return print_result(s, a, body, e);
    return remote_exec(s, a->operands[1], a->operands[2], body, e);
}

/* ---- which ---- */

static const struct {
    const char *name;
    int operands; /* itself included; of `exec` at least */
    int (*run)(const struct args *a, const struct server *s, struct err *e);
} words[] = {
    {"create", 2, create},       {"list", 2, list},     {"exec", 4, exec},
    {"interrupt", 3, interrupt}, {"delete", 3, delete},
};

static int session(const struct args *a, struct err *e)
{
    struct server s;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(a->operands[0], words[i].name) != 0)
            continue;
        if (a->noperands < words[i].operands)
            return err_set(e, ERR_INVALID, "session %s: %s is missing", words[i].name,
                           a->noperands < 2   ? "SANDBOX"
                           : a->noperands < 3 ? "SESSION"
                                              : "COMMAND");
        if (a->noperands > words[i].operands && words[i].run != exec)
            return err_set(e, ERR_INVALID, "session %s: unexpected argument '%.60s'", words[i].name,
                           a->operands[words[i].operands]);
        if (server_find(&s, e) < 0)
            return -1;
        return words[i].run(a, &s, e);
    }
    return err_set(e, ERR_INVALID, "session: expected create, list, exec, interrupt or delete");
}

const struct cmd cmd_session = {
    .name = "session",
    .usage =
        "session create|list|exec|interrupt|delete [OPTIONS] SANDBOX [SESSION [--] COMMAND...]",
    .summary = "shells that remember: commands that share directory, variables and functions",
    .about =
        "`exec` hands COMMAND, joined by blanks, to the session's bash and stays until it ends;\n"
        "its exit status becomes ours. Ctrl-C interrupts the command, and the session goes on.\n"
        "A restart of the daemon goes unnoticed, unless --json waits for the answer as a whole.",
    .opts = opts,
    .words = "create list exec interrupt delete",
    .min = 1,
    .max = CMD_ANY,
    .command_at = 4,
    .run = session,
};
