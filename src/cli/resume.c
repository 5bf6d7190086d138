/* resume.c - `cove resume`: boots stopped sandboxes again, on their old disks. */
#include "cli/each.h"

static int resume(const struct args *a, struct err *e)
{
    return each_sandbox(a, "resume", "POST", "resume", e);
}

const struct cmd cmd_resume = {
    .name = "resume",
    .usage = "resume SANDBOX...",
    .summary = "boot stopped sandboxes again, with the files they had",
    .min = 1,
    .max = CMD_ANY,
    .run = resume,
};
