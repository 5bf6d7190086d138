/* spool.h - a body, received whole from stdin before anything is changed.
 *
 * Into a file without a name, on the sandbox's own disk: its quota counts it, and
 * whatever happens to us, nothing of it stays. */
#ifndef HELPER_SPOOL_H
#define HELPER_SPOOL_H

#include <stdbool.h>

#include "base/err.h"

/* Beside `dir` if that can be, so that it can get a name there. An fd. */
int spool_open(const char *dir, struct err *e);
/* All of stdin, inflated if `gzip`. ERR_INVALID if it is no gzip, ERR_DISK_FULL. */
int spool_fill(int fd, bool gzip, struct err *e);
/* From here on we go on to the end, whoever goes away. Until then the end of stdin may be
 * that of the caller, who is no more: that comes as a signal first. */
void spool_whole(void);

#endif
