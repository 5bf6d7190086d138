/* run.c - `cove run`: a sandbox for one command, gone when the command is.
 *
 * Gone also after Ctrl-C, a full disk here, a closed pipe, a restart of the daemon:
 * whatever ends the command's life here, the sandbox is deleted before we leave. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/remote.h"
#include "cli/request.h"

#define STATUS_INTERRUPTED 130
#define DELETE_AGAIN_MS 100

/* clang-format off */
static const struct cmd_opt opts[] = {
    REQUEST_COMMAND_OPTS,
    REQUEST_SANDBOX_OPTS,
    {0},
};
/* clang-format on */

/* A daemon that is being restarted is waited for: nobody else knows of this sandbox. */
static int delete_sandbox(const struct server *s, const char *id, struct err *e)
{
    const struct timespec pause = {.tv_nsec = DELETE_AGAIN_MS * 1000000l};
    uint64_t since = clock_mono_ms();
    char path[PATH_TEXT_MAX];

    while (client_call(s, "DELETE", path_sandbox(path, id, ""), NULL, NULL, e) < 0 &&
           e->kind != ERR_NOT_FOUND) {
        if (e->kind != ERR_UNAVAILABLE || client_is_left(e) || remote_is_interrupted() ||
            clock_mono_ms() - since > REMOTE_RETRY_MS)
            return err_wrap(e, "sandbox %s is left behind", id);
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* No keys to detach with: the sandbox would be gone. */
static int run_in(const struct server *s, const char *id, json_t *command, bool tty, struct err *e)
{
    struct err failure = {0};
    int status = STATUS_INTERRUPTED;

    if (!remote_is_interrupted()) /* while it was being made */
        status = tty ? attach_start(s, id, command, KEYS_NONE, e) : remote_run(s, id, command, e);
    if (delete_sandbox(s, id, &failure) < 0) {
        if (status < 0)
            cmd_complain("run", "%s", e->msg);
        *e = failure;
        return -1;
    }
    return status;
}

static int run(const struct args *a, struct err *e)
{
    autojson json_t *body = json_object(), *command = json_object(), *sandbox = NULL;
    const char *id;
    struct server s;

    if (request_sandbox(a, body, e) < 0 || request_command(a, 0, command, e) < 0)
        return -1;
    if ((args_flag(a, "tty") && attach_check(e) < 0) || server_find(&s, e) < 0 ||
        remote_catch_signals(e) < 0)
        return -1;
    if (client_call(&s, "POST", "/v1/sandboxes", body, &sandbox, e) < 0)
        return client_is_broken(e) ? err_wrap(e, "a sandbox may be left behind") : -1;
    id = json_string_value(json_object_get(sandbox, "id"));
    if (id == NULL)
        return err_set(e, ERR_INTERNAL, "the server made a sandbox without an id");
    return run_in(&s, id, command, args_flag(a, "tty"), e);
}

const struct cmd cmd_run = {
    .name = "run",
    .usage = "run [OPTIONS] [--] COMMAND...",
    .summary = "run a command in a throw-away sandbox",
    .about =
        "Its exit status becomes ours (128 and the signal's number if one ended it, 124 after\n"
        "--timeout). Stdin is passed on when it is not a terminal. Ctrl-C interrupts the\n"
        "command, a second one kills it; the sandbox is deleted in every case.",
    .opts = opts,
    .min = 1,
    .max = CMD_ANY,
    .command_at = 1,
    .run = run,
};
