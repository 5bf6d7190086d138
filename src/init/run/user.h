/* user.h - the user that a command runs as, from the sandbox's own /etc/passwd.
 *
 * The tenant writes these files, so they may be anything: a FIFO, a link into /proc, a
 * gigabyte, binary. Nothing here waits, follows a link out of the root or reads more than
 * USER_FILE_MAX; a malformed line is skipped. */
#ifndef INIT_RUN_USER_H
#define INIT_RUN_USER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/init.h"

#define USER_FILE_MAX (1u << 20) /* of passwd and of group; the rest is not read */
#define USER_GROUPS_MAX 64u      /* supplementary groups; further ones are left out */
#define USER_TEXT_MAX 1024u      /* home and shell; a line with a longer one is skipped */

struct user {
    uid_t uid;
    gid_t gid;
    gid_t groups[USER_GROUPS_MAX];
    size_t ngroups;
    char name[INIT_USER_MAX + 1]; /* "" when the uid has no entry */
    char home[USER_TEXT_MAX];     /* "/" when the uid has no entry */
    char shell[USER_TEXT_MAX];    /* "" when the uid has no entry or names none */
};

/* `spec` is a name, "uid" or "uid:gid"; numbers need no entry, and root works
 * without any file. `root` is a directory fd of the sandbox's "/". ERR_CANNOT_START
 * when there is no such user. */
int user_find(int root, const char *spec, struct user *ret, struct err *e);
/* Their names; "" without an entry. */
void user_names(int root, uid_t uid, gid_t gid, char owner[INIT_USER_MAX + 1],
                char group[INIT_USER_MAX + 1]);

#endif
