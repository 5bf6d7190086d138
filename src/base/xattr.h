/* xattr.h - extended attributes of one prefix. */
#ifndef BASE_XATTR_H
#define BASE_XATTR_H

#define XATTR_LINES_MAX 16384u /* bytes of the lines of one call */

/* Replaces all attributes whose names begin with `prefix` by those in `lines`: NAME=VALUE,
 * each ended by a newline, names without the prefix. -1: errno. Without lines it succeeds
 * on a filesystem without extended attributes. */
int xattr_replace(int fd, const char *prefix, const char *lines);

#endif
