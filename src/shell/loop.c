/* loop.c - see loop.h. */
#include "shell/loop.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "shell/around.h"
#include "shell/bash.h"
#include "shell/call.h"
#include "shell/dump.h"
#include "shell/lines.h"
#include "shell/ways.h"

#define KEEP_MAX 65536u /* a larger text's memory is given back */
#define STATUS_UNREADABLE 2
#define TRAPS (65 + 3) /* EXIT, the signals, and DEBUG, ERR and RETURN, as bash counts them */

static struct command *current; /* what runs, until it is disposed of */

static void dispose_current(void)
{
    struct command *c = current;

    current = NULL;
    if (c != NULL)
        dispose_command(c);
}

/* What comes next in the text, to `current`; false: bash cannot make anything of it. */
static bool read_next(void)
{
    bool ok;

    executing = 0;
    if (temporary_env != NULL)
        dispose_used_env_vars();
    ways.phase = READING;
    ok = read_command() == 0;
    ways.phase = RUNNING;
    current = ok ? global_command : NULL;
    global_command = NULL;
    return ok;
}

static void run(char *text)
{
    line_number = 0;
    with_input_from_string(text, "bash");
    EOF_Reached = 0;
    while (EOF_Reached == 0 && !ways.stopped) {
        if (!read_next()) {
            last_command_exit_value = STATUS_UNREADABLE;
            set_pipestatus_from_exit(STATUS_UNREADABLE);
            break;
        }
        if (current != NULL && !read_but_dont_execute && !ways.stopped) {
            executing = 1;
            stdin_redir = 0;
            execute_command(current);
        }
        dispose_current();
    }
    EOF_Reached = 0;
    reset_parser();
}

/* Who was being started: else the next command's status is theirs, and with set -m its children
 * join a process group that is no more, or wait for one whose leader never comes. */
static void forget_pipeline(void)
{
    stop_making_children();
    cleanup_the_pipeline();
    if (pipeline_pgrp != shell_pgrp)
        pipeline_pgrp = 0;
    if (close_pgrp_pipe != NULL)
        close_pgrp_pipe();
}

/* What bash says while it undoes things twice is nobody's. */
static void tidy_up(void)
{
    static char heap[512];
    bool mute = funcnest > 0 && variable_context == 0;

    interrupt_state = 0;
    forget_pipeline();
    if (expanding_redir)
        undo_partial_redirects();
    expanding_redir = assigning_in_environment = executing_builtin = 0;
    if (mute)
        setvbuf(stderr, heap, _IOFBF, sizeof(heap));
    top_level_cleanup();
    running_trap = 0;
    for (int sig = 0; sig < TRAPS; sig++) /* they may have been run, one within another */
        run_trap_cleanup(sig);
    variable_context = 0;
    if (shell_variables != global_variables && reset_local_contexts != NULL)
        reset_local_contexts();
    shell_variables = global_variables;
    dispose_current();
    reset_parser();
    shell_eof_token = 0; /* else it still looks for the end of a $( ) */
    restore_sigmask();
    if (mute) {
        __fpurge(stderr);
        setvbuf(stderr, NULL, _IONBF, 0);
    }
}

/* 0: to its end; else why not. */
static int attempt(char *text)
{
    int why = __sigsetjmp(top_level, 0);

    if (why == 0) {
        ways_to_here();
        ways.phase = RUNNING;
        run(text);
    }
    ways.phase = WAITING;
    return why;
}

static bool is_exit(int why)
{
    return why == EXITBLTIN || (why == EXITPROG && this_shell_builtin == exit_builtin);
}

/* A child that failed before it was anything else ends here. */
static void take_status(int why)
{
    if (why == LEFT_BY_EXIT)
        last_command_exit_value = ways.exit_status;
    else if (why == DISCARD && last_command_exit_value == 0)
        last_command_exit_value = 1;
    if (!ways_is_shell())
        exit_shell(last_command_exit_value);
}

static void leave(char letter)
{
    ways.phase = LEAVING;
    lines_reply(letter, last_command_exit_value);
    exit_shell(last_command_exit_value);
}

/* It was left, and goes on. */
static void come_back(int why)
{
    tidy_up();
    if (why == LEFT_BY_EXIT) { /* an `exec` has let go of them, and EXIT's was run */
        initialize_signals(1);
        if (restore_traps != NULL)
            restore_traps();
    }
}

static void run_call(const struct shell_call *call, char *bytes)
{
    char *env = bytes + call->cwd, *text = env + call->env;
    bool here;
    int why = 0;

    ways.goes_on = (call->flags & SHELL_GOES_ON) != 0;
    lines_open_stdio(call->input);
    if (last_command_exit_value != call->status) {
        last_command_exit_value = call->status;
        set_pipestatus_from_exit(call->status);
    }
    line_number = 1;
    here = call->cwd == 0 || around_go(bytes);
    if ((call->flags & SHELL_DUMP) != 0) {
        last_command_exit_value = dump() ? 0 : 1;
    } else if (here) {
        around_enter(env, call->env);
        why = attempt(text);
    } else {
        last_command_exit_value = 1;
    }
    if (why != 0)
        take_status(why);
    if (is_exit(why) && !ways.stopped && !ways.goes_on)
        leave('e');
    if (why != 0)
        come_back(why);
    ways_end();
    make_funcname_visible(0); /* an error below an `eval` leaves it so */
    run_unwind_protects();
    lines_close_output();
    around_back();
    if (read_but_dont_execute)
        leave('q');
    lines_reply(why == 0 || why == DISCARD ? 'n' : 'x', last_command_exit_value);
}

/* While nobody waits for us: what every call needs, whatever the last one did to it. */
static void prepare(void)
{
    lines_open_null();
    ways_prepare();
}

/* `small` has `have` bytes of calls already: init is made to send two of them by a reply that is
 * a lie. Returns where all of this one is. */
static char *take_call(struct shell_call *call, char small[KEEP_MAX], size_t *have, size_t *size)
{
    char *bytes = small;

    if (*have < sizeof(*call))
        *have += lines_take(small + *have, sizeof(*call) - *have, KEEP_MAX - *have);
    ways.phase = TAKING;
    ways.killed = false;
    memcpy(call, small, sizeof(*call));
    *size = sizeof(*call) + call->cwd + call->env + call->text;
    if (*size > KEEP_MAX) {
        bytes = malloc(*size);
        if (bytes == NULL)
            exit_shell(1);
        memcpy(bytes, small, *have);
    }
    if (*have < *size)
        *have +=
            lines_take(bytes + *have, *size - *have, (bytes == small ? KEEP_MAX : *size) - *have);
    return bytes;
}

void loop(void)
{
    static char small[KEEP_MAX];
    size_t have = 0, size;

    prepare(); /* before anybody can ask for a stop */
    lines_reply('r', 0);
    for (;; prepare()) {
        struct shell_call call;
        char *bytes = take_call(&call, small, &have, &size);

        run_call(&call, bytes + sizeof(call));
        have -= size;
        if (bytes != small)
            free(bytes);
        else
            memmove(small, small + size, have);
    }
}
