/* walk.h - a tree, gone through by fds: what is walked is what was opened, whoever
 * swaps directories and links meanwhile, and no link is followed.
 *
 * Names of each directory come sorted, so that a walk can go on where another ended. */
#ifndef HELPER_WALK_H
#define HELPER_WALK_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "helper/path.h"

#define WALK_DEPTH_MAX 400u /* directories in each other; one fd each. Then ERR_LIMIT */

struct walk_entry {
    int dir;           /* fd of the directory it is in */
    const char *name;  /* in it */
    const char *path;  /* as the caller named the tree, and below */
    const char *below; /* of path: the part below the tree's top */
    unsigned depth;    /* 1: right below the top */
    struct stat st;    /* not through a link */
};

enum walk_next { WALK_ON, WALK_OVER /* do not go into it */, WALK_STOP };

struct walk {
    /* Before what is in it. */
    enum walk_next (*enter)(void *arg, const struct walk_entry *w, struct err *e);
    /* Of a directory, after what is in it; may be NULL. WALK_STOP with `e` set is a failure. */
    enum walk_next (*leave)(void *arg, const struct walk_entry *w, struct err *e);
    void *arg;
    unsigned depth; /* how deep at most; 0: WALK_DEPTH_MAX */
    bool skip;      /* pass over what may not be read, instead of failing */
    bool one_mount; /* pass over what is mounted below */
};

/* Everything below the open directory, which is closed. 0: all of it; 1: it was stopped;
 * -1: `e`, or a callback's. */
int walk_below(const struct walk *w, int top, const char *path, struct err *e);

/* The names in a directory without "." and "..", sorted, each with its NUL in one block,
 * which is the caller's to free; NULL: errno. */
char **walk_names(int dir, size_t *ret_n, void **ret_block);

#endif
