/* exec.c - `cove exec`: a command in a sandbox that exists. */
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/remote.h"
#include "cli/request.h"

static const struct cmd_opt opts[] = {REQUEST_COMMAND_OPTS, {0}};

static int exec(const struct args *a, struct err *e)
{
    autojson json_t *command = json_object();
    struct server s;

    if (request_command(a, 1, command, e) < 0)
        return -1;
    if (server_find(&s, e) < 0)
        return -1;
    if (args_flag(a, "tty"))
        return attach_start(&s, a->operands[0], command, KEYS_DEFAULT, e);
    if (remote_catch_signals(e) < 0)
        return -1;
    return remote_run(&s, a->operands[0], command, e);
}

const struct cmd cmd_exec = {
    .name = "exec",
    .usage = "exec [OPTIONS] SANDBOX [--] COMMAND...",
    .summary = "run a command in a sandbox and stay until it ends",
    .about =
        "Its exit status becomes ours (128 and the signal's number if one ended it, 124 after\n"
        "--timeout). Stdin is passed on when it is not a terminal. Ctrl-C interrupts the\n"
        "command, a second one kills it. A restart of the daemon goes unnoticed, but for a part\n"
        "of stdin that was on its way: that is an error, and the command is killed. With -t it\n"
        "is as `cove shell`: it goes on when you detach.",
    .opts = opts,
    .min = 2,
    .max = CMD_ANY,
    .command_at = 2,
    .run = exec,
};
