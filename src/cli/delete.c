/* delete.c - `cove delete`: ends sandboxes, for good. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"

/* Tries all of them; the first failure decides the exit status. */
static int delete (const struct args *a, struct err *e)
{
    struct server s;
    int status = 0;

    if (server_find(&s, e) < 0)
        return -1;
    for (int i = 0; i < a->noperands; i++) {
        char path[PATH_TEXT_MAX];
        struct err failure = {0};

        if (client_call(&s, "DELETE", path_sandbox(path, a->operands[i], ""), NULL, NULL,
                        &failure) == 0)
            continue;
        fprintf(stderr, "cove delete: %s: %s\n", a->operands[i], failure.msg);
        if (status == 0)
            status = err_exit(failure.kind);
    }
    return status;
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
