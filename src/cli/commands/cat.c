/* cat.c - `cove cat`: prints files of sandboxes, byte for byte. */
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/files/place.h"
#include "cli/files/stream.h"

static int run(const struct args *a, struct err *e)
{
    struct server s;

    if (server_find(&s, e) < 0)
        return -1;
    for (int i = 0; i < a->noperands; i++) {
        char target[PLACE_TARGET_MAX];
        struct bar quiet = {0};
        autoreply struct reply *r = NULL;
        struct place p;

        if (place_parse(&p, a->operands[i], e) < 0)
            return -1;
        if (p.sandbox[0] == '\0')
            return err_set(e, ERR_INVALID, "%s: not a SANDBOX:PATH", a->operands[i]);
        place_target(target, &p, "files", p.path, args_value(a, "user"), "");
        r = stream_ask(&s, target, e);
        if (r == NULL || stream_get(r, STDOUT_FILENO, &quiet, e) < 0)
            return -1;
    }
    return 0;
}

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'u', "user", "USER", "act as this user of the sandbox [user]"},
    {0},
};
/* clang-format on */

const struct cmd cmd_cat = {
    .name = "cat",
    .usage = "cat [OPTIONS] SANDBOX:PATH...",
    .summary = "print files of a sandbox",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .run = run,
};
