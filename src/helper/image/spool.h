/* spool.h - files of an import that are read once: written so that what was read can be given back
 * to the disk piece by piece (source_eat()). */
#ifndef HELPER_IMAGE_SPOOL_H
#define HELPER_IMAGE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* All of it at that offset. btrfs gives back whole extents only, which have up to 128 MiB if a file is
 * written out late: each SOURCE_PIECE is written out as soon as it is there, without waiting. */
int spool_write(int fd, const void *p, size_t n, uint64_t at, const char *name, struct err *e);

#endif
