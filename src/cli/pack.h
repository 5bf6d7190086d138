/* pack.h - a directory as a stream of tar, written here so that nothing else is
 * needed on the machine of whoever adds a template.
 *
 * POSIX pax: long names, names that are not ASCII, large files and ids. Hard
 * links among the files stay links, user.* attributes and capabilities are kept.
 * Devices and sockets are left out (and counted): a sandbox has its own /dev. */
#ifndef CLI_PACK_H
#define CLI_PACK_H

#include <sys/types.h>

#include "base/err.h"

struct pack;

struct pack *pack_open(const char *dir, struct err *e); /* NULL on failure */
void pack_free(struct pack *p);
/* The next bytes, which live until the next call; 0 at the end, -1 on failure. A
 * file that shrinks while it is read is a failure. */
ssize_t pack_next(struct pack *p, const char **ret, struct err *e);
unsigned long pack_left_out(const struct pack *p);

#endif
