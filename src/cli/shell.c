/* shell.c - `cove shell`: a terminal in a sandbox, in this one. */
#include <string.h>

#include "cli/attach.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'a', "attach",      "TERMINAL", "look at one that is there instead of making one"},
    {0,   "id",          "TERMINAL", "what to call it; if one of that name runs, it is that one"},
    {'r', "read-only",   NULL,       "with --attach: look only"},
    {0,   "detach-keys", "KEYS",     "what to press to leave it running [" KEYS_DEFAULT "]; none: nothing"},
    REQUEST_AS_OPTS,
    {0},
};
/* clang-format on */

static const char *keys_of(const struct args *a)
{
    const char *keys = args_value(a, "detach-keys");

    return keys != NULL ? keys : KEYS_DEFAULT;
}

static int check(const struct args *a, struct err *e)
{
    struct keys k;

    if (keys_parse(&k, keys_of(a), e) < 0)
        return err_wrap(e, "--detach-keys");
    if (args_value(a, "attach") != NULL && (a->noperands > 1 || args_value(a, "id") != NULL))
        return err_set(e, ERR_INVALID, "--attach: there is something running in it already");
    if (args_value(a, "attach") == NULL && args_flag(a, "read-only"))
        return err_set(e, ERR_INVALID, "--read-only goes with --attach");
    return attach_check(e);
}

static int make(const struct server *s, const struct args *a, struct err *e)
{
    autojson json_t *request = json_object();
    const char *id = args_value(a, "id");

    if (request_argv(a, 1, request, e) < 0 || request_as(a, request, e) < 0)
        return -1;
    if (id != NULL) {
        if (json_object_set_new(request, "id", json_string(id)) < 0)
            return err_set(e, ERR_INVALID, "--id: not UTF-8");
        json_object_set_new(request, "get_or_create", json_true());
    }
    return attach_start(s, a->operands[0], request, keys_of(a), e);
}

static int shell(const struct args *a, struct err *e)
{
    struct attach_opts o = {.sandbox = a->operands[0],
                            .terminal = args_value(a, "attach"),
                            .keys = keys_of(a),
                            .read_only = args_flag(a, "read-only")};
    struct server s;

    if (check(a, e) < 0 || server_find(&s, e) < 0)
        return -1;
    return o.terminal != NULL ? attach_run(&s, &o, e) : make(&s, a, e);
}

const struct cmd cmd_shell = {
    .name = "shell",
    .usage = "shell [OPTIONS] SANDBOX [--] [COMMAND...]",
    .summary = "a login shell, or a command, on a terminal in a sandbox",
    .about =
        "This terminal becomes its window until the program there ends; its exit status becomes\n"
        "ours. Press ctrl-] and then d to leave it running and come back with --attach. A\n"
        "restart of the daemon goes unnoticed; while it is away ctrl-c gives up.",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .command_at = 2,
    .run = shell,
};
