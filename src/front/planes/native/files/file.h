/* file.h - a file in a query and in an answer, for all surfaces about files. */
#ifndef FRONT_PLANES_NATIVE_FILES_FILE_H
#define FRONT_PLANES_NATIVE_FILES_FILE_H

#include "front/engine/file.h"
#include "front/plane/transfer.h" /* file_source */
#include "front/planes/native/internal.h"

/* Which file, and as whom; first in every input struct of this kind. */
struct file_in {
    const char *path, *user;
};
/* clang-format off */
#define FILE_PATH_FIELD(S, doc) \
    {"path", JSON_FIELD_PATH, offsetof(S, at.path), 1, ENGINE_PATH_MAX, true, doc}
#define FILE_USER_FIELD(S) \
    {"user", JSON_FIELD_STR, offsetof(S, at.user), 1, ENGINE_USER_MAX, false, \
     "User whose permissions are used: a name, uid, or uid:gid. Default: `user`, or the user of the template's image."}
/* clang-format on */

/* Of this call's sandbox; borrows both. */
struct file_at file_at_of(const struct call *c, const struct file_in *in);

extern const struct shape file_shape;
/* What the shape shows. */
struct file_view {
    struct shape_bytes path, name, target;
    const char *type, *owner, *group;
    uint64_t size, uid, gid, inode, links, modified_ms;
    char mode[8], etag[96];
    const char *mode_text, *etag_text;
};
void file_view(struct file_view *v, const struct file_info *f);
void file_reply(struct call *c, const struct file_info *f);

/* "644", "0755"; ERR_INVALID. NULL is FILE_MODE_KEEP. */
int file_mode(const char *text, uint32_t *ret, struct err *e);

#endif
