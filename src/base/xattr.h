/* xattr.h - a file's own words about itself: extended attributes of one prefix. */
#ifndef BASE_XATTR_H
#define BASE_XATTR_H

#define XATTR_LINES_MAX 16384u /* bytes of what one call is given */

/* Those whose names begin with `prefix` become what `lines` says: NAME=VALUE, each with
 * a line end behind it, names without the prefix. -1: errno. A filesystem that has none
 * is fine as long as none is wanted. */
int xattr_replace(int fd, const char *prefix, const char *lines);

#endif
