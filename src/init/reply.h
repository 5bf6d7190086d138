/* reply.h - the one line by which the shell of a session says how its call went: a letter and
 * a status, as in "n0". The session's user may write here whatever they like. */
#ifndef INIT_REPLY_H
#define INIT_REPLY_H

#include <stddef.h>

#define REPLY_MAX 4096u /* bytes looked at; whoever says nothing in them says nothing */

enum reply_kind {
    REPLY_READY, /* r: it runs, and waits */
    REPLY_DONE,  /* n: the call is over */
    REPLY_LEFT,  /* x: it is over, by what ends a bash (exit, set -e, set -u), and that goes on */
    REPLY_EXIT,  /* e: it said `exit`, and so does the shell */
    REPLY_QUIET, /* q: the shell runs nothing any more (set -n), and ends */
    REPLY_KINDS,
};

struct reply {
    enum reply_kind kind;
    unsigned status; /* 0..255 */
};

/* 1: *ret is what it says, and *ret_used how many bytes of `p` are done with.
 * 0: nothing yet; -1: nothing will come of it. Lines that are no reply are nobody's. */
int reply_read(const char *p, size_t n, struct reply *ret, size_t *ret_used);

#endif
