/* delete.c - `cove delete`: ends sandboxes, for good. */
#include "cli/each.h"

static int delete (const struct args *a, struct err *e)
{
    return each_sandbox(a, "delete", "DELETE", "", NULL, e);
}

const struct cmd cmd_delete = {
    .name = "delete",
    .alias = "rm",
    .usage = "delete SANDBOX...",
    .summary = "end sandboxes and remove their files",
    .min = 1,
    .max = CMD_ANY,
    .run = delete,
};
