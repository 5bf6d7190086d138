/* names.h - users and groups of the sandbox, from its own /etc/passwd and /etc/group.
 *
 * Each file is read once, when it is first needed. The tenant controls both, and this process
 * has no more rights than the tenant. */
#ifndef HELPER_CALL_NAMES_H
#define HELPER_CALL_NAMES_H

#include <sys/types.h>

#include "base/err.h"

#define NAMES_FILE_MAX (1u << 20) /* bytes read of each file */

/* "" if there is no entry; never freed. */
const char *names_user(uid_t uid);
const char *names_group(gid_t gid);
/* "user", "user:group" or ":group", as names or numbers. A part that is not given, or both if
 * `spec` is NULL, becomes -1. ERR_INVALID if the user or group does not exist. */
int names_parse(const char *spec, uid_t *ret_uid, gid_t *ret_gid, struct err *e);
/* The same for a new file: a user without a group gets the primary group of that user. */
int names_parse_new(const char *spec, uid_t *ret_uid, gid_t *ret_gid, struct err *e);
/* Sets $HOME to the home of this user. ERR_INVALID if the user does not exist. */
int names_take_home(const char *user, struct err *e);

#endif
