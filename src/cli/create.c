/* create.c - `cove create`: a sandbox that stays. */
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    REQUEST_SANDBOX_OPTS,
    {0,   "snapshot",   "SNAPSHOT", "start as this one, by id or name, instead of a template"},
    {'e', "env",        "K=V",  "a variable of every command in it; may be repeated"},
    {0,   "timeout",    "TIME", "how long it lives, such as 30m or 7d"},
    {0,   "on-timeout", "WHAT", "delete (default), stop or pause"},
    {0,   "auto-resume", NULL,  "while it is paused, a command for it resumes it"},
    {0,   "log-output", NULL,   "keep what commands print in its log (`cove logs SANDBOX`)"},
    {0,   "json",       NULL,   "print the whole sandbox, not only its id"},
    {0},
};
/* clang-format on */

static int create(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *sandbox = NULL;
    struct server s;

    if (request_sandbox(a, body, e) < 0 || request_pairs(a, "env", "env", body, e) < 0 ||
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
    if (!args_flag(a, "json"))
        return request_print_text(sandbox, "id", e);
    request_print(sandbox);
    return 0;
}

const struct cmd cmd_create = {
    .name = "create",
    .usage = "create [OPTIONS]",
    .summary = "make a sandbox and print its id",
    .opts = opts,
    .run = create,
};
