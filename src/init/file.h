/* file.h - files of the root filesystem, touched by init itself.
 *
 * With the identity of a user of the sandbox: init's own powers over files are off
 * for as long as it takes, unless that user is root. Nothing here waits: no path
 * leaves the mount that is "/", so neither /proc (whose `self` would be init), nor
 * devices, nor a pipe is ever opened. What is elsewhere, or may take long, is
 * cove-helper's work. */
#ifndef INIT_FILE_H
#define INIT_FILE_H

#include "base/err.h"

/* To be read. `path` is absolute or begins with ~; `root` is an fd of "/". An fd that
 * belongs to the caller, of a regular file. */
int file_open(int root, const char *user, const char *path, struct err *e);

#endif
