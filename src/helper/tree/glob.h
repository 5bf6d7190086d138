/* glob.h - patterns that match paths of a tree.
 *
 * '?' matches one character and '*' any number, but not a slash; [a-z] and [!a-z] match one
 * of a set; '**' between slashes matches any number of directories, also none; '\' quotes
 * the next character. A pattern without a slash matches the last part of a path at any depth
 * ("*.o"). A pattern with a slash, also a leading "/" or "./", matches the whole path from
 * the top of the tree ("./build", "src/?.c").
 *
 * Takes at most time proportional to pattern times path. */
#ifndef HELPER_TREE_GLOB_H
#define HELPER_TREE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#define GLOB_MAX 1024u /* bytes of one pattern */

/* `path` is relative to the top of the tree, without "./". */
bool glob_match(const char *pattern, const char *path);

struct globs {
    char *const *list; /* borrowed */
    size_t n;
};
bool globs_match(const struct globs *g, const char *path);

#endif
