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

enum spool_how {
    SPOOL_GZIP = 1 << 0,  /* it comes so, and is inflated */
    SPOOL_CLONE = 1 << 1, /* it will be cloned, for which it must be on the disk: it is written
                           * out as it comes, and not kept in the cache, which nobody asks */
};

/* All of stdin. ERR_INVALID if it is no gzip, ERR_DISK_FULL. */
int spool_fill(int fd, enum spool_how how, struct err *e);
/* From here on we go on to the end, whoever goes away. Until then the end of stdin may be
 * that of the caller, who is no more: that comes as a signal first. */
void spool_whole(void);

#endif
