/* fork.c - `cove fork`: creates sandboxes with the files of another. */

#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'n', "count",   "N",    "number of new sandboxes [1]"},
    {0,   "timeout", "TIME", "their lifetime, such as 30m [that of the original]"},
    {0,   "json",    NULL,   "print the new sandboxes as JSON, not only their ids"},
    {0},
};
/* clang-format on */

/* Prints every failure; the first one gives the exit status. */
static int print(json_t *answer, bool ids, struct err *e)
{
    json_t *one;
    size_t i;
    int status = 0;

    json_array_foreach(json_object_get(answer, "forks"), i, one)
    {
        json_t *error = json_object_get(one, "error");

        if (error == NULL && ids &&
            request_print_text(json_object_get(one, "sandbox"), "id", e) < 0)
            return -1;
        if (error == NULL)
            continue;
        cmd_complain("fork", "%s",
                     json_string_value(json_object_get(error, "message")) ?: "failed");
        if (status == 0)
            status = err_exit(err_from_code(json_string_value(json_object_get(error, "code"))));
    }
    return status;
}

static int fork_run(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    const char *count = args_value(a, "count");
    char path[PATH_TEXT_MAX];
    struct server s;
    uint64_t n;

    if (count != NULL && str_u64(count, UINT32_MAX, &n) < 0)
        return err_set(e, ERR_INVALID, "--count: '%s' is not a number", count);
    if (count != NULL)
        json_object_set_new(body, "count", json_integer((json_int_t)n));
    if (request_duration(a, "timeout", "timeout_ms", body, e) < 0 || server_find(&s, e) < 0 ||
        client_call(&s, "POST", path_sandbox(path, a->operands[0], "fork"), body, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    return print(answer, !args_flag(a, "json"), e);
}

const struct cmd cmd_fork = {
    .name = "fork",
    .usage = "fork [-n N] [--timeout TIME] SANDBOX",
    .summary = "create sandboxes with the files of another one, which keeps running",
    .about =
        "Environment, metadata, limits and network are those of the original. Processes are not\n"
        "copied.",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = fork_run,
};
