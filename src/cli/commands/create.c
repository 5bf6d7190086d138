/* create.c - `cove create`: creates a long-lived sandbox. */
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    REQUEST_SANDBOX_OPTS,
    {0,   "name",       "NAME", "a name to use in place of the id, unique among your sandboxes"},
    {0,   "snapshot",   "SNAPSHOT", "start from this snapshot (id or name) instead of a template"},
    {'e', "env",        "K=V",  "set a variable for every command in it; repeatable"},
    {0,   "timeout",    "TIME", "lifetime, such as 30m or 7d"},
    {0,   "on-timeout", "WHAT", "at the end of its lifetime: delete (default), stop or pause"},
    {0,   "auto-resume", NULL,  "if it is paused, resume it when a command arrives"},
    {0,   "log-output", NULL,   "keep the output of its commands in its log (`cove logs SANDBOX`)"},
    {0,   "json",       NULL,   "print the whole sandbox as JSON, not only its id"},
    {0},
};
/* clang-format on */

static int create(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *sandbox = NULL;
    struct server s;

    if (request_sandbox(a, body, e) < 0 ||
        request_text(body, "name", args_value(a, "name"), "--name", e) < 0 ||
        request_pairs(a, "env", "env", body, e) < 0 ||
        request_duration(a, "timeout", "timeout_ms", body, e) < 0 ||
        request_text(body, "on_timeout", args_value(a, "on-timeout"), "--on-timeout", e) < 0 ||
        request_text(body, "snapshot", args_value(a, "snapshot"), "--snapshot", e) < 0)
        return -1;
    if (args_flag(a, "auto-resume"))
        json_object_set_new(body, "auto_resume", json_true());
    if (args_flag(a, "log-output"))
        json_object_set_new(body, "log_output", json_true());
    if (server_find(&s, e) < 0 || client_call(&s, "POST", "/v1/sandboxes", body, &sandbox, e) < 0)
        return -1;
    return request_print_made(a, sandbox, "id", e);
}

const struct cmd cmd_create = {
    .name = "create",
    .usage = "create [OPTIONS]",
    .summary = "create a sandbox and print its id",
    .opts = opts,
    .run = create,
};
