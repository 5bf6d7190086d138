/* pack.h - a directory as a tar archive on stdout.
 *
 * What can be carried anywhere: plain files (a hard link is one too), directories
 * and symbolic links, with modes, times, numeric owners and user.* attributes, in
 * the POSIX format where a name needs more than the old one has. FIFOs, sockets,
 * devices and what is mounted below are left out. Nothing is sent before the first
 * PACK_BLOCK bytes are there, so that a small archive that fails has sent none.
 *
 *   pack PATH tar|tar.gz|tar.zst FLAGS EXCLUDE...     flags: s  skip what may not be read */
#ifndef HELPER_PACK_H
#define HELPER_PACK_H

#include "base/err.h"
#include "helper/glob.h"

#define PACK_BLOCK (128u << 10)

struct archive;

enum pack_flags {
    PACK_SKIP = 1,  /* what may not be read */
    PACK_WHOLE = 2, /* a root filesystem: FIFOs, hard links and file capabilities too */
};
/* Everything below `path` into an archive that is open; `exclude` or NULL. */
int pack_tree(struct archive *a, const char *path, const struct globs *exclude, unsigned flags,
              struct err *e);
/* "tar", "tar.gz" or "tar.zst", before it is opened. */
int pack_format(struct archive *a, const char *format, struct err *e);

/* Exit status. */
int pack_main(int argc, char **argv);

#endif
