/* copy.h - a file or a tree, once more. */
#ifndef HELPER_COPY_H
#define HELPER_COPY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct copy {
    uid_t uid; /* whose everything becomes; (uid_t)-1: the source's if that is allowed */
    gid_t gid;
    bool overwrite;                    /* files; directories are joined */
    const volatile sig_atomic_t *stop; /* ERR_GONE, before the next file, once this is not 0 */
    uint64_t count, bytes;
};

/* `from_path` and `to_path` are for messages. Sharing extents where the disk can. */
int copy_tree(struct copy *c, int from_dir, const char *from, const char *from_path, int to_dir,
              const char *to, const char *to_path, struct err *e);

#endif
