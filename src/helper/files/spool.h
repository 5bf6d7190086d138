/* spool.h - receives a body from stdin completely, before a file is changed.
 *
 * Into a file without a name on the disk of the sandbox: its disk limit applies, and nothing
 * is left after a crash. */
#ifndef HELPER_FILES_SPOOL_H
#define HELPER_FILES_SPOOL_H

#include <stdbool.h>

#include "base/err.h"

/* Opens the file, in `dir` if possible so that it can get a name there. Returns an fd. */
int spool_open(const char *dir, struct err *e);

enum spool_how {
    SPOOL_GZIP = 1 << 0,  /* inflate the body */
    SPOOL_CLONE = 1 << 1, /* it will be cloned, which needs it on the disk: write it back while
                           * it arrives, and drop it from the page cache */
};

/* Reads all of stdin. ERR_INVALID if it is not gzip; ERR_DISK_FULL. */
int spool_fill(int fd, enum spool_how how, struct err *e);
/* Blocks SIGTERM: from here on the call completes even if the client goes away. Before that,
 * end of file on stdin may mean that the client is gone; SIGTERM comes first in that case. */
void spool_whole(void);

#endif
