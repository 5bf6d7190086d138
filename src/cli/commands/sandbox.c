/* sandbox.c - `cove sandbox`: recovers or deletes damaged sandboxes. */
#include "cli/commands/sub.h"

static int recover(const struct args *a, const struct server *s, struct err *e)
{
    (void)e;
    return each_sandbox(a, 1, s, "POST", "recover", NULL);
}

static int delete (const struct args *a, const struct server *s, struct err *e)
{
    (void)e;
    return each_sandbox(a, 1, s, "DELETE", "", NULL);
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"recover", "SANDBOX...", "run a damaged sandbox again, or stop it and keep its files", recover},
    {"delete",  "SANDBOX...", "delete a damaged sandbox and its files", delete},
    {0},
};
/* clang-format on */

const struct cmd cmd_sandbox = {
    .name = "sandbox",
    .usage = "sandbox recover|delete SANDBOX...",
    .summary = "recover or delete damaged sandboxes",
    .about =
        "A sandbox is damaged if the daemon finds its record unreadable or missing, or cannot\n"
        "reach its init. The daemon leaves it untouched until one of these commands. `recover`\n"
        "keeps it running if its processes can be reached; otherwise it becomes stopped. `cove\n"
        "list` shows damaged sandboxes, `cove doctor` says what is wrong with them.",
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};
