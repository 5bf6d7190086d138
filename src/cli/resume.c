/* resume.c - `cove resume`: paused sandboxes go on, stopped ones boot again on their
 * old disks. */
#include "base/own.h"
#include "cli/each.h"
#include "cli/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "timeout", "TIME", "how long it lives from now on, such as 30m; without it as it was made"},
    {0},
};
/* clang-format on */

static int resume(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object();

    if (request_duration(a, "timeout", "timeout_ms", body, e) < 0)
        return -1;
    return each_sandbox(a, "resume", "POST", "resume", body, e);
}

const struct cmd cmd_resume = {
    .name = "resume",
    .usage = "resume [--timeout TIME] SANDBOX...",
    .summary = "let paused sandboxes go on, and boot stopped ones with the files they had",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .run = resume,
};
