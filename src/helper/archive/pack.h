/* pack.h - writes a directory as a tar archive to stdout.
 *
 * Only portable content: regular files (hard links as separate files), directories and
 * symbolic links, with modes, times, numeric owners and user.* attributes; in pax format
 * where ustar is not enough. FIFOs, sockets, devices and other mounts are left out. Nothing
 * is sent before PACK_BLOCK bytes are complete, so a small archive that fails sends nothing.
 *
 *   pack PATH tar|tar.gz|tar.zst FLAGS EXCLUDE...     flags: s  skip files without permission */
#ifndef HELPER_ARCHIVE_PACK_H
#define HELPER_ARCHIVE_PACK_H

#include "base/err.h"
#include "helper/tree/glob.h"

#define PACK_BLOCK (128u << 10)

struct archive;

enum pack_flags {
    PACK_SKIP = 1,  /* skip files that we may not read */
    PACK_WHOLE = 2, /* a root filesystem: keep FIFOs, hard links and file capabilities */
};
/* Writes everything below `path` into an open archive; `exclude` may be NULL. */
int pack_tree(struct archive *a, const char *path, const struct globs *exclude, unsigned flags,
              struct err *e);
/* Sets the format, "tar", "tar.gz" or "tar.zst", before the archive is opened. */
int pack_format(struct archive *a, const char *format, struct err *e);
/* Returns -1 and libarchive's message. */
int pack_failed(struct archive *a, struct err *e);
/* Frees the archive, and closes it first if `r`, the result so far, is 0. Returns the final
 * result. NULL is a failure with `e` already set. */
int pack_end(struct archive *a, int r, struct err *e);

/* Exit status. */
int pack_main(int argc, char **argv);

#endif
