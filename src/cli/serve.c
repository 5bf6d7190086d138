/* serve.c - `cove serve`, `cove stop`, `cove doctor`: the keeper does the work,
 * since all three must be possible when no daemon runs. */
#include "base/buf.h"
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
    (void)a, (void)e;
    return keeper_doctor_main();
}

const struct cmd cmd_serve = {
    .name = "serve",
    .usage = "serve [--listen ADDR:PORT] [--state DIR] [OPTIONS]",
    .summary = "run the daemon, in the foreground",
    .about =
        "Prints one line with `ready` and the URL when it can be used. Ctrl-C ends the daemon\n"
        "and not the sandboxes: the next `cove serve` with the same state finds them again.",
    .raw = true,
    .more_help = config_help,
    .run = serve,
};

static const struct cmd_opt stop_opts[] = {
    {0, "all", NULL, "end every sandbox too, and leave nothing in the kernel"},
    {0, "state", "DIR", "the daemon's state directory [/var/lib/cove]"},
    {0},
};

const struct cmd cmd_stop = {
    .name = "stop",
    .usage = "stop [--all] [--state DIR]",
    .summary = "end the daemon; with --all every sandbox too",
    .about = "Works whether or not a daemon runs.",
    .opts = stop_opts,
    .run = stop,
};

const struct cmd cmd_doctor = {
    .name = "doctor",
    .usage = "doctor",
    .summary = "say what this host can and cannot give",
    .run = doctor,
};
