/* delete.c - `cove delete`: deletes sandboxes and their files. */
#include "cli/client/client.h"
#include "cli/commands/sub.h"

static int delete (const struct args *a, struct err *e)
{
    struct server s;

    return server_find(&s, e) < 0 ? -1 : each_sandbox(a, 0, &s, "DELETE", "", NULL);
}

const struct cmd cmd_delete = {
    .name = "delete",
    .alias = "rm",
    .usage = "delete SANDBOX...",
    .summary = "delete sandboxes: kill their processes and remove their files",
    .min = 1,
    .max = CMD_ANY,
    .run = delete,
};
