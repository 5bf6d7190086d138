/* record.h - a call that answers with the messages of wire/file.h on stdout.
 *
 * They are buffered; if the reader is slow, writing blocks. */
#ifndef HELPER_CALL_RECORD_H
#define HELPER_CALL_RECORD_H

#include <sys/stat.h>

#include "base/err.h"
#include "wire/file.h"

struct args;

/* Runs the call with its arguments, and writes the last message (`done`, or after a failure "E
 * CODE TEXT" to stderr). Returns the exit status. */
int record_run(int (*call)(const struct args *a, struct file_done *done, struct err *e), int argc,
               char **argv);

/* Adds one message. If the reader is gone, the process exits. */
void record_put(uint16_t type, const void *msg);
/* Applies the arguments `resolve` and `xattrs=PREFIX` to every later record_entry_at(): with
 * `resolve` the entry of a link is followed by the entry of its target (the path of the link
 * and mode 0 if the target does not exist); with `xattrs` its attributes of that prefix
 * follow. */
void record_also(const struct args *a);
/* An entry from `st`. */
void record_entry(const struct stat *st, const char *path, const char *target);
/* The entry of `name` in `dir`, under the name `path`; links are not followed. ERR_NOT_FOUND
 * if it does not exist. */
int record_entry_at(int dir, const char *name, const char *path, struct err *e);
/* The entry of an open file. */
int record_entry_of(int fd, const char *path, struct err *e);

#endif
