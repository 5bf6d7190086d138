/* links.h - which files have been seen before under another name. */
#ifndef HELPER_LINKS_H
#define HELPER_LINKS_H

#include <sys/stat.h>

#define LINKS_MAX 500000u       /* files remembered; what comes on top is taken as another file */
#define LINKS_BYTES (64u << 20) /* of their names */

struct links; /* zeroed by links_new() */

struct links *links_new(void);    /* NULL when out of memory */
void links_free(struct links *l); /* NULL is fine */
/* The first name of this file, or NULL: then `path` is that name from now on. */
const char *links_seen(struct links *l, const struct stat *st, const char *path);

#endif
