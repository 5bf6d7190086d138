/* path.h - checks and cleans paths. */
#ifndef HELPER_TREE_PATH_H
#define HELPER_TREE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PATH_ROOM 4096u     /* with its NUL */
#define PATH_PART_MAX 255u  /* one component */
#define PATH_DEPTH_MAX 200u /* components */

/* Cleans a path from an archive: removes "./", "//" and slashes at the end; "" is the root.
 * ERR_INVALID if it is absolute, contains "..", or is too long or too deep. `what` names the
 * thing in messages. */
int path_clean(const char *from, const char *what, char out[PATH_ROOM], struct err *e);

/* Whether the target of a link at `path` (cleaned) is below the root, whatever other links
 * exist: ".." is allowed only at the beginning, where it means real directories, and not more
 * often than `path` is deep. */
bool path_link_is_inside(const char *path, const char *target);

/* A random temporary name, for a file that is renamed into its place when it is complete. A
 * tenant cannot guess it and put something there first. */
#define PATH_BESIDE_ROOM 32u
void path_beside(char ret[PATH_BESIDE_ROOM]);

/* The last component; points into `path`. */
const char *path_name(const char *path);

#endif
