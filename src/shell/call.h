/* call.h - the messages between init and the shell of a session.
 *
 * They go through FIFOs and files of the session's directory (init/session/dir.h):
 *
 *   c      calls: a struct shell_call, and after it as many bytes as it says
 *   s      replies, a line each: a letter (init/session/reply.h) and a status, as in "n0\n"
 *   1 2    stdout and stderr of a call, opened by the shell only while it runs
 *   i7     the stdin of a call that has one; that of all others is /dev/null
 *
 * The session's user can write to all of them: init trusts a reply no more than that user. */
#ifndef SHELL_CALL_H
#define SHELL_CALL_H

#include <stdint.h>

#define SHELL_BUILTIN "cove_session"
#define SHELL_OBJECT "/proc/self/fd/3" /* the builtin, for bash to load */
#define SHELL_OBJECT_FD 3
#define SHELL_INTERRUPT_SIGNAL 64 /* RTMAX: leave the running call */
#define SHELL_INPUT_MAX 32

enum {
    SHELL_SURVIVES_EXIT = 1, /* `exit` ends the call, and not the shell */
    SHELL_DUMP = 2,          /* no text: print the state of the shell (dump.c) */
};

struct shell_call {
    uint32_t cwd;    /* bytes of the directory to run in, with a NUL; 0: where the shell is */
    uint32_t env;    /* bytes of its variables, each NAME='value' in quotes, with a NUL */
    uint32_t text;   /* bytes of the command, with a NUL */
    uint16_t status; /* $? at its start */
    uint16_t flags;
    char input[SHELL_INPUT_MAX]; /* the file name of its stdin; "": /dev/null */
};

#endif
