/* resume.c - `cove resume`: paused sandboxes continue, stopped ones boot with their files. */
#include "cli/client/client.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "timeout", "TIME", "lifetime from now on, such as 30m [the one given to `cove create`]"},
    {0},
};
/* clang-format on */

static int resume(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object();
    struct server s;

    if (request_duration(a, "timeout", "timeout_ms", body, e) < 0 || server_find(&s, e) < 0)
        return -1;
    return each_sandbox(a, 0, &s, "POST", "resume", body);
}

const struct cmd cmd_resume = {
    .name = "resume",
    .usage = "resume [--timeout TIME] SANDBOX...",
    .summary = "resume paused sandboxes, and boot stopped ones with the files they had",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .run = resume,
};
