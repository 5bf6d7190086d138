/* serve.c - `cove serve`, `cove stop`, `cove doctor`: call the keeper's code directly, since
 * all three must work without a running daemon. */
#include "cli/cmd.h"
#include "config/config.h"
#include "keeper/keeper.h"

static int serve(const struct args *a, struct err *e)
{
    (void)e;
    return keeper_main(a->argc, a->argv);
}

static int stop(const struct args *a, struct err *e)
{
    (void)e;
    return keeper_stop_main(args_flag(a, "all"), args_value(a, "state"));
}

static int doctor(const struct args *a, struct err *e)
{
    (void)e;
    return keeper_doctor_main(args_value(a, "state"));
}

const struct cmd cmd_serve = {
    .name = "serve",
    .usage = "serve [--listen ADDR:PORT] [--state DIR] [OPTIONS]",
    .summary = "run the daemon in the foreground",
    .about =
        "Prints one line with `ready` and the URL when it accepts requests. Ctrl-C ends the "
        "daemon\n"
        "and not the sandboxes: the next `cove serve` with the same state directory manages them.",
    .raw = true,
    .more_help = config_help,
    .run = serve,
};

static const struct cmd_opt stop_opts[] = {
    {0, "all", NULL, "delete every sandbox too, and all state in the kernel"},
    {0, "state", "DIR", "the daemon's state directory [/var/lib/cove]"},
    {0},
};

const struct cmd cmd_stop = {
    .name = "stop",
    .usage = "stop [--all] [--state DIR]",
    .summary = "end the daemon; with --all delete every sandbox too",
    .about = "Works whether or not the daemon is running.",
    .opts = stop_opts,
    .run = stop,
};

static const struct cmd_opt doctor_opts[] = {
    {0, "state", "DIR", "the daemon's state directory [/var/lib/cove]"},
    {0},
};

const struct cmd cmd_doctor = {
    .name = "doctor",
    .usage = "doctor [--state DIR]",
    .summary = "check what this host supports, and list damaged sandboxes",
    .opts = doctor_opts,
    .run = doctor,
};
