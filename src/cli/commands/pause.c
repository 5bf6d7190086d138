/* pause.c - `cove pause`: freezes sandboxes until they are resumed. */
#include "cli/client/client.h"
#include "cli/commands/sub.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "no-memory", NULL, "keep only the files: processes end, and `cove resume` boots it again"},
    {0},
};
/* clang-format on */

static int pause_run(const struct args *a, struct err *e)
{
    autojson json_t *body = json_pack("{s:b}", "memory", args_flag(a, "no-memory") ? 0 : 1);
    struct server s;

    return server_find(&s, e) < 0 ? -1 : each_sandbox(a, 0, &s, "POST", "pause", body);
}

const struct cmd cmd_pause = {
    .name = "pause",
    .usage = "pause [--no-memory] SANDBOX...",
    .summary = "freeze sandboxes with their processes and memory, until `cove resume`",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .run = pause_run,
};
