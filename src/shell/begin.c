/* begin.c - how bash enters our loop: init names this object in LD_PRELOAD, and the one script of
 * bash loads it as a builtin and calls it. When the first command runs no trace of either is
 * left. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell/bash.h"
#include "shell/call.h"
#include "shell/exits.h"
#include "shell/fifos.h"
#include "shell/kept.h"
#include "shell/kernel.h"
#include "shell/loop.h"

static struct kept object = {.fd = SHELL_OBJECT_FD};

#define PRELOAD "LD_PRELOAD="

/* Removes our entry from LD_PRELOAD, in place: /proc/PID/environ shows these bytes. False: the
 * variable is empty now. */
static bool forget_ours(char *variable)
{
    static const char ours[] = PRELOAD SHELL_OBJECT;
    char *value = variable + sizeof(PRELOAD) - 1, *rest = variable + sizeof(ours) - 1;
    size_t n;

    if (strncmp(variable, ours, sizeof(ours) - 1) != 0)
        return true;
    if (*rest != ':') {
        memset(variable, 0, strlen(variable));
        return false;
    }
    n = strlen(++rest);
    memmove(value, rest, n);
    memset(value + n, 0, (size_t)(rest - value));
    return true;
}

/* LD_PRELOAD of ours is for bash only, not for its children; a client's may follow it. */
__attribute__((constructor)) static void forget_preload(void)
{
    char **to = environ;

    kept_note(&object);
    for (char **from = environ; *from != NULL; from++)
        if (forget_ours(*from))
            *to++ = *from;
    *to = NULL;
}

static void hide_name(void)
{
    struct word_desc words[] = {{(char[]){"-d"}, 0}, {(char[]){SHELL_BUILTIN}, 0}};
    struct word_list second = {NULL, &words[1]}, first = {&second, &words[0]};

    enable_builtin(&first);
}

/* $0, and the prefix of errors, would be the path of our script. */
static void take_name(void)
{
    static const char name[] = "bash";
    struct variable *source = find_variable("BASH_SOURCE");

    dollar_vars[0] = strdup(name);
    if (source != NULL && (source->attributes & ATT_ARRAY) != 0)
        array_insert(source->value, 0, name);
}

/* Never returns, so the unwind list and the script of bash are not needed any more. */
static int start(struct word_list *list)
{
    if (list == NULL || !fifos_begin(list->word->word))
        return 1;
    exits_begin();
    run_unwind_protects();
    hide_name();
    take_name();
    if (kept_is_valid(&object)) /* BASH_ENV may have put another file there */
        close_fd(object.fd);
    close_buffered_fd(default_buffered_input);
    default_buffered_input = -1;
    last_command_exit_value = 0;
    set_pipestatus_from_exit(0);
    fifos_close_output();
    loop();
}

__attribute__((visibility("default"))) struct builtin cove_session_struct = {
    SHELL_BUILTIN, start, BUILTIN_ENABLED, (const char *const[]){NULL}, SHELL_BUILTIN, NULL};
