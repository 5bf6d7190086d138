/* links.h - recognizes hard links: remembers files by inode. */
#ifndef HELPER_ARCHIVE_LINKS_H
#define HELPER_ARCHIVE_LINKS_H

#include <sys/stat.h>

#define LINKS_MAX 500000u       /* files remembered; further ones count as separate files */
#define LINKS_BYTES (64u << 20) /* bytes of their names */

struct links;

struct links *links_new(void);    /* NULL when out of memory */
void links_free(struct links *l); /* NULL is fine */
/* The first path of this file; NULL if this is the first, and then `path` is remembered. */
const char *links_seen(struct links *l, const struct stat *st, const char *path);

#endif
