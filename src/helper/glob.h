/* glob.h - patterns over the paths of a tree.
 *
 * '?' is one character and '*' any number of them, neither of them a slash; [a-z]
 * and [!a-z] are one of a set; '**' between slashes is any number of directories,
 * none too; '\' takes the meaning from what follows. A pattern without a slash
 * speaks of a name at any depth ("*.o"), one with a slash, also a leading "/" or
 * "./", of a path from the top of the tree ("./build", "src/?.c").
 *
 * Takes time of at most pattern times path, whatever the pattern. */
#ifndef HELPER_GLOB_H
#define HELPER_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#define GLOB_MAX 1024u /* bytes of one pattern */

/* `path` is relative to the top, without "./". */
bool glob_match(const char *pattern, const char *path);

struct globs {
    char *const *list; /* borrowed */
    size_t n;
};
bool globs_match(const struct globs *g, const char *path);

#endif
