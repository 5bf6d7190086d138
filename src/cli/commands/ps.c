/* ps.c - `cove ps`: lists the processes of a sandbox. */
#include <stdio.h>

#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "print JSON"},
    {0},
};
/* clang-format on */

static const char *command_text(json_t *argv, char out[TABLE_TEXT_MAX])
{
    json_t *arg;
    size_t i, n = 0;

    out[0] = '\0';
    json_array_foreach(argv, i, arg)
    {
        if (n < TABLE_TEXT_MAX)
            n += (size_t)snprintf(out + n, TABLE_TEXT_MAX - n, "%s%s", i > 0 ? " " : "",
                                  json_string_value(arg));
    }
    return out;
}

/* "running", "exit 1", "SIGKILL", "timed out", "out of memory", "exit 2, out of memory" */
static const char *state_text(json_t *process, char out[TABLE_TEXT_MAX])
{
    json_t *end = json_object_get(process, "exit");
    const char *signal = json_string_value(json_object_get(end, "signal"));

    if (!json_is_object(end))
        return json_string_value(json_object_get(process, "state"));
    if (json_is_true(json_object_get(end, "timed_out")))
        return "timed out";
    if (json_is_true(json_object_get(end, "oom")))
        return "out of memory";
    if (signal != NULL)
        return signal;
    snprintf(out, TABLE_TEXT_MAX, "exit %d%s",
             (int)json_integer_value(json_object_get(end, "code")),
             json_is_true(json_object_get(end, "oom_meanwhile")) ? ", out of memory" : "");
    return out;
}

/* clang-format off */
static const struct table_column columns[] = {
    {"PROCESS", "id",         table_text},
    {"PID",     "pid",        table_number},
    {"STATE",   NULL,         state_text},
    {"USER",    "user",       table_text},
    {"AGE",     "started_at", table_age},
    {"COMMAND", "argv",       command_text},
    {0},
};
/* clang-format on */

static int ps(const struct args *a, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];
    struct server s;

    path_sandbox(path, a->operands[0], "processes");
    if (server_find(&s, e) < 0 || client_call(&s, "GET", path, NULL, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "processes", columns);
    return 0;
}

const struct cmd cmd_ps = {
    .name = "ps",
    .usage = "ps [--json] SANDBOX",
    .summary = "list the processes of a sandbox, including those that ended recently",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = ps,
};
