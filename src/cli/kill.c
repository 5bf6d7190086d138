/* kill.c - `cove kill`: ends a process and everything it started. */
#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'s', "signal", "NAME", "send only this signal, such as HUP or 1"},
    {0,   "tree",   NULL,   "with -s: to all its descendants too"},
    {0,   "grace",  "TIME", "time between TERM and KILL [5s]"},
    {0},
};
/* clang-format on */

/* 0 if there is none of that name. */
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

static int send_signal(const struct server *s, const struct args *a, struct err *e)
{
    autojson json_t *body = json_object();
    const char *name = args_value(a, "signal");
    char path[PATH_TEXT_MAX];
    int signo = signal_number(name);

    if (signo == 0)
        return err_set(e, ERR_INVALID, "'%.40s' is no signal", name);
    json_object_set_new(body, "signal", json_integer(signo));
    json_object_set_new(body, "tree", json_boolean(args_flag(a, "tree")));
    return client_call(s, "POST", path_process(path, a->operands[0], a->operands[1], "signal"),
                       body, NULL, e);
}

static int kill_tree(const struct server *s, const struct args *a, struct err *e)
{
    autojson json_t *body = json_pack("{s:i}", "grace_ms", 5000);
    char path[PATH_TEXT_MAX];

    if (request_duration(a, "grace", "grace_ms", body, e) < 0)
        return -1;
    return client_call(s, "POST", path_process(path, a->operands[0], a->operands[1], "kill"), body,
                       NULL, e);
}

static int kill_run(const struct args *a, struct err *e)
{
    bool only_sends = args_value(a, "signal") != NULL;
    struct server s;

    if (only_sends && args_value(a, "grace") != NULL)
        return err_set(e, ERR_INVALID, "--grace: with -s nothing is killed afterwards");
    if (!only_sends && args_flag(a, "tree"))
        return err_set(e, ERR_INVALID, "--tree goes with -s; without it the whole tree ends");
    if (server_find(&s, e) < 0)
        return -1;
    return only_sends ? send_signal(&s, a, e) : kill_tree(&s, a, e);
}

const struct cmd cmd_kill = {
    .name = "kill",
    .usage = "kill [--grace TIME | -s SIGNAL [--tree]] SANDBOX PROCESS",
    .summary = "end a process and all it started",
    .about = "First TERM, then, when the grace is over, KILL; returns when the whole tree is dead.",
    .opts = opts,
    .min = 2,
    .max = 2,
    .run = kill_run,
};
