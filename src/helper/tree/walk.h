/* walk.h - walks a tree through fds and follows no link, so that a tenant who swaps
 * directories and links meanwhile cannot lead it out of the tree.
 *
 * The names of each directory are sorted, so that a walk can continue where another ended. */
#ifndef HELPER_TREE_WALK_H
#define HELPER_TREE_WALK_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "helper/tree/path.h"

#define WALK_DEPTH_MAX 400u /* depth; one open fd per level. Deeper trees are ERR_LIMIT */

struct walk_entry {
    int dir;           /* fd of its directory */
    const char *name;  /* in that directory */
    const char *path;  /* the caller's path of the tree, and the path below it */
    const char *below; /* points into path: the part below the top */
    unsigned depth;    /* 1: directly below the top */
    struct stat st;    /* of the link, if it is one */
};

enum walk_next { WALK_ON, WALK_OVER /* do not descend */, WALK_STOP };

struct walk {
    /* Called for every entry, for a directory before its content. */
    enum walk_next (*enter)(void *arg, const struct walk_entry *w, struct err *e);
    /* Called for a directory after its content; may be NULL. WALK_STOP with `e` is a failure. */
    enum walk_next (*leave)(void *arg, const struct walk_entry *w, struct err *e);
    void *arg;
    unsigned depth; /* maximum; 0: WALK_DEPTH_MAX */
    bool skip;      /* skip directories without permission, instead of failing */
    bool one_mount; /* skip other mounts */
};

/* Walks everything below the directory `top`, and closes it. Returns 0 at the end, 1 if a
 * callback stopped it, -1 with `e`. */
int walk_below(const struct walk *w, int top, const char *path, struct err *e);

/* The sorted names in a directory, without "." and "..". The caller frees the list and
 * *ret_block, into which the names point. NULL with errno. */
char **walk_names(int dir, size_t *ret_n, void **ret_block);

#endif
