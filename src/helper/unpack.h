/* unpack.h - one tar archive into one directory.
 *
 * The archive is anybody's. Names that lead out, links to what is not in it,
 * device nodes and contradictions are refused with the name in the message; no
 * link is followed; what there may be of entries, names and depth is bounded
 * here, what there may be of bytes by the disk. */
#ifndef HELPER_UNPACK_H
#define HELPER_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "helper/source.h"

#define UNPACK_ENTRIES_MAX 2000000u /* of all layers of one image */
#define UNPACK_MARKS_MAX 500000u    /* whiteouts and opaque directories of one layer */
#define UNPACK_XATTRS_MAX 64u       /* of one file */
#define UNPACK_ID_MAX 65535u        /* user and group ids a sandbox has */

struct unpack_count {
    uint64_t files, bytes, entries;
};

struct unpack_opts {
    int fd;           /* where to; empty */
    const int *lower; /* the layers below, lowest first */
    unsigned nlower;
    bool marks; /* .wh. names mean removals (a layer of an image), else nothing */
    struct unpack_count *count;
    void (*progress)(void *arg); /* now and then */
    void *arg;
};

int unpack(struct source *from, const struct unpack_opts *o, struct err *e);

#endif
