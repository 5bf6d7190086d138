/* inplace.h - the bytes of one file become those of another, whose inode, mode, links and
 * owner stay.
 *
 * Whole or not at all as far as a filesystem allows: extents are shared where it can
 * share them, which takes no space; else space is reserved before a byte is changed. */
#ifndef HELPER_INPLACE_H
#define HELPER_INPLACE_H

#include "base/err.h"

/* `to` is open for writing, and for reading if that was allowed. -1 with errno. */
int inplace_replace(int from, int to);
/* Behind what `to` holds; if it fails, it holds what it held. */
int inplace_append(int from, int to);

#endif
