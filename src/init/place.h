/* place.h - a path as somebody inside sees it: whose hands, and where.
 *
 * While a place is entered init has the groups, the fsgid and the fsuid of its user, and
 * unless that is root none of its own power over files. place_leave() gives them back
 * and keeps errno. */
#ifndef INIT_PLACE_H
#define INIT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "init/user.h"
#include "wire/init.h"

struct place {
    int root; /* an fd of "/"; borrowed */
    struct user user;
    char path[FILE_PATH_MAX + 1]; /* absolute */
};

/* `path` is absolute or begins with ~. ERR_INVALID: no such user, or no such path can be. */
int place_find(int root, const char *user, const char *path, struct place *ret, struct err *e);

/* as_root: the place stays the user's, the power is root's. */
int place_enter(const struct place *p, bool as_root, struct err *e);
void place_leave(void);

/* openat2 on the root mount, through links but never out of it; never waits. errno is
 * EXDEV where another mount begins. */
int place_open(const struct place *p, const char *path, uint64_t flags, uint64_t mode);
/* What to say of something that is not a regular file. */
int place_not_regular(const struct place *p, mode_t mode, struct err *e);

#endif
