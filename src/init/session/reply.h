/* reply.h - the line by which the shell of a session says how its call went: a letter and a
 * status, as in "n0". Hostile input: the session's user can write anything here. */
#ifndef INIT_SESSION_REPLY_H
#define INIT_SESSION_REPLY_H

#include <stddef.h>

#define REPLY_MAX 4096u /* bytes read; without a reply in them there is none */

enum reply_kind {
    REPLY_READY, /* r: the shell is ready */
    REPLY_DONE,  /* n: the call is over */
    REPLY_LEFT,  /* x: it is over by exit, set -e or set -u, and the shell goes on */
    REPLY_EXIT,  /* e: the command called `exit`, and the shell ends */
    REPLY_QUIET, /* q: the shell runs no commands any more (set -n), and ends */
    REPLY_KINDS,
};

struct reply {
    enum reply_kind kind;
    unsigned status; /* 0..255 */
};

/* 1: *ret is the first reply, *ret_used how many bytes of `p` it and the lines before it have.
 * 0: none yet. -1: none in REPLY_MAX bytes. Other lines are skipped. */
int reply_read(const char *p, size_t n, struct reply *ret, size_t *ret_used);

#endif
