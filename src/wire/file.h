/* file.h - messages about files: in answers of init, and on the stdout of cove-helper, which is
 * a sequence of these frames.
 *
 * The helper runs among the tenant's processes: the reader trusts nothing but
 * the bounds. Paths and names are bytes without NUL and need not be UTF-8. */
#ifndef WIRE_FILE_H
#define WIRE_FILE_H

#include "wire/wire.h"

#define FILE_PATH_MAX 4096u
#define HELPER_MOUNTS                                                                              \
    "COVE_HELPER_MOUNTS" /* in the environment of cove-helper: it walks over mounts */
#define FILE_AFTER_MAX (FILE_PATH_MAX + 32u) /* a path after a size or a time */
#define FILE_NAME_MAX 64u                    /* of a user or a group */
#define FILE_MODE_NONE 0x10000u              /* where a mode may be given and is not */
#define FILE_LINE_MAX 4096u                  /* of a line that matched; the rest is dropped */
#define FILE_XATTR_MAX 65536u                /* the kernel's maximum */

enum file_line_kind { FILE_LINE_BEFORE, FILE_LINE_MATCH, FILE_LINE_AFTER };

/* clang-format off */
#define FILE_STAT_FIELDS(F, S)  F(S, STR, path, FILE_PATH_MAX) F(S, STR, target, FILE_PATH_MAX) \
                                F(S, STR, owner, FILE_NAME_MAX) F(S, STR, group, FILE_NAME_MAX) \
                                F(S, U32, mode, 0) F(S, U32, uid, 0) F(S, U32, gid, 0) F(S, U64, size, 0) \
                                F(S, U64, ino, 0) F(S, U64, nlink, 0) F(S, U64, mtime_ns, 0) F(S, U64, ctime_ns, 0)
#define FILE_ENTRY_FIELDS(F, S) FILE_STAT_FIELDS(F, S)
#define FILE_LINE_FIELDS(F, S)  F(S, STR, path, FILE_PATH_MAX) F(S, U32, kind, FILE_LINE_AFTER) F(S, U64, line, 0) \
                                F(S, U64, column, 0) F(S, BYTES, text, FILE_LINE_MAX) F(S, U32, cut, 1)
#define FILE_XATTR_FIELDS(F, S) F(S, STR, name, 255) F(S, BYTES, value, FILE_XATTR_MAX)
#define FILE_DONE_FIELDS(F, S)  F(S, U64, count, 0) F(S, U64, bytes, 0) F(S, U32, more, 1) F(S, STR, after, FILE_AFTER_MAX)

/*  entry  a file; in a listing the next one
 *  line   of a search: a line that matched, or a line of its context
 *  xattr  one attribute of a file
 *  done   the last: how many, how much, whether a limit was reached and where to go on */
#define FILE_MSGS(X) \
    X(FILE_ENTRY, file_entry, 1, FILE_ENTRY_FIELDS) \
    X(FILE_LINE,  file_line,  2, FILE_LINE_FIELDS) \
    X(FILE_XATTR, file_xattr, 3, FILE_XATTR_FIELDS) \
    X(FILE_DONE,  file_done,  4, FILE_DONE_FIELDS)
/* clang-format on */

#define X(kind, s, number, fields) kind = number,
enum file_msg_type { FILE_MSGS(X) };
#undef X

#define X(kind, s, number, fields)                                                                 \
    struct s {                                                                                     \
        fields(WIRE_MEMBER, s)                                                                     \
    };
FILE_MSGS(X)
#undef X

/* The description of a type, or NULL for one we do not know. */
const struct wire_msg *file_msg(uint16_t type);

#endif
