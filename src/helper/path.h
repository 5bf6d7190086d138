/* path.h - names out of an archive, made harmless or refused. */
#ifndef HELPER_PATH_H
#define HELPER_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATH_ROOM 4096u     /* with its NUL */
#define PATH_PART_MAX 255u  /* one component */
#define PATH_DEPTH_MAX 200u /* components */

/* Without "./", "//" and a slash at the end; "" is the root itself. ERR_INVALID for
 * an absolute one, one with "..", one that is too long or too deep. `what` names
 * the thing in messages. */
int path_clean(const char *from, const char *what, char out[PATH_ROOM], struct err *e);

/* Whether a link at `path` (a clean one) with this target leads to what is beneath the
 * root, whatever other links are there: ".." only at the beginning, where it means real
 * directories, and no more of them than those. */
bool path_link_is_inside(const char *path, const char *target);

/* A name for what takes another's place in one step when it is whole. Nobody knows it
 * beforehand: whoever finds one there has not been waited for with it. */
#define PATH_BESIDE_ROOM 32u
void path_beside(char ret[PATH_BESIDE_ROOM]);

/* The last component; points into `path`. */
const char *path_name(const char *path);

#endif
