/* where.h - resolves a path that a client gave: absolute, relative to the directory in which
 * commands start, or below the user's home with "~". Links are followed; they cannot lead out
 * of the sandbox. */
#ifndef HELPER_TREE_WHERE_H
#define HELPER_TREE_WHERE_H

#include <sys/types.h>

#include "base/err.h"
#include "helper/tree/path.h"

/* Expands "~" and removes slashes at the end. ERR_INVALID if it is empty or too long. */
int where_path(const char *named, char out[PATH_ROOM], struct err *e);
/* Opens it: an fd, or -1 with the kind that errno means about a path. */
int where_open(const char *named, int flags, struct err *e);

/* openat() of a file for reading that does not wait for the other end of a pipe. Init gives up its
 * lease on /proc/meminfo and the like at an open (init/limits/files.h): waits for that. A tenant's own
 * lease is EAGAIN after WHERE_LEASE_MS. */
#define WHERE_LEASE_MS 200
int where_open_file(int dir, const char *path, int flags);
/* An fd of the parent directory of `path` (from where_path()); *ret_name is its last part and
 * points into `path`. ERR_INVALID for "/" and paths that end in "..". */
int where_parent(char path[PATH_ROOM], char **ret_name, struct err *e);
/* Creates the missing directories above `path`, owned by `uid` unless that is -1. */
int where_make_parents(const char *path, uid_t uid, gid_t gid, struct err *e);
/* Creates the directory and those above it, if missing. */
int where_make(const char *named, struct err *e);

#endif
