/* begin.c - how bash comes to have our loop for its top: init names this object in LD_PRELOAD,
 * and bash's first and only script loads it as a builtin and calls that. Of neither is there
 * a trace when the first command looks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell/bash.h"
#include "shell/call.h"
#include "shell/kept.h"
#include "shell/kernel.h"
#include "shell/lines.h"
#include "shell/loop.h"
#include "shell/ways.h"

static struct kept object = {.fd = SHELL_OBJECT_FD};

#define PRELOAD "LD_PRELOAD="

/* Without what is ours; false: that was all. /proc/PID/environ shows these bytes, too. */
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

/* It is for bash only, not for what that starts; somebody else's may stand behind it. */
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

/* The script has the name of its file, which is ours: $0, and what stands before an error. */
static void take_name(void)
{
    static const char name[] = "bash";
    struct variable *source = find_variable("BASH_SOURCE");

    dollar_vars[0] = strdup(name);
    if (source != NULL && (source->attributes & ATT_ARRAY) != 0)
        array_insert(source->value, 0, name);
}

/* It does not return, so bash's own top and its script are not needed any more. */
static int start(struct word_list *list)
{
    if (list == NULL || !lines_begin(list->word->word))
        return 1;
    ways_begin();
    run_unwind_protects();
    hide_name();
    take_name();
    if (kept_is_there(&object)) /* BASH_ENV may have put something of its own there */
        close_fd(object.fd);
    close_buffered_fd(default_buffered_input);
    default_buffered_input = -1;
    last_command_exit_value = 0;
    set_pipestatus_from_exit(0);
    lines_close_output();
    loop();
}

__attribute__((visibility("default"))) struct builtin cove_session_struct = {
    SHELL_BUILTIN, start, BUILTIN_ENABLED, (const char *const[]){NULL}, SHELL_BUILTIN, NULL};
