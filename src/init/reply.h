/* reply.h - the one line by which the shell of a session says how its command went.
 *
 * It is an error message of bash (script.h), so only what follows our own path in it
 * has a form:
 *
 *   bash: line 1: /dev/cove/7/-/n3.4711.: ambiguous redirect
 *
 * a letter, the status, the pid of the shell that speaks (or nothing, if it does not
 * know). The session's user may write here whatever they like. */
#ifndef INIT_REPLY_H
#define INIT_REPLY_H

#include <stddef.h>
#include <sys/types.h>

#define REPLY_MAX 4096u /* bytes looked at; whoever says nothing in them says nothing */

enum reply_kind {
    REPLY_READY, /* n: the command is over, or there was none; the next may come */
    REPLY_CHILD, /* x: that child goes on: `n` follows */
    REPLY_LEAVE, /* e: the shell exits */
    REPLY_BIRTH, /* b: the command ended the shell, and a child will be born: `x` follows */
    REPLY_LEFT,  /* d: the command was left with everything it was in: `n` follows */
    REPLY_STOP,  /* k: the shell was told to stop it: `d` follows */
    REPLY_KINDS,
};

struct reply {
    enum reply_kind kind;
    unsigned status; /* 0..255 */
    pid_t pid;       /* 0: not said */
};

/* 1: *ret is what it says, and *ret_used how many bytes of `p` are done with.
 * 0: nothing yet; -1: nothing will come of it. */
int reply_read(const char *p, size_t n, const char *dir, struct reply *ret, size_t *ret_used);

#endif
