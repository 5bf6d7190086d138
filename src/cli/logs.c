/* logs.c - `cove logs`: what a process printed, and with -f what it prints. */
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/remote.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'f', "follow", NULL,     "stay until the process ends"},
    {0,   "since",  "CURSOR", "from this position on [the first byte kept]"},
    {0},
};
/* clang-format on */

static int logs(const struct args *a, struct err *e)
{
    struct remote_look look = {.sandbox = a->operands[0],
                               .process = a->operands[1],
                               .since = args_value(a, "since"),
                               .follow = args_flag(a, "follow")};
    struct server s;

    if (server_find(&s, e) < 0)
        return -1;
    return remote_logs(&s, &look, e);
}

const struct cmd cmd_logs = {
    .name = "logs",
    .usage = "logs [-f] SANDBOX PROCESS",
    .summary = "print the output of a process",
    .about = "Stdout comes out of stdout and stderr of stderr. A restart of the daemon goes\n"
             "unnoticed. Ctrl-C ends the looking, not the process.",
    .opts = opts,
    .min = 2,
    .max = 2,
    .run = logs,
};
