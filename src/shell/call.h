/* call.h - what init and the shell of a session say to each other.
 *
 * Through three FIFOs and a file of the session's directory (init/session_dir.h):
 *
 *   c      the calls: a struct shell_call, and behind it the bytes whose numbers it has
 *   s      the replies, a line each: a letter (init/reply.h) and a status, as in "n0\n"
 *   1 2    stdout and stderr of a call, opened only for its own time
 *   i7     the stdin of a call that was given one; of all others it is /dev/null
 *
 * The shell speaks as its user: init believes a reply as far as it believes that user. */
#ifndef SHELL_CALL_H
#define SHELL_CALL_H

#include <stdint.h>

#define SHELL_BUILTIN "cove_session"
#define SHELL_OBJECT "/proc/self/fd/3" /* the builtin, for bash to load */
#define SHELL_OBJECT_FD 3
#define SHELL_STOP_SIGNAL 64 /* RTMAX: the call that runs is to be left */
#define SHELL_INPUT_MAX 32

enum {
    SHELL_GOES_ON = 1, /* `exit` ends the call, and not the shell */
    SHELL_DUMP = 2,    /* no text: what the shell knows, for another to take in */
};

struct shell_call {
    uint32_t cwd;    /* bytes of the directory it runs in, with a NUL; 0: where the shell is */
    uint32_t env;    /* bytes of its variables, each NAME='value' in quotes, with a NUL */
    uint32_t text;   /* bytes of what to run, with a NUL */
    uint16_t status; /* what $? is */
    uint16_t flags;
    char input[SHELL_INPUT_MAX]; /* the name of its stdin; "": it has none */
};

#endif
