/* network.c - `cove network`: shows or changes the network rules of a sandbox. */
#include <stdio.h>

#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    REQUEST_RULE_OPTS,
    {0, "open", NULL, "remove all rules"},
    {0, "json", NULL, "print JSON"},
    {0},
};
/* clang-format on */

static void print_list(json_t *network, const char *name)
{
    json_t *list = json_object_get(network, name), *item;
    size_t i;

    json_array_foreach(list, i, item) printf("%-8s %s\n", name, json_string_value(item));
}

static void print(json_t *network)
{
    const char *address = json_string_value(json_object_get(network, "address"));

    printf("%-8s %s\n", "mode", json_string_value(json_object_get(network, "mode")));
    if (address != NULL)
        printf("%-8s %s\n", "address", address);
    print_list(network, "allow");
    print_list(network, "deny");
}

static int network_run(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *network = NULL;
    char path[PATH_TEXT_MAX];
    struct server s;
    bool change;

    if (request_rules(a, body, e) < 0)
        return -1;
    if (args_flag(a, "open") && json_object_size(body) > 0)
        return err_set(e, ERR_INVALID,
                       "--open removes all rules; it cannot be combined with --allow or --deny");
    if (server_find(&s, e) < 0)
        return -1;
    change = json_object_size(body) > 0 || args_flag(a, "open");
    if (client_call(&s, change ? "PUT" : "GET", path_sandbox(path, a->operands[0], "network"),
                    change ? body : NULL, &network, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(network);
    else
        print(network);
    return 0;
}

const struct cmd cmd_network = {
    .name = "network",
    .usage = "network [--allow CIDR]... [--deny CIDR]... SANDBOX",
    .summary = "show or change which destinations a sandbox may reach",
    .about =
        "Without options it shows the rules. --allow and --deny replace all rules at once: open\n"
        "connections to allowed destinations continue, connections to denied ones end. An allow\n"
        "rule wins over a deny rule; a destination without a rule is allowed.",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = network_run,
};
