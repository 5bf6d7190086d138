/* dirs.h - what directories become when everything is in them: one that may not be
 * written to must be filled first, and filling it changes its time. */
#ifndef HELPER_DIRS_H
#define HELPER_DIRS_H

#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

struct dirs {
    struct buf notes; /* struct note and path, one behind the other */
    size_t n;
};

void dirs_init(struct dirs *d, size_t max);
void dirs_free(struct dirs *d);
int dirs_note(struct dirs *d, const char *path, mode_t mode, const struct timespec *mtime,
              struct err *e);
/* Deepest first, beneath `fd`; of two notes of one directory the later counts. */
int dirs_finish(struct dirs *d, int fd, struct err *e);

#endif
