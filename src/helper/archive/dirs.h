/* dirs.h - modes and times of directories, set after their content was unpacked: a directory
 * without write permission could not be filled, and filling changes its time. */
#ifndef HELPER_ARCHIVE_DIRS_H
#define HELPER_ARCHIVE_DIRS_H

#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

struct dirs {
    struct buf notes; /* a struct note and a path for each directory */
    size_t n;
};

void dirs_init(struct dirs *d, size_t max);
void dirs_free(struct dirs *d);
int dirs_note(struct dirs *d, const char *path, mode_t mode, const struct timespec *mtime,
              struct err *e);
/* Applies them below `fd`, deepest first; of two notes for one directory the later counts. */
int dirs_finish(struct dirs *d, int fd, struct err *e);

#endif
