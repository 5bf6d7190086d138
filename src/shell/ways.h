/* ways.h - every way out of a command, and that they lead to one place.
 *
 * bash leaves a command by a jump to `top_level`, or by exit(). Between both and us others
 * wait for such a jump: these functions of libc are ours (LD_PRELOAD), and let it pass them
 * by where that must be. A stop is one more way: what Ctrl-C is to a script. */
#ifndef SHELL_WAYS_H
#define SHELL_WAYS_H

#include <stdbool.h>

enum phase {
    WAITING, /* for a call: nothing to stop */
    TAKING,  /* it comes: it will not be run */
    READING, /* bash reads a part of its text, and would not free what it has of it */
    RUNNING,
    LEAVING, /* exit_shell(), with an EXIT trap that runs */
};

#define LEFT_BY_EXIT 100 /* as another reason than bash's own: it called exit() */

struct ways {
    volatile enum phase phase;
    volatile bool killed;     /* what the last call that ran had started, by who stopped it */
    volatile bool stopped;    /* in this call */
    volatile int exit_status; /* with LEFT_BY_EXIT */
    bool goes_on;             /* `exit` ends the call, and not the shell */
};
extern struct ways ways;

/* This process is the shell; what it forks is not. */
void ways_begin(void);
/* A child that bash forks is none of us: it ends as it would. */
bool ways_is_shell(void);
/* While nobody waits for us: that it can be stopped, whatever the last call did to that. */
void ways_prepare(void);
/* What was jumped to as `top_level` just now is where all ways lead from now on. */
void ways_to_here(void);
/* The call is over: nothing of a stop is left. */
void ways_end(void);

#endif
