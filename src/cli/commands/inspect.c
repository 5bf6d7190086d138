/* inspect.c - `cove inspect`: shows everything known about sandboxes. */
#include <stdio.h>
#include <string.h>

#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'f', "field", "NAME", "print only this field, such as state or limits.memory"},
    {0},
};
/* clang-format on */

/* The value at "a.b.c", borrowed, or NULL. */
static json_t *find(json_t *j, const char *name)
{
    while (j != NULL && *name != '\0') {
        char part[128];
        size_t n = strcspn(name, ".");

        snprintf(part, sizeof(part), "%.*s", (int)n, name);
        j = json_object_get(j, part);
        name += n + (name[n] == '.');
    }
    return j;
}

static int one(const struct args *a, const struct server *s, const char *sandbox, struct err *e)
{
    autojson json_t *j = NULL, *network = NULL;
    char path[PATH_TEXT_MAX];
    const char *field = args_value(a, "field");
    json_t *value;

    if (client_call(s, "GET", path_sandbox(path, sandbox, ""), NULL, &j, e) < 0 ||
        client_call(s, "GET", path_sandbox(path, sandbox, "network"), NULL, &network, e) < 0)
        return -1;
    json_object_set(j, "network", network);
    if (field == NULL) {
        request_print(j);
        return 0;
    }
    value = find(j, field);
    if (value == NULL)
        return err_set(e, ERR_INVALID, "--field: sandbox %s has no field '%.60s'", sandbox, field);
    if (json_is_string(value))
        printf("%s\n", json_string_value(value));
    else
        request_dump(value, 0);
    return 0;
}

static int inspect(const struct args *a, struct err *e)
{
    struct server s;

    if (server_find(&s, e) < 0)
        return -1;
    for (int i = 0; i < a->noperands; i++)
        if (one(a, &s, a->operands[i], e) < 0)
            return -1;
    return 0;
}

const struct cmd cmd_inspect = {
    .name = "inspect",
    .usage = "inspect [-f NAME] SANDBOX...",
    .summary = "show everything known about sandboxes, as JSON",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .run = inspect,
};
