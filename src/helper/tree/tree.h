/* tree.h - the directory that an archive is unpacked into; accessed only through fds.
 *
 * Every path is resolved below the layer's own directory without following symbolic links:
 * links from an archive are stored, never followed. */
#ifndef HELPER_TREE_TREE_H
#define HELPER_TREE_TREE_H

#include "base/err.h"
#include "helper/tree/path.h"

/* A layer that is being unpacked, above finished layers. */
struct tree {
    int fd;           /* its directory; borrowed */
    const int *lower; /* directories of the layers below, lowest first; borrowed */
    unsigned nlower;
    int parent_fd; /* cache: the directory `parent`; -1: empty */
    char parent[PATH_ROOM];
};

void tree_init(struct tree *t, int fd, const int *lower, unsigned nlower);
void tree_close(struct tree *t); /* closes the cached fd */

/* An fd of the parent directory of `path`; belongs to the tree. A missing directory is created
 * with owner and mode that the layers below have for it. */
int tree_parent(struct tree *t, const char *path, struct err *e);
/* openat2() below `fd`, through no link and onto no other mount; -1 with errno. */
int tree_open(int fd, const char *path, int flags);

/* Marks `path` as removed from the layers below. */
int tree_whiteout(struct tree *t, const char *path, struct err *e);
/* Hides everything that the layers below have in directory `path`, with a whiteout for each
 * name. Not with an xattr: only root of the host may set that one. */
int tree_opaque(struct tree *t, const char *path, struct err *e);

#define TREE_DEPTH_MAX 400u /* depth of a tree that can be removed */
/* Removes `name` and everything below, through no link and on no other filesystem. */
int tree_remove(int dir, const char *name, struct err *e);

#endif
