/* pack.h - a local directory as a tar stream, without needing tar on this machine.
 *
 * POSIX pax format: long names, names that are not ASCII, large files and ids. Hard links
 * between the files stay links; user.* attributes and capabilities are kept. Devices and
 * sockets are left out and counted: a sandbox has its own /dev. */
#ifndef CLI_FILES_PACK_H
#define CLI_FILES_PACK_H

#include <sys/types.h>

#include "base/err.h"

struct pack;

struct pack *pack_open(const char *dir, struct err *e); /* NULL on failure */
void pack_free(struct pack *p);
/* Returns the length of the next piece, 0 at the end, -1 on failure; *ret is valid until the
 * next call. A file that shrinks while it is read is a failure. */
ssize_t pack_next(struct pack *p, const char **ret, struct err *e);
unsigned long pack_left_out(const struct pack *p);

#endif
