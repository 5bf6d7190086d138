/* tree.h - directories that an archive is unpacked into, touched by fds only.
 *
 * Every path is walked beneath its layer's own directory and through no symbolic
 * link, whoever made it: what an archive says about links is data to be stored,
 * never a way to go. */
#ifndef HELPER_TREE_H
#define HELPER_TREE_H

#include "base/err.h"
#include "helper/path.h"

/* A layer on its way, over finished ones. */
struct tree {
    int fd;           /* its directory; borrowed */
    const int *lower; /* directories of the layers below, lowest first; borrowed */
    unsigned nlower;
    int parent_fd; /* of the last path, kept for the next: -1 at first */
    char parent[PATH_ROOM];
};

void tree_init(struct tree *t, int fd, const int *lower, unsigned nlower);
void tree_close(struct tree *t); /* the last parent */

/* The directory that `path` is in, made if need be; belongs to the tree. A missing
 * one is made as the layers below have it: it stands for the same directory. */
int tree_parent(struct tree *t, const char *path, struct err *e);
/* As openat2 with O_PATH and these flags, beneath `fd`; -1 with errno. */
int tree_open(int fd, const char *path, int flags);

/* Marks `path` as removed from the layers below. */
int tree_whiteout(struct tree *t, const char *path, struct err *e);
/* Makes directory `path` hide all that the layers below have in it: a mark for
 * each name. Not with an xattr, since only the host's root may set that one. */
int tree_opaque(struct tree *t, const char *path, struct err *e);

#define TREE_DEPTH_MAX 400u /* directories in one another that can be removed */
/* With everything in it, through no link and on no other filesystem. */
int tree_remove(int dir, const char *name, struct err *e);

#endif
