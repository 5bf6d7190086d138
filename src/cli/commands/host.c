/* host.c - `cove host`: calls the code directly, since it must work without a running daemon. */
#include "host/host.h"

#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

#define SETTINGS_MAX 32 /* words */

static int isolation_of(const char *word, enum host_isolation *ret, struct err *e)
{
    static const char *const words[] = {
        [ISOLATION_AUTO] = "auto", [ISOLATION_REQUIRE] = "require", [ISOLATION_OFF] = "off"};

    *ret = ISOLATION_AUTO;
    if (word == NULL)
        return 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i], word) == 0) {
            *ret = (enum host_isolation)i;
            return 0;
        }
    return err_set(e, ERR_INVALID, "--isolation '%s': expected require, auto or off", word);
}

static int start(const struct args *a, const char *listen, bool container, struct err *e)
{
    static const char *const passed[] = {"domain", "log-level"};
    static char sets[4096];
    const char *settings[SETTINGS_MAX], *v;
    char *text = sets;
    struct host_opts o = {.name = a->cmd->name,
                          .state = args_value(a, "state"),
                          .settings = settings,
                          .user = args_value(a, "user"),
                          .cgroups = !args_flag(a, "no-cgroup"),
                          .container = container};
    size_t n = 0, at = 0;

    settings[n++] = "--listen";
    settings[n++] = args_value(a, "listen") != NULL ? args_value(a, "listen") : listen;
    for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
        if ((v = args_value(a, passed[i])) != NULL) {
            settings[n++] = i == 0 ? "--domain" : "--log-level";
            settings[n++] = v;
        }
    while ((v = args_next(a, "set", &at)) != NULL) {
        int len = snprintf(text, sizeof(sets) - (size_t)(text - sets), "--%s", v);

        if (n + 1 >= SETTINGS_MAX || len < 0 || text + len + 1 > sets + sizeof(sets))
            return err_set(e, ERR_INVALID, "--set: at most %zu bytes and %d times", sizeof(sets),
                           SETTINGS_MAX - 8);
        settings[n++] = text;
        text += len + 1;
    }
    settings[n] = NULL;
    if (isolation_of(args_value(a, "isolation"), &o.isolation, e) < 0)
        return -1;
    return host_main(&o);
}

static int host(const struct args *a, struct err *e)
{
    return start(a, "127.0.0.1:7878", false, e);
}

static const struct cmd_opt host_opts[] = {
    {0, "listen", "ADDR:PORT", "where it takes connections [127.0.0.1:7878]"},
    {0, "state", "DIR", "where it stores its key and data [~/.local/state/cove/host]"},
    {0, "user", "USER",
     "user of commands that name none; only root can choose another than itself"},
    {0, "isolation", "HOW",
     "require, auto or off: PID and mount namespaces for commands, so that they do not see the "
     "server "
     "[auto]"},
    {0, "no-cgroup", NULL, "know process trees by marks, also where a cgroup is delegated"},
    {0, "domain", "HOST", "domain of host names that lead to ports (default: localhost:PORT)"},
    {0, "log-level", "LEVEL", "error, warn, info or debug [info]"},
    {0, "set", "NAME=VALUE", "any other setting of `cove serve`; may be repeated"},
    {0},
};

const struct cmd cmd_host = {
    .name = "host",
    .usage = "host [--listen ADDR:PORT] [--state DIR] [--isolation require|auto|off]",
    .summary = "run the API for this machine itself, without sandboxes, as any user",
    .about =
        "Commands run on this machine, with all that the user of the server may do: this is for "
        "machines\nthat are isolated already (a container, a virtual machine, a CI job). "
        "docs/host-mode.md lists what\nit does not protect. Ctrl-C ends the server and every "
        "process that it started.",
    .opts = host_opts,
    .run = host,
};
