/* copy.h - copies a file or a tree. */
#ifndef HELPER_FILES_COPY_H
#define HELPER_FILES_COPY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct copy {
    uid_t uid; /* owner of the copy; -1: that of the source, if permitted */
    gid_t gid;
    bool overwrite;                    /* replace files, merge directories */
    const volatile sig_atomic_t *stop; /* if not 0, fails with ERR_GONE before the next file */
    uint64_t count, bytes;
};

/* `from_path` and `to_path` are for messages. Shares extents where the filesystem can. */
int copy_tree(struct copy *c, int from_dir, const char *from, const char *from_path, int to_dir,
              const char *to, const char *to_path, struct err *e);

#endif
