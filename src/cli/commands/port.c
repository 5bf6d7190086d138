/* port.c - `cove port`: the URLs of ports that programs in a sandbox listen on. */
#include <stdio.h>

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "print JSON"},
    {0},
};

static const struct table_column columns[] = {
    {"PORT",    "port",    table_number},
    {"ADDRESS", "address", table_text},
    {"URL",     "url",     table_text},
    {0},
};
/* clang-format on */

static int port(const struct args *a, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];
    uint64_t wanted = 0;
    struct server s;
    json_t *item;
    size_t i;

    if (a->noperands > 1 && (str_u64(a->operands[1], 65535, &wanted) < 0 || wanted == 0))
        return err_set(e, ERR_INVALID, "'%.20s' is not a port from 1 to 65535", a->operands[1]);
    if (server_find(&s, e) < 0 ||
        client_call(&s, "GET", path_sandbox(path, a->operands[0], "ports"), NULL, &answer, e) < 0)
        return -1;
    if (wanted == 0) {
        request_print_list(a, answer, "ports", columns);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "ports"), i, item)
    {
        if ((uint64_t)json_integer_value(json_object_get(item, "port")) == wanted)
            return request_print_made(a, item, "url", e);
    }
    return err_set(e, ERR_NOT_FOUND,
                   "nothing in sandbox %s listens on port %s; `cove port %s` lists its ports",
                   a->operands[0], a->operands[1], a->operands[0]);
}

const struct cmd cmd_port = {
    .name = "port",
    .usage = "port [--json] SANDBOX [PORT]",
    .summary = "list the ports that programs in a sandbox listen on, with their URLs",
    .about = "With PORT it prints only the URL of that port.",
    .opts = opts,
    .min = 1,
    .max = 2,
    .run = port,
};
