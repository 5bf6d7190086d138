/* exec.c - `cove exec`: runs a command in an existing sandbox. */
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/run/remote.h"
#include "cli/terminal/attach.h"

static const struct cmd_opt opts[] = {REQUEST_COMMAND_OPTS, {0}};

/* Prints the id of the process, for `cove logs -f`, `cove kill`. */
static int start_detached(const struct server *s, const char *sandbox, json_t *command,
                          struct err *e)
{
    autojson json_t *started = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "POST", path_sandbox(path, sandbox, "processes"), command, &started, e) < 0)
        return -1;
    return request_print_text(started, "id", e);
}

int exec_in(const struct args *a, const char *sandbox, int first, struct err *e)
{
    autojson json_t *command = json_object();
    struct server s;

    if (request_command(a, first, command, e) < 0)
        return -1;
    if (server_find(&s, e) < 0)
        return -1;
    if (args_flag(a, "detach"))
        return start_detached(&s, sandbox, command, e);
    if (args_flag(a, "tty"))
        return attach_start(&s, sandbox, command, KEYS_DEFAULT, e);
    if (remote_catch_signals(e) < 0)
        return -1;
    return remote_run(&s, sandbox, command, args_flag(a, "interactive"), e);
}

static int exec(const struct args *a, struct err *e)
{
    return exec_in(a, a->operands[0], 1, e);
}

const struct cmd cmd_exec = {
    .name = "exec",
    .usage = "exec [OPTIONS] SANDBOX [--] COMMAND...",
    .summary = "run a command in a sandbox and wait until it ends",
    .about =
        "Exits with the status of the command: 128 + N if signal N killed it, 124 after\n"
        "--timeout, 127 if the program was not found, 126 if it cannot be executed. Failures of\n"
        "cove itself are 200 to 213 (docs/errors.md).\n"
        "Stdin is passed on unless it is a terminal. Ctrl-C interrupts the command, a second one\n"
        "kills it. If the daemon restarts, the command and its output continue; only if a part of\n"
        "stdin may be lost, the command is killed and that is an error. With -t it is like\n"
        "`cove shell`: the command continues after you detach. With -d it prints the id of the\n"
        "process: `cove logs -f SANDBOX PROCESS` shows its output, `cove kill` ends it.",
    .opts = opts,
    .min = 2,
    .max = CMD_ANY,
    .command_at = 2,
    .run = exec,
};
