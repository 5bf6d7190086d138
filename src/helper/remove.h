/* remove.h - away with a tree: by fds, through no link, whatever is swapped meanwhile. */
#ifndef HELPER_REMOVE_H
#define HELPER_REMOVE_H

#include <stdint.h>

#include "base/err.h"

/* `path` is for messages. *count goes up with everything that went. */
int remove_tree(int dir, const char *name, const char *path, uint64_t *count, struct err *e);

#endif
