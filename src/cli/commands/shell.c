/* shell.c - `cove shell`: attaches this terminal to one in a sandbox. */

#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/terminal/attach.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'a', "attach",      "TERMINAL", "attach to an existing terminal instead of creating one"},
    {0,   "id",          "TERMINAL", "name of the terminal; if it exists, attach to it"},
    {'r', "read-only",   NULL,       "with --attach: only watch"},
    {0,   "detach-keys", "KEYS",     "keys that detach and leave it running [" KEYS_DEFAULT "]; none: no keys"},
    REQUEST_AS_OPTS,
    {0},
};
/* clang-format on */

static int shell(const struct args *a, struct err *e)
{
    const char *id = args_value(a, "id"), *keys = args_value(a, "detach-keys");
    struct attach_opts o = {.sandbox = a->operands[0],
                            .terminal = args_value(a, "attach"),
                            .keys = keys != NULL ? keys : KEYS_DEFAULT,
                            .read_only = args_flag(a, "read-only")};
    autojson json_t *request = json_object();
    struct keys k;
    struct server s;

    if (keys_parse(&k, o.keys, e) < 0)
        return err_wrap(e, "--detach-keys");
    if (o.terminal != NULL && (a->noperands > 1 || id != NULL))
        return err_set(e, ERR_INVALID,
                       "--attach cannot be combined with --id or COMMAND: its program is already "
                       "running");
    if (o.terminal == NULL && o.read_only)
        return err_set(e, ERR_INVALID, "--read-only needs --attach");
    if (attach_check(e) < 0 || request_argv(a, 1, request, e) < 0 ||
        request_as(a, request, e) < 0 || request_text(request, "id", id, "--id", e) < 0 ||
        server_find(&s, e) < 0)
        return -1;
    if (o.terminal != NULL)
        return attach_run(&s, &o, e);
    if (id != NULL)
        json_object_set_new(request, "get_or_create", json_true());
    return attach_start(&s, o.sandbox, request, o.keys, e);
}

const struct cmd cmd_shell = {
    .name = "shell",
    .usage = "shell [OPTIONS] SANDBOX [--] [COMMAND...]",
    .summary = "open a terminal in a sandbox, with a login shell or a command",
    .about =
        "Attaches this terminal until the program ends, and exits with its status. Press ctrl-]\n"
        "and then d to detach: the program continues, and --attach reattaches. If the daemon\n"
        "restarts, it reconnects; ctrl-c gives up while the daemon is away.",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .command_at = 2,
    .run = shell,
};
