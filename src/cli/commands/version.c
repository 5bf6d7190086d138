/* version.c - `cove version`: prints the version. */
#include <stdio.h>

#include "cli/cmd.h"
#include "cove-version.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "print JSON"},
    {0},
};
/* clang-format on */

static int version(const struct args *a, struct err *e)
{
    (void)e;
    printf(args_flag(a, "json") ? "{\"version\": \"%s\"}\n" : "cove %s\n", COVE_VERSION);
    return 0;
}

const struct cmd cmd_version = {
    .name = "version",
    .usage = "version [--json]",
    .summary = "print the version",
    .opts = opts,
    .run = version,
};
