/* run.c - `cove run`: runs one command in a sandbox that is deleted afterwards.
 *
 * Deleted also after Ctrl-C, a write error, a closed pipe or a restart of the daemon: no
 * failure here may leave the sandbox. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/run/remote.h"
#include "cli/terminal/attach.h"

#define STATUS_INTERRUPTED 130
#define DELETE_AGAIN_MS 100

/* clang-format off */
static const struct cmd_opt opts[] = {
    REQUEST_COMMAND_OPTS,
    REQUEST_SANDBOX_OPTS,
    {0, "name", "NAME", "a name of the sandbox, to use in place of its id"},
    {0},
};
/* clang-format on */

/* Retries while the daemon restarts: no other program will delete this sandbox. */
static int delete_sandbox(const struct server *s, const char *id, struct err *e)
{
    const struct timespec pause = {.tv_nsec = DELETE_AGAIN_MS * 1000000l};
    uint64_t since = clock_mono_ms();
    char path[PATH_TEXT_MAX];

    while (client_call(s, "DELETE", path_sandbox(path, id, ""), NULL, NULL, e) < 0 &&
           e->kind != ERR_NOT_FOUND) {
        if (e->kind != ERR_UNAVAILABLE || client_is_left(e) || remote_is_interrupted() ||
            clock_mono_ms() - since > REMOTE_RETRY_MS)
            return err_wrap(e, "sandbox %s was not deleted; `cove delete %s` deletes it", id, id);
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* Without detach keys: the sandbox would be deleted after detaching. */
static int run_in(const struct server *s, const char *id, json_t *command, const struct args *a,
                  struct err *e)
{
    struct err failure = {0};
    int status = STATUS_INTERRUPTED;

    if (!remote_is_interrupted()) /* while the sandbox was created */
        status = args_flag(a, "tty") ? attach_start(s, id, command, KEYS_NONE, e)
                                     : remote_run(s, id, command, args_flag(a, "interactive"), e);
    if (delete_sandbox(s, id, &failure) < 0) {
        if (status < 0)
            cmd_complain("run", "%s", e->msg);
        *e = failure;
        return -1;
    }
    return status;
}

/* The sandbox stays; if the command cannot be started, it does not. */
static int leave_running(const struct server *s, const char *id, json_t *command, struct err *e)
{
    char path[PATH_TEXT_MAX];
    struct err ignored = {0};

    if (client_call(s, "POST", path_sandbox(path, id, "processes"), command, NULL, e) < 0) {
        delete_sandbox(s, id, &ignored);
        return -1;
    }
    puts(id);
    return 0;
}

static int run(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *command = json_object(), *sandbox = NULL;
    const char *id;
    struct server s;

    if (request_sandbox(a, body, e) < 0 ||
        request_text(body, "name", args_value(a, "name"), "--name", e) < 0 ||
        request_command(a, 0, command, e) < 0)
        return -1;
    if ((args_flag(a, "tty") && attach_check(e) < 0) || server_find(&s, e) < 0 ||
        remote_catch_signals(e) < 0)
        return -1;
    if (client_call(&s, "POST", "/v1/sandboxes", body, &sandbox, e) < 0)
        return client_is_broken(e)
                   ? err_wrap(e, "a sandbox may have been created; `cove list` shows it")
                   : -1;
    id = json_string_value(json_object_get(sandbox, "id"));
    if (id == NULL)
        return err_set(e, ERR_INTERNAL, "create a sandbox: the server's answer has no id");
    return args_flag(a, "detach") ? leave_running(&s, id, command, e)
                                  : run_in(&s, id, command, a, e);
}

const struct cmd cmd_run = {
    .name = "run",
    .usage = "run [OPTIONS] [--] COMMAND...",
    .summary = "run a command in a new sandbox that is deleted afterwards",
    .about =
        "Exits with the status of the command: 128 + N if signal N killed it, 124 after\n"
        "--timeout, 127 if the program was not found, 126 if it cannot be executed. Failures of\n"
        "cove itself are 200 to 213 (docs/errors.md).\n"
        "Stdin is passed on unless it is a terminal. Ctrl-C interrupts the command, a second one\n"
        "kills it; the sandbox is deleted in every case. With -d it prints the id of the sandbox\n"
        "and returns; the sandbox then stays until its lifetime ends or `cove delete`.",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .command_at = 1,
    .run = run,
};
