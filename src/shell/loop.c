/* loop.c - see loop.h. */
#include "shell/loop.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "shell/bash.h"
#include "shell/call.h"
#include "shell/scope.h"

#include "shell/exits.h"
#include "shell/fifos.h"

#define KEEP_MAX 65536u /* the memory of a larger text is freed */
#define STATUS_UNREADABLE 2
#define TRAPS (65 + 3) /* EXIT, the signals, DEBUG, ERR and RETURN, as bash numbers them */

static struct command *current; /* the one that runs, until it is freed */

static void dispose_current(void)
{
    struct command *c = current;

    current = NULL;
    if (c != NULL)
        dispose_command(c);
}

/* Parses the next command of the text into `current`; false: a syntax error. */
static bool read_next(void)
{
    bool ok;

    executing = 0;
    if (temporary_env != NULL)
        dispose_used_env_vars();
    exits.phase = READING;
    ok = read_command() == 0;
    exits.phase = RUNNING;
    current = ok ? global_command : NULL;
    global_command = NULL;
    return ok;
}

static void run(char *text)
{
    line_number = 0;
    with_input_from_string(text, "bash");
    EOF_Reached = 0;
    while (EOF_Reached == 0 && !exits.interrupted) {
        if (!read_next()) {
            last_command_exit_value = STATUS_UNREADABLE;
            set_pipestatus_from_exit(STATUS_UNREADABLE);
            break;
        }
        if (current != NULL && !read_but_dont_execute && !exits.interrupted) {
            executing = 1;
            stdin_redir = 0;
            execute_command(current);
        }
        dispose_current();
    }
    EOF_Reached = 0;
    reset_parser();
}

/* The pipeline that was being started. Otherwise the next command would get its status, and with
 * set -m its children would join a process group that is gone, or wait for a leader that never
 * comes. */
static void forget_pipeline(void)
{
    stop_making_children();
    cleanup_the_pipeline();
    if (pipeline_pgrp != shell_pgrp)
        pipeline_pgrp = 0;
    if (close_pgrp_pipe != NULL)
        close_pgrp_pipe();
}

/* Unwinds as bash does at its top. Errors from unwinding twice are not printed. */
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
    for (int sig = 0; sig < TRAPS; sig++) /* traps may be nested */
        run_trap_cleanup(sig);
    variable_context = 0;
    if (shell_variables != global_variables && reset_local_contexts != NULL)
        reset_local_contexts();
    shell_variables = global_variables;
    dispose_current();
    reset_parser();
    shell_eof_token = 0; /* else the parser still looks for the end of a $( ) */
    restore_sigmask();
    if (mute) {
        __fpurge(stderr);
        setvbuf(stderr, NULL, _IONBF, 0);
    }
}

/* 0: it ran to its end; else the reason of the jump. */
static int attempt(char *text)
{
    int why = __sigsetjmp(top_level, 0);

    if (why == 0) {
        exits_lead_here();
        exits.phase = RUNNING;
        run(text);
    }
    exits.phase = WAITING;
    return why;
}

/* A forked child that failed before its exec exits here. */
static void take_status(int why)
{
    if (why == LEFT_BY_EXIT)
        last_command_exit_value = exits.exit_status;
    else if (why == DISCARD && last_command_exit_value == 0)
        last_command_exit_value = 1;
    if (!is_session_shell())
        exit_shell(last_command_exit_value);
}

static void leave(char letter)
{
    exits.phase = LEAVING;
    fifos_reply(letter, last_command_exit_value);
    exit_shell(last_command_exit_value);
}

/* The command was left by a jump, and the shell goes on. */
static void come_back(int why)
{
    tidy_up();
    if (why ==
        LEFT_BY_EXIT) { /* a failed `exec` has reset the signals, and the EXIT trap has run */
        initialize_signals(1);
        if (restore_traps != NULL)
            restore_traps();
    }
}

static void run_call(const struct shell_call *call, char *bytes)
{
    char *env = bytes + call->cwd, *text = env + call->env;
    bool here, is_exit;
    int why = 0;

    exits.survives_exit = (call->flags & SHELL_SURVIVES_EXIT) != 0;
    fifos_open_stdio(call->input);
    if (last_command_exit_value != call->status) {
        last_command_exit_value = call->status;
        set_pipestatus_from_exit(call->status);
    }
    line_number = 1;
    here = call->cwd == 0 || scope_cd(bytes);
    if ((call->flags & SHELL_DUMP) != 0) {
        last_command_exit_value = dump() ? 0 : 1;
    } else if (here) {
        scope_enter(env, call->env);
        why = attempt(text);
    } else {
        last_command_exit_value = 1;
    }
    if (why != 0)
        take_status(why);
    is_exit = why == EXITBLTIN || (why == EXITPROG && this_shell_builtin == exit_builtin);
    if (is_exit && !exits.interrupted && !exits.survives_exit)
        leave('e');
    if (why != 0)
        come_back(why);
    exits_end();
    make_funcname_visible(0); /* an error inside an `eval` leaves it visible */
    run_unwind_protects();
    fifos_close_output();
    scope_cd_back();
    if (read_but_dont_execute)
        leave('q');
    fifos_reply(why == 0 || why == DISCARD ? 'n' : 'x', last_command_exit_value);
}

/* Between calls, when init does not wait: restores what the last call may have changed. */
static void prepare(void)
{
    fifos_open_null();
    exits_prepare();
}

/* `small` may have `have` bytes of calls already: a forged reply makes init send the next one
 * early. Returns where the whole call is. */
static char *take_call(struct shell_call *call, char small[KEEP_MAX], size_t *have, size_t *size)
{
    char *bytes = small;

    if (*have < sizeof(*call))
        *have += fifos_take(small + *have, sizeof(*call) - *have, KEEP_MAX - *have);
    exits.phase = TAKING;
    exits.killed = false;
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
            fifos_take(bytes + *have, *size - *have, (bytes == small ? KEEP_MAX : *size) - *have);
    return bytes;
}

void loop(void)
{
    static char small[KEEP_MAX];
    size_t have = 0, size;

    prepare(); /* before init can interrupt */
    fifos_reply('r', 0);
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
