/* update.c - `cove update`: changes a sandbox that exists. */
#include <string.h>

#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "name",        "NAME",  "a new name; '' removes it"},
    {0, "meta",        "K=V",   "replace all labels by these; repeatable"},
    REQUEST_LIMIT_OPTS
    {0, "timeout",     "TIME",  "lifetime from now on, such as 30m or 7d; 0: until it is deleted"},
    {0, "on-timeout",  "WHAT",  "at the end of its lifetime: delete, stop or pause"},
    {0, "auto-resume", "on|off", "if it is paused, resume it when a command arrives"},
    {0, "fsync",       "MODE",  "durable or relaxed; counts from its next boot"},
    REQUEST_RULE_OPTS,
    {0, "open",        NULL,    "remove all network rules"},
    {0, "json",        NULL,    "print the whole sandbox as JSON"},
    {0},
};
/* clang-format on */

static int fill(const struct args *a, json_t *body, struct err *e)
{
    const char *resume = args_value(a, "auto-resume");

    if (request_text(body, "name", args_value(a, "name"), "--name", e) < 0 ||
        request_text(body, "on_timeout", args_value(a, "on-timeout"), "--on-timeout", e) < 0 ||
        request_text(body, "fsync", args_value(a, "fsync"), "--fsync", e) < 0 ||
        request_duration(a, "timeout", "timeout_ms", body, e) < 0 || request_limits(a, body, e) < 0)
        return -1;
    if (json_object_size(json_object_get(body, "limits")) == 0)
        json_object_del(body, "limits");
    if (args_flag(a, "meta") && request_pairs(a, "meta", "metadata", body, e) < 0)
        return -1;
    if (resume != NULL && strcmp(resume, "on") != 0 && strcmp(resume, "off") != 0)
        return err_set(e, ERR_INVALID, "--auto-resume: '%.20s' is neither on nor off", resume);
    if (resume != NULL)
        json_object_set_new(body, "auto_resume", json_boolean(strcmp(resume, "on") == 0));
    return 0;
}

static int update(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *rules = json_object(), *sandbox = NULL;
    bool open = args_flag(a, "open");
    char path[PATH_TEXT_MAX];
    struct server s;

    if (fill(a, body, e) < 0 || request_rules(a, rules, e) < 0)
        return -1;
    if (open && json_object_size(rules) > 0)
        return err_set(e, ERR_INVALID,
                       "--open removes all rules; it cannot be combined with --allow or --deny");
    if (!open && json_object_size(rules) == 0 && json_object_size(body) == 0)
        return err_set(e, ERR_INVALID,
                       "nothing to change; `cove help update` lists what can be changed");
    if (server_find(&s, e) < 0)
        return -1;
    /* the network first: after a new name the old one is no sandbox any more */
    if ((open || json_object_size(rules) > 0) &&
        client_call(&s, "PUT", path_sandbox(path, a->operands[0], "network"), rules, NULL, e) < 0)
        return -1;
    if (client_call(&s, json_object_size(body) > 0 ? "PATCH" : "GET",
                    path_sandbox(path, a->operands[0], ""),
                    json_object_size(body) > 0 ? body : NULL, &sandbox, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(sandbox);
    return 0;
}

const struct cmd cmd_update = {
    .name = "update",
    .usage = "update [OPTIONS] SANDBOX",
    .summary = "change the name, labels, limits, lifetime or network rules of a sandbox",
    .about =
        "Changes apply at once, also while it runs. Everything else stays as it is. --nofile "
        "and\n"
        "--bandwidth can change only while it is stopped, and --memory not below what it uses. A\n"
        "higher memory limit does not enlarge /dev/shm before the next boot.",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = update,
};
