/* script.h - what the bash of a session is made to run, and nothing of it shows.
 *
 * The shell runs a loop of ours that uses no variable, no function and no fd but that of
 * its script, so there is nothing in it that a command could change or close. It is
 * told what to do, and says how it went, through the files of its directory
 * (session_dir.h), opened anew each time:
 *
 *   bash   a FIFO: the script of the shell, so named since bash shows that name; its first
 *          line and some to spare, for when the loop was left
 *   b      a file: what it begins with, the loop
 *   c      a FIFO: the text of the next command; opening it waits for us
 *   1 2    stdout and stderr of a command, opened only for its own time
 *   i7     the stdin of a command that was given one; of all others it is /dev/null
 *   2x     nowhere: the stdout of what is ours, and its stderr while it would be traced
 *   s      a FIFO: the reply (reply.h)
 *   2v     leads to 2; nowhere, while a text has more in it than the command (set -v)
 *   q      is there while the text of the command says `exit`, and not `:?`
 *   x      a file: what its EXIT trap does
 *   y      a file: what it does when a command is stopped
 *   t      a file of its user's: which traps there are
 *
 * Whatever a command does to names, none of ours is looked up: only syntax is used,
 * and `builtin`, after looking whether it still is what it should be. Text is printed
 * without a command, by an error: `2<&-/TEXT` is of no fd, and bash says so and of what,
 * on a stderr that leads to us. Not `<&`: for that it would fork. */
#ifndef INIT_SCRIPT_H
#define INIT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "wire/wire.h"

/* File b. `dir` has no character that means something to bash. */
void script_main(struct buf *out, const char *dir, const char *cwd);
/* Lines of its script: the first, which does b, and any other. */
void script_first(struct buf *out, const char *dir);
void script_next(struct buf *out, const char *dir);

/* What a shell does when it exits: the files x (one of the first two) and y. */
enum script_exit {
    SCRIPT_EXIT_ENDS,    /* `exit` ends the session, everything else only the command */
    SCRIPT_EXIT_GOES_ON, /* `exit` ends the command, too */
    SCRIPT_STOPPED,      /* it was told to */
};
void script_exit(struct buf *out, const char *dir, enum script_exit kind);

struct script_call {
    const struct wire_bytes *text;
    const char *cwd;             /* "": where the shell is */
    const struct wire_strv *env; /* NAME=value, for this call only */
    const char *dir;
    const char *input; /* the name there of its stdin; "": it has none */
};
/* Where in a script it can be said what $? is; SIZE_MAX: nowhere. */
#define SCRIPT_WAYS 3
struct script_slots {
    size_t at[SCRIPT_WAYS];
    const char *by[SCRIPT_WAYS]; /* the names that can be relied on there */
    bool around;                 /* there is more in it than the text */
};
#define SCRIPT_NO_SLOTS ((struct script_slots){.at = {SIZE_MAX, SIZE_MAX, SIZE_MAX}})
/* What file c says for it. */
struct script_slots script_command(struct buf *out, const struct script_call *c);
void script_status(struct buf *script, const struct script_slots *slots, unsigned status);
/* After a call with a cwd: back to where the shell was. */
void script_back(struct buf *out, const char *dir);
/* After a text that bash may not have been able to read: that it is in the middle of one. */
void script_mend(struct buf *out, const char *dir);
/* After a text with a trap in it: that it is ours if it is nobody's. */
void script_trap(struct buf *out, const char *dir);
/* Prints everything that another bash needs to be in the same state. */
void script_dump(struct buf *out, const char *dir);

/* 'text' as one word. */
void script_quote(struct buf *out, const char *p, size_t n);
/* NAME=value with a NAME that the shell takes for one. */
bool script_is_variable(const char *s);

#endif
