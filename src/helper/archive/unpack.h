/* unpack.h - unpacks one tar archive into one directory.
 *
 * The archive is untrusted. Names that lead out, links to files outside it, device nodes and
 * contradictions are refused with a message that names the entry; no link is followed;
 * entries, names and depth are limited here, bytes by the disk.
 *
 * The directory is untrusted too: a tenant may change it meanwhile. Every file is created by
 * name in a directory that is held open, and changed through its own fd. */
#ifndef HELPER_ARCHIVE_UNPACK_H
#define HELPER_ARCHIVE_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "helper/archive/source.h"

#define UNPACK_ENTRIES_MAX 2000000u    /* in all layers of one image */
#define UNPACK_MARKS_MAX 500000u       /* whiteouts and opaque directories of one layer */
#define UNPACK_MARKS_BYTES (64u << 20) /* bytes of their names */
#define UNPACK_XATTRS_MAX 64u          /* of one file */
#define UNPACK_ID_MAX 65535u           /* largest user and group id in a sandbox */
#define UNPACK_DIRS_MAX (64u << 20)    /* bytes of struct dirs */

struct unpack_count {
    uint64_t files, bytes, entries, skipped;
};

enum unpack_flags {
    UNPACK_MARKS = 1,  /* names with .wh. are removals (a layer of an image); else plain names */
    UNPACK_MERGE = 2,  /* the directory has content, which stays or is replaced */
    UNPACK_OWNERS = 4, /* owners, special bits and capabilities of the archive; else our own */
    UNPACK_LINKS = 8,  /* symbolic links may lead anywhere; else only below the directory */
    UNPACK_FIFOS = 16, /* create FIFOs; else skip them */
    UNPACK_EXACT =
        32, /* an archive of our own: access lists and any number of attributes; an existing
                        * directory loses those that the archive does not have */
};

struct unpack_opts {
    int fd;           /* the directory */
    const int *lower; /* the layers below, lowest first */
    unsigned nlower;
    unsigned flags;
    struct unpack_count *count;
    int (*step)(void *arg, struct err *e); /* called for every entry; -1 stops */
    void *arg;
};

int unpack(struct source *from, const struct unpack_opts *o, struct err *e);

#endif
