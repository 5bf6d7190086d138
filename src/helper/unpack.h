/* unpack.h - one tar archive into one directory.
 *
 * The archive is anybody's. Names that lead out, links to what is not in it,
 * device nodes and contradictions are refused with the name in the message; no
 * link is followed; what there may be of entries, names and depth is bounded
 * here, what there may be of bytes by the disk.
 *
 * So may the directory be: others may write in it while we do. Everything is made
 * by name in a directory that is held open, and changed by its own fd. */
#ifndef HELPER_UNPACK_H
#define HELPER_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "helper/source.h"

#define UNPACK_ENTRIES_MAX 2000000u    /* of all layers of one image */
#define UNPACK_MARKS_MAX 500000u       /* whiteouts and opaque directories of one layer */
#define UNPACK_MARKS_BYTES (64u << 20) /* of their names */
#define UNPACK_XATTRS_MAX 64u          /* of one file */
#define UNPACK_ID_MAX 65535u           /* user and group ids a sandbox has */
#define UNPACK_DIRS_MAX (64u << 20)    /* bytes of what is remembered of directories */

struct unpack_count {
    uint64_t files, bytes, entries, skipped;
};

enum unpack_flags {
    UNPACK_MARKS = 1,  /* .wh. names mean removals (a layer of an image), else nothing */
    UNPACK_MERGE = 2,  /* the directory is not empty: what is there stays or is replaced */
    UNPACK_OWNERS = 4, /* as the archive says, with special bits and capabilities; else ours */
    UNPACK_LINKS = 8,  /* symbolic links may lead anywhere; else only to what is beneath */
    UNPACK_FIFOS = 16, /* are made; else skipped */
};

struct unpack_opts {
    int fd;           /* where to */
    const int *lower; /* the layers below, lowest first */
    unsigned nlower;
    unsigned flags;
    struct unpack_count *count;
    int (*step)(void *arg, struct err *e); /* with every entry; -1 ends it */
    void *arg;
};

int unpack(struct source *from, const struct unpack_opts *o, struct err *e);

#endif
