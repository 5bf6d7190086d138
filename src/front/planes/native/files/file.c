/* file.c - see file.h. */
#include "front/planes/native/files/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/etag.h"

struct file_at file_at_of(const struct call *c, const struct file_in *in)
{
    return (struct file_at){.ref = c->ref, .path = in->path, .user = in->user};
}

/* clang-format off */
static const struct shape_field file_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct file_view, path), "Path."},
    {"name", SHAPE_BYTES, offsetof(struct file_view, name), "Last component of the path."},
    {"type", SHAPE_STR, offsetof(struct file_view, type), "file, directory, symlink, fifo, socket or device."},
    {"size", SHAPE_U64, offsetof(struct file_view, size), "Size in bytes."},
    {"mode", SHAPE_STR, offsetof(struct file_view, mode_text), "Permissions in octal, for example 0644."},
    {"owner", SHAPE_STR, offsetof(struct file_view, owner), "Name of the owner; \"\" if the uid has no name."},
    {"group", SHAPE_STR, offsetof(struct file_view, group), "Name of the group; \"\" if the gid has no name."},
    {"uid", SHAPE_U64, offsetof(struct file_view, uid), "Uid of the owner."},
    {"gid", SHAPE_U64, offsetof(struct file_view, gid), "Gid of the group."},
    {"modified_at", SHAPE_TIME, offsetof(struct file_view, modified_ms), "Time of the last change of its content.", SHAPE_NULLABLE},
    {"inode", SHAPE_U64, offsetof(struct file_view, inode), "Inode number."},
    {"links", SHAPE_U64, offsetof(struct file_view, links), "Number of hard links."},
    {"target", SHAPE_BYTES, offsetof(struct file_view, target), "Target of a symbolic link.", SHAPE_OMITTED},
    {"etag", SHAPE_STR, offsetof(struct file_view, etag_text), "ETag of a regular file, for If-Match and If-None-Match.", SHAPE_OMITTED},
};
SHAPE(file_shape, "File", "A file, directory or other filesystem entry.", file_fields);
/* clang-format on */

static const char *type_of(mode_t mode)
{
    return S_ISREG(mode)    ? "file"
           : S_ISDIR(mode)  ? "directory"
           : S_ISLNK(mode)  ? "symlink"
           : S_ISFIFO(mode) ? "fifo"
           : S_ISSOCK(mode) ? "socket"
                            : "device";
}

static struct shape_bytes bytes(const char *s)
{
    return (struct shape_bytes){s, strlen(s)};
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void file_view(struct file_view *v, const struct file_info *f)
{
    struct etag_parts parts = {f->ino, f->size, f->mtime_ns, f->ctime_ns};

    *v = (struct file_view){.path = bytes(f->path),
                            .name = bytes(name_of(f->path)),
                            .target =
                                f->target[0] != '\0' ? bytes(f->target) : (struct shape_bytes){0},
                            .type = type_of(f->mode),
                            .owner = f->owner,
                            .group = f->group,
                            .size = f->size,
                            .uid = f->uid,
                            .gid = f->gid,
                            .inode = f->ino,
                            .links = f->nlink,
                            .modified_ms = f->mtime_ns / 1000000u};
    snprintf(v->mode, sizeof(v->mode), "%04o", f->mode & 07777u);
    v->mode_text = v->mode;
    if (S_ISREG(f->mode)) {
        etag_make(&parts, v->etag);
        v->etag_text = v->etag;
    }
}

void file_reply(struct call *c, const struct file_info *f)
{
    struct file_view v;

    file_view(&v, f);
    call_reply_shape(c, &file_shape, &v);
}

int file_mode(const char *text, uint32_t *ret, struct err *e)
{
    uint32_t mode = 0;

    *ret = FILE_MODE_KEEP;
    if (text == NULL)
        return 0;
    if (strlen(text) == 0 || strlen(text) > 5 || strspn(text, "01234567") != strlen(text))
        return err_set(e, ERR_INVALID, "mode: expected octal digits, for example 0644");
    for (; *text != '\0'; text++)
        mode = mode * 8 + (uint32_t)(*text - '0');
    if (mode > 07777)
        return err_set(e, ERR_INVALID, "mode: at most 7777");
    *ret = mode;
    return 0;
}
