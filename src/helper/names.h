/* names.h - users and groups of the sandbox, from its own /etc/passwd and /etc/group.
 *
 * Read once, at the first question. Whatever is in them hurts nobody but this process. */
#ifndef HELPER_NAMES_H
#define HELPER_NAMES_H

#include <sys/types.h>

#include "base/err.h"

#define NAMES_FILE_MAX (1u << 20) /* the rest is not read */

/* "" without an entry; points to memory that stays. */
const char *names_user(uid_t uid);
const char *names_group(gid_t gid);
/* "user", "user:group", ":group", in names or numbers. What is not said is (uid_t)-1 and
 * (gid_t)-1. ERR_INVALID if there is no such one. */
int names_parse(const char *spec, uid_t *ret_uid, gid_t *ret_gid, struct err *e);
/* Its home becomes ours. ERR_INVALID if there is no such user. */
int names_take_home(const char *user, struct err *e);
/* The group that a user has as its own, or the number of the uid. */
gid_t names_gid_of(uid_t uid);

#endif
