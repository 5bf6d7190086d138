/* kill.c - `cove kill`: kills a process and its descendants, or sends a signal. */
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'s', "signal", "NAME", "send only this signal, such as HUP or 1"},
    {0,   "tree",   NULL,   "with -s: send it to all descendants too"},
    {0,   "grace",  "TIME", "time between SIGTERM and SIGKILL [5s]"},
    {0},
};
/* clang-format on */

/* 0 if the name is unknown. */
static int signal_number(const char *name)
{
    uint64_t n;

    if (str_u64(name, 64, &n) == 0)
        return (int)n;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) != NULL && strcasecmp(sigabbrev_np(i), name) == 0)
            return i;
    return 0;
}

static int kill_run(const struct args *a, struct err *e)
{
    const char *name = args_value(a, "signal");
    int signo = name != NULL ? signal_number(name) : 0;
    autojson json_t *body = NULL;
    char path[PATH_TEXT_MAX];
    struct server s;

    if (name != NULL && args_value(a, "grace") != NULL)
        return err_set(e, ERR_INVALID, "--grace and -s cannot be combined: -s only sends a signal");
    if (name == NULL && args_flag(a, "tree"))
        return err_set(e, ERR_INVALID,
                       "--tree needs -s; without -s the whole tree is killed anyway");
    if (name != NULL && signo == 0)
        return err_set(e, ERR_INVALID, "-s: '%.40s' is not a signal such as HUP or 1", name);
    body = name != NULL
               ? json_pack("{s:i, s:b}", "signal", signo, "tree", args_flag(a, "tree") ? 1 : 0)
               : json_pack("{s:i}", "grace_ms", 5000);
    if (request_duration(a, "grace", "grace_ms", body, e) < 0 || server_find(&s, e) < 0)
        return -1;
    path_process(path, a->operands[0], a->operands[1], name != NULL ? "signal" : "kill");
    return client_call(&s, "POST", path, body, NULL, e);
}

const struct cmd cmd_kill = {
    .name = "kill",
    .usage = "kill [--grace TIME | -s SIGNAL [--tree]] SANDBOX PROCESS",
    .summary = "kill a process and all its descendants",
    .about =
        "Sends SIGTERM, and SIGKILL after the grace time. Returns when the whole tree is dead.",
    .opts = opts,
    .min = 2,
    .max = 2,
    .run = kill_run,
};
