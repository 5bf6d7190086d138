/* exits.h - every way out of a command leads back to the loop.
 *
 * bash leaves a command by a jump to `top_level`, or by exit(). In between other code of bash
 * waits for such a jump, to clean up; where it must not, the jump skips it: siglongjmp, exit and
 * waitpid of libc are replaced by ours (LD_PRELOAD). An interrupt is one more way out: what
 * Ctrl-C is to a script. */
#ifndef SHELL_EXITS_H
#define SHELL_EXITS_H

#include <stdbool.h>

enum phase {
    WAITING, /* for a call: nothing to interrupt */
    TAKING,  /* its bytes come: an interrupted one is not run */
    READING, /* bash parses a part of its text; a jump now would leak what it has parsed */
    RUNNING,
    LEAVING, /* in exit_shell(): the EXIT trap runs */
};

#define LEFT_BY_EXIT 100 /* our own value of the jump: bash called exit() */

struct exits {
    volatile enum phase phase;
    volatile bool killed;      /* init killed the processes of the last call that ran */
    volatile bool interrupted; /* this call */
    volatile int exit_status;  /* with LEFT_BY_EXIT */
    bool survives_exit;        /* `exit` ends the call, and not the shell */
};
extern struct exits exits;

/* This process is the shell; its children are not. */
void exits_begin(void);
/* False in a child that bash forked: it ends as in any bash. */
bool is_session_shell(void);
/* Before a call: makes it interruptible again, whatever the last call did to the handler. */
void exits_prepare(void);
/* After sigsetjmp(top_level): all exits lead there from now on. */
void exits_lead_here(void);
/* The call is over: forget its interrupt. */
void exits_end(void);

#endif
