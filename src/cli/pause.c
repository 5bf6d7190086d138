/* pause.c - `cove pause`: sandboxes stand still until they are resumed. */
#include "base/own.h"
#include "cli/each.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "no-memory", NULL, "keep only the files: processes end, and `cove resume` boots it again"},
    {0},
};
/* clang-format on */

static int pause_them(const struct args *a, struct err *e)
{
    autojson json_t *body = json_pack("{s:b}", "memory", args_flag(a, "no-memory") ? 0 : 1);

    return each_sandbox(a, "pause", "POST", "pause", body, e);
}

const struct cmd cmd_pause = {
    .name = "pause",
    .usage = "pause [--no-memory] SANDBOX...",
    .summary = "stop the time in sandboxes; nothing in them is lost",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .run = pause_them,
};
