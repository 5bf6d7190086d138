/* archive.h - packs a directory of a sandbox into an archive, and unpacks one.
 *
 * Both run inside as the given user, and stream: no side holds more than a piece.
 * helper/archive/pack.h and helper/archive/unpack.h say how entries are treated. */
#ifndef FRONT_ENGINE_ARCHIVE_H
#define FRONT_ENGINE_ARCHIVE_H

#include "front/engine/work.h"

#define ARCHIVE_EXCLUDES_MAX 1000u /* more than a query of ordinary paths holds */
#define ARCHIVE_EXCLUDE_MAX 1024u  /* bytes of one pattern */

enum archive_format { ARCHIVE_TAR, ARCHIVE_TAR_GZ, ARCHIVE_TAR_ZST, ARCHIVE_FORMAT_COUNT };
const char *archive_format_name(enum archive_format f); /* "tar", "tar.gz", "tar.zst" */
const char *archive_format_type(enum archive_format f); /* the media type */

struct archive_pack_opts { /* all borrowed for the call */
    const char *path;
    const char *user; /* as in struct process_opts */
    enum archive_format format;
    const char *const *exclude; /* patterns as helper/glob.h has them... */
    size_t nexclude;            /* ...ARCHIVE_EXCLUDES_MAX at most */
    bool skip_unreadable;       /* else the whole fails */
};
/* on_data gets the archive; the first bytes come when the directory could be opened.
 * A failure after that is on_done's too. */
struct work *archive_pack(struct ref ref, const struct archive_pack_opts *o,
                          const struct work_ops *ops, void *arg);

struct archive_unpack_opts { /* all borrowed for the call */
    const char *path;
    const char *user;
    bool atomic;    /* the archive replaces the directory in one step, or nothing changes */
    bool parents;   /* missing directories are made */
    bool owners;    /* as the archive says; root's to ask for */
    bool any_links; /* symbolic links may lead out; they are not followed in any case */
};
/* work_feed() gives the archive; on_data gets a line for archive_result(). */
struct work *archive_unpack(struct ref ref, const struct archive_unpack_opts *o,
                            const struct work_ops *ops, void *arg);

#define ARCHIVE_RESULT_MAX 8192u /* bytes of that line */
struct archive_result {
    uint64_t entries, bytes, skipped;
    char left[4200]; /* what could not be removed of what was replaced, or "" */
};
/* ERR_INTERNAL for a line that the helper did not write. */
int archive_result(const char *line, size_t len, struct archive_result *ret, struct err *e);

#endif
