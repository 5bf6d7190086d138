/* remove.h - removes a tree through fds, following no link, even if a tenant swaps
 * directories meanwhile. */
#ifndef HELPER_FILES_REMOVE_H
#define HELPER_FILES_REMOVE_H

#include <stdint.h>

#include "base/err.h"

/* `path` is for messages. Adds the number of removed entries to *count. */
int remove_tree(int dir, const char *name, const char *path, uint64_t *count, struct err *e);

#endif
