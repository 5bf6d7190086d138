/* where.h - the path a caller named, as the sandbox sees it: absolute, or relative
 * to where commands start, or below the user's home with "~". Links are followed:
 * they lead nowhere but inside. */
#ifndef HELPER_WHERE_H
#define HELPER_WHERE_H

#include <sys/types.h>

#include "base/err.h"
#include "helper/path.h"

/* Without "~", "/" at the end; ERR_INVALID for one that is empty or too long. */
int where_path(const char *named, char out[PATH_ROOM], struct err *e);
/* An fd, or -1 with a kind that says what is wrong with the path. */
int where_open(const char *named, int flags, struct err *e);
/* An fd of the directory that `path` (of where_path()) is in, and its last part, which
 * points into `path`. ERR_INVALID for "/" and what ends in "..". */
int where_parent(char path[PATH_ROOM], char **ret_name, struct err *e);
/* The directories above `path` that are missing; they become `uid`'s unless that is -1. */
int where_make_parents(const char *path, uid_t uid, gid_t gid, struct err *e);
/* All directories of it that are missing. */
int where_make(const char *named, struct err *e);

#endif
