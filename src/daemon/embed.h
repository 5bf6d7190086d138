/* embed.h - cove-init and cove-helper, which this binary carries, as files to execute. */
#ifndef DAEMON_EMBED_H
#define DAEMON_EMBED_H

#include "base/err.h"

/* Sealed, open for reading; -1 with `e`. */
int embed_init_fd(struct err *e);
int embed_helper_fd(struct err *e);

#endif
