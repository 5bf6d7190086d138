/* record.h - what cove-helper says about files, as wire/file.h has it, on stdout.
 *
 * Gathered, and written when there is enough or nothing more to say; whoever reads may
 * be slow, and then we wait. */
#ifndef HELPER_RECORD_H
#define HELPER_RECORD_H

#include <sys/stat.h>

#include "base/err.h"
#include "wire/file.h"

/* One message. A reader that is gone ends the process. */
void record_put(uint16_t type, const void *msg);
void record_flush(void);
/* What `resolve` and `xattrs=PREFIX` among the arguments ask for: from now on an entry of
 * record_entry_at() is followed by the entry of what it leads to, if it is a link (with
 * its own path and mode 0 if it leads nowhere), and by its attributes of that prefix. */
struct args;
void record_also(const struct args *a);
/* A file as `st` says. */
void record_entry(const struct stat *st, const char *path, const char *target);
/* What `name` in `dir` is, links not followed, called `path`. ERR_NOT_FOUND if it is gone. */
int record_entry_at(int dir, const char *name, const char *path, struct err *e);
/* The same of an open file. */
int record_entry_of(int fd, const char *path, struct err *e);
/* The last message; then the exit status. */
int record_done(const struct file_done *d);

#endif
