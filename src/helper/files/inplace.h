/* inplace.h - replaces the content of a file; its inode, mode, links and owner stay.
 *
 * All or nothing as far as the filesystem allows: extents are shared where it can do that,
 * which needs no space; otherwise space is reserved before a byte is changed. */
#ifndef HELPER_FILES_INPLACE_H
#define HELPER_FILES_INPLACE_H

#include "base/err.h"

/* `to` is open for writing, and for reading too if permitted. -1 with errno. */
int inplace_replace(int from, int to);
/* Appends; after a failure `to` has its old content. */
int inplace_append(int from, int to);

#endif
