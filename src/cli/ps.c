/* ps.c - `cove ps`: what runs in a sandbox, and what ran there lately. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "as JSON"},
    {0},
};
/* clang-format on */

static void command_text(json_t *argv, char *out, size_t room)
{
    json_t *arg;
    size_t i, n = 0;

    out[0] = '\0';
    json_array_foreach(argv, i, arg) if (n < room) n +=
        (size_t)snprintf(out + n, room - n, "%s%s", i > 0 ? " " : "", json_string_value(arg));
}

/* "running", "exit 1", "SIGKILL", "timed out" */
static void state_text(json_t *process, char *out, size_t room)
{
    json_t *end = json_object_get(process, "exit");
    const char *signal = json_string_value(json_object_get(end, "signal"));

    if (!json_is_object(end))
        snprintf(out, room, "%s", json_string_value(json_object_get(process, "state")));
    else if (json_is_true(json_object_get(end, "timed_out")))
        snprintf(out, room, "timed out");
    else if (signal != NULL)
        snprintf(out, room, "%s", signal);
    else
        snprintf(out, room, "exit %d", (int)json_integer_value(json_object_get(end, "code")));
}

static int ps(const struct args *a, struct err *e)
{
    autojson json_t *answer = NULL;
    autotable struct table t;
    char path[PATH_TEXT_MAX];
    struct server s;
    json_t *process;
    size_t i;

    table_init(&t, "PROCESS", "PID", "STATE", "USER", "AGE", "COMMAND", NULL);
    if (server_find(&s, e) < 0 ||
        client_call(&s, "GET", path_sandbox(path, a->operands[0], "processes"), NULL, &answer, e) <
            0)
        return -1;
    if (args_flag(a, "json")) {
        request_print(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "processes"), i, process)
    {
        char pid[24], state[32], age[TABLE_AGE_MAX], command[256];

        str_fmt(pid, sizeof(pid), "%lld",
                (long long)json_integer_value(json_object_get(process, "pid")));
        state_text(process, state, sizeof(state));
        command_text(json_object_get(process, "argv"), command, sizeof(command));
        table_add(&t, json_string_value(json_object_get(process, "id")));
        table_add(&t, pid);
        table_add(&t, state);
        table_add(&t, json_string_value(json_object_get(process, "user")));
        table_add(&t, table_age(json_object_get(process, "started_at"), age));
        table_add(&t, command);
    }
    table_print(&t);
    return 0;
}

const struct cmd cmd_ps = {
    .name = "ps",
    .usage = "ps [--json] SANDBOX",
    .summary = "list the processes of a sandbox, also those that ended lately",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = ps,
};
