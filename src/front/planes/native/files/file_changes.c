/* file_changes.c - creates, moves, copies and deletes files and trees, and changes their attributes. All
 * parameters are in the query, where a path may be any bytes. */
#include <string.h>

#include "base/own.h"
#include "front/planes/native/files/file.h"
#include "json/write.h"

#define ANSWER_MAX (64u << 10)
#define ATTRS_MAX 64u

/* The answer is the file as the work left it, once all of it is done. */
struct change {
    struct call *c;
    struct buf answer;
    struct buf attrs;
};

static void drop(void *state)
{
    buf_free(&((struct change *)state)->answer);
    buf_free(&((struct change *)state)->attrs);
}

static struct change *change_new(struct call *c)
{
    struct change *s = call_state(c, sizeof(*s), drop);

    s->c = c;
    buf_init(&s->answer, ANSWER_MAX);
    buf_init(&s->attrs, 16u << 20);
    return s;
}

static void got_entry(void *arg, const struct file_info *f)
{
    struct change *s = arg;
    struct file_view v;
    struct json_w w;

    buf_clear(&s->answer);
    file_view(&v, f);
    jw_init(&w, &s->answer);
    shape_write(&w, &file_shape, &v);
}

static void changed(void *arg, const struct file_result *d, const struct err *e)
{
    struct change *s = arg;

    (void)d;
    if (!call_told(s->c))
        return;
    if (e != NULL)
        call_fail(s->c, e);
    else if (s->c->row->status == 204)
        call_reply_none(s->c);
    else
        call_reply(s->c, s->c->row->status, "application/json", &s->answer);
}

static const struct file_work_ops change_ops = {.on_entry = got_entry, .on_done = changed};

/* ---- mkdir ---- */

struct mkdir_in {
    struct file_in at;
    const char *mode;
    bool parents;
};
/* clang-format off */
static const struct json_field mkdir_fields[] = {
    FILE_PATH_FIELD(struct mkdir_in, "Directory to create."),
    FILE_USER_FIELD(struct mkdir_in),
    {"mode", JSON_FIELD_STR, offsetof(struct mkdir_in, mode), 1, 5, false, "Permissions in octal. Default: 0755."},
    {"parents", JSON_FIELD_BOOL, offsetof(struct mkdir_in, parents), 0, 0, false, "Create missing parent directories; succeed if the directory exists."},
};
/* clang-format on */
static const struct surface_input mkdir_input = {SURFACE_INPUT(mkdir_fields, struct mkdir_in)};

static void on_mkdir(struct call *c, const void *input)
{
    const struct mkdir_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct change *s;
    uint32_t mode;
    struct err e;

    if (file_mode(in->mode, &mode, &e) < 0)
        call_fail(c, &e);
    else if ((s = change_new(c)) != NULL)
        call_expect(c, &file_source, file_mkdir(&at, in->parents, mode, &change_ops, s));
}

/* ---- move, copy ---- */

struct to_in {
    struct file_in at;
    const char *to;
    bool overwrite, parents;
};
/* clang-format off */
static const struct json_field to_fields[] = {
    FILE_PATH_FIELD(struct to_in, "Source path. Symbolic links are not followed."),
    {"to", JSON_FIELD_PATH, offsetof(struct to_in, to), 1, ENGINE_PATH_MAX, true, "Destination path; not a directory to move into."},
    FILE_USER_FIELD(struct to_in),
    {"overwrite", JSON_FIELD_BOOL, offsetof(struct to_in, overwrite), 0, 0, false, "Replace an existing file; merge directories when copying."},
    {"parents", JSON_FIELD_BOOL, offsetof(struct to_in, parents), 0, 0, false, "Create missing parent directories."},
};
/* clang-format on */
static const struct surface_input to_input = {SURFACE_INPUT(to_fields, struct to_in)};

static void on_move(struct call *c, const void *input)
{
    const struct to_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct file_to to = {in->to, in->overwrite, in->parents};
    struct change *s = change_new(c);

    if (s != NULL)
        call_expect(c, &file_source, file_move(&at, &to, &change_ops, s));
}

static void on_copy(struct call *c, const void *input)
{
    const struct to_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct file_to to = {in->to, in->overwrite, in->parents};
    struct change *s = change_new(c);

    if (s != NULL)
        call_expect(c, &file_source, file_copy(&at, &to, &change_ops, s));
}

/* ---- delete ---- */

struct delete_in {
    struct file_in at;
    bool recursive;
};
/* clang-format off */
static const struct json_field delete_fields[] = {
    FILE_PATH_FIELD(struct delete_in, "Path to delete. A symbolic link is deleted, not its target."),
    FILE_USER_FIELD(struct delete_in),
    {"recursive", JSON_FIELD_BOOL, offsetof(struct delete_in, recursive), 0, 0, false, "Delete directories with their contents. Default: only empty directories."},
};
/* clang-format on */
static const struct surface_input delete_input = {SURFACE_INPUT(delete_fields, struct delete_in)};

static void on_delete(struct call *c, const void *input)
{
    const struct delete_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct change *s = change_new(c);

    if (s != NULL)
        call_expect(c, &file_source, file_remove(&at, in->recursive, &change_ops, s));
}

/* ---- chmod, chown ---- */

struct set_in {
    struct file_in at;
    const char *value;
    bool recursive;
};
/* clang-format off */
static const struct json_field chmod_fields[] = {
    FILE_PATH_FIELD(struct set_in, "Path. A symbolic link is followed here, and skipped below."),
    FILE_USER_FIELD(struct set_in),
    {"mode", JSON_FIELD_STR, offsetof(struct set_in, value), 1, 5, true, "Permissions in octal, for example 0755."},
    {"recursive", JSON_FIELD_BOOL, offsetof(struct set_in, recursive), 0, 0, false, "Apply to everything below the directory."},
};
static const struct json_field chown_fields[] = {
    FILE_PATH_FIELD(struct set_in, "Path. Symbolic links are not followed."),
    FILE_USER_FIELD(struct set_in),
    {"owner", JSON_FIELD_STR, offsetof(struct set_in, value), 1, 2 * ENGINE_USER_MAX, true, "USER, USER:GROUP or :GROUP, as names or numbers."},
    {"recursive", JSON_FIELD_BOOL, offsetof(struct set_in, recursive), 0, 0, false, "Apply to everything below the directory."},
};
/* clang-format on */
static const struct surface_input chmod_input = {SURFACE_INPUT(chmod_fields, struct set_in)};
static const struct surface_input chown_input = {SURFACE_INPUT(chown_fields, struct set_in)};

static void on_chmod(struct call *c, const void *input)
{
    const struct set_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct change *s;
    uint32_t mode;
    struct err e;

    if (file_mode(in->value, &mode, &e) < 0)
        call_fail(c, &e);
    else if ((s = change_new(c)) != NULL)
        call_expect(c, &file_source, file_chmod(&at, mode, in->recursive, &change_ops, s));
}

static void on_chown(struct call *c, const void *input)
{
    const struct set_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct change *s = change_new(c);

    if (s != NULL)
        call_expect(c, &file_source, file_chown(&at, in->value, in->recursive, &change_ops, s));
}

/* ---- symlink ---- */

struct symlink_in {
    struct file_in at;
    const char *target;
    bool overwrite, parents;
};
/* clang-format off */
static const struct json_field symlink_fields[] = {
    FILE_PATH_FIELD(struct symlink_in, "Path of the link to create."),
    {"target", JSON_FIELD_PATH, offsetof(struct symlink_in, target), 1, ENGINE_PATH_MAX, true, "Target, stored unchanged."},
    FILE_USER_FIELD(struct symlink_in),
    {"overwrite", JSON_FIELD_BOOL, offsetof(struct symlink_in, overwrite), 0, 0, false, "Replace an existing file or link."},
    {"parents", JSON_FIELD_BOOL, offsetof(struct symlink_in, parents), 0, 0, false, "Create missing parent directories."},
};
/* clang-format on */
static const struct surface_input symlink_input = {
    SURFACE_INPUT(symlink_fields, struct symlink_in)};

static void on_symlink(struct call *c, const void *input)
{
    const struct symlink_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct change *s = change_new(c);

    if (s != NULL)
        call_expect(c, &file_source,
                    file_symlink(&at, in->target, in->parents, in->overwrite, &change_ops, s));
}

/* ---- attributes ---- */

struct xattrs_in {
    struct file_in at;
    const char *prefix;
    json_t *set, *remove;
};
/* clang-format off */
#define XATTR_FIELDS \
    FILE_PATH_FIELD(struct xattrs_in, "File or directory."), \
    FILE_USER_FIELD(struct xattrs_in), \
    {"prefix", JSON_FIELD_STR, offsetof(struct xattrs_in, prefix), 5, 200, false, \
     "Prefix of the attribute names, beginning with `user.`; it is removed from the names shown. Default: `user.`"}
static const struct json_field get_xattrs_fields[] = {XATTR_FIELDS};
static const struct json_field set_xattrs_fields[] = {
    XATTR_FIELDS,
    {"set", JSON_FIELD_STRMAP, offsetof(struct xattrs_in, set), 0, ATTRS_MAX, false, "set.NAME=VALUE: attribute to set."},
    {"remove", JSON_FIELD_STRLIST, offsetof(struct xattrs_in, remove), 0, ATTRS_MAX, false, "Name of an attribute to remove."},
};

struct xattr_view {
    const char *name;
    struct shape_bytes value;
};
static const struct shape_field xattr_fields[] = {
    {"name", SHAPE_STR, offsetof(struct xattr_view, name), "Name without the prefix."},
    {"value", SHAPE_BYTES, offsetof(struct xattr_view, value), "Value."},
};
static SHAPE(xattr_shape, "FileAttribute", "An extended attribute.", xattr_fields);
struct xattrs_view {
    struct shape_bytes attributes;
};
static const struct shape_field xattrs_fields[] = {
    {"attributes", SHAPE_LIST, offsetof(struct xattrs_view, attributes), "Attributes with the prefix.", SHAPE_ALWAYS, &xattr_shape},
};
static SHAPE(xattrs_shape, "FileAttributes", "Extended attributes of a file.", xattrs_fields);
/* clang-format on */
static const struct surface_input get_xattrs_input = {
    SURFACE_INPUT(get_xattrs_fields, struct xattrs_in)};
static const struct surface_input set_xattrs_input = {
    SURFACE_INPUT(set_xattrs_fields, struct xattrs_in)};

static void got_xattr(void *arg, const struct file_attr_info *x)
{
    struct change *s = arg;
    struct xattr_view v = {x->name, {x->value.p, x->value.len}};

    shape_append(&s->attrs, &xattr_shape, &v);
}

static void got_xattrs(void *arg, const struct file_result *d, const struct err *e)
{
    struct change *s = arg;

    (void)d;
    if (!call_told(s->c))
        return;
    if (e != NULL)
        call_fail(s->c, e);
    else
        call_reply_shape(s->c, &xattrs_shape, &(struct xattrs_view){shape_list(&s->attrs)});
}

static const struct file_work_ops xattr_ops = {.on_xattr = got_xattr, .on_done = got_xattrs};

static int add_attr(struct file_attr *list, size_t *n, const char *name, const char *value,
                    struct err *e)
{
    if (name[0] == '\0' || strchr(name, '=') != NULL)
        return err_set(e, ERR_INVALID, "attribute: expected a name without '='");
    list[(*n)++] = (struct file_attr){name, value};
    return 0;
}

static int collect_attrs(const struct xattrs_in *in, struct file_attr *list, size_t *n,
                         struct err *e)
{
    const char *name;
    json_t *v;
    size_t i;

    json_object_foreach(in->set, name, v)
    {
        if (add_attr(list, n, name, json_string_value(v), e) < 0)
            return -1;
    }
    json_array_foreach(in->remove, i, v)
    {
        if (add_attr(list, n, json_string_value(v), NULL, e) < 0)
            return -1;
    }
    return 0;
}

static void on_xattrs(struct call *c, const void *input)
{
    const struct xattrs_in *in = input;
    struct file_at at = file_at_of(c, &in->at);
    struct file_attr list[2 * ATTRS_MAX];
    struct change *s;
    struct err e;
    size_t n = 0;

    if (collect_attrs(in, list, &n, &e) < 0)
        call_fail(c, &e);
    else if ((s = change_new(c)) != NULL)
        call_expect(
            c, &file_source,
            file_xattrs(&at, in->prefix != NULL ? in->prefix : "user.", list, n, &xattr_ops, s));
}

/* clang-format off */
const struct surface_row surface_file_changes[] = {
    {{"DELETE", "/v1/sandboxes/{id}/files"}, SCOPE_RUN, on_delete, "deleteFile",
     "Deletes a file or a directory.",
     .query = &delete_input, .status = 204},
    {{"POST", "/v1/sandboxes/{id}/files/mkdir"}, SCOPE_RUN, on_mkdir, "makeDirectory",
     "Creates a directory.",
     .query = &mkdir_input, .status = 200, .answers = {&file_shape}},
    {{"POST", "/v1/sandboxes/{id}/files/move"}, SCOPE_RUN, on_move, "moveFile",
     "Moves a file or a directory, also between filesystems.",
     .query = &to_input, .status = 200, .answers = {&file_shape}},
    {{"POST", "/v1/sandboxes/{id}/files/copy"}, SCOPE_RUN, on_copy, "copyFile",
     "Copies a file, or a directory with its contents. Data is shared on disk if the filesystem supports it.",
     .query = &to_input, .status = 200, .answers = {&file_shape}},
    {{"POST", "/v1/sandboxes/{id}/files/chmod"}, SCOPE_RUN, on_chmod, "chmodFile",
     "Changes permissions.",
     .query = &chmod_input, .status = 200, .answers = {&file_shape}},
    {{"POST", "/v1/sandboxes/{id}/files/chown"}, SCOPE_RUN, on_chown, "chownFile",
     "Changes owner and group.",
     .query = &chown_input, .status = 200, .answers = {&file_shape}},
    {{"POST", "/v1/sandboxes/{id}/files/symlink"}, SCOPE_RUN, on_symlink, "makeSymlink",
     "Creates a symbolic link.",
     .query = &symlink_input, .status = 200, .answers = {&file_shape}},
    {{"GET", "/v1/sandboxes/{id}/files/xattrs"}, SCOPE_READ, on_xattrs, "getFileAttributes",
     "Shows extended attributes of a file.",
     .query = &get_xattrs_input, .status = 200, .answers = {&xattrs_shape}},
    {{"PUT", "/v1/sandboxes/{id}/files/xattrs"}, SCOPE_RUN, on_xattrs, "setFileAttributes",
     "Sets and removes extended attributes of a file; answers with the resulting ones.",
     .query = &set_xattrs_input, .status = 200, .answers = {&xattrs_shape}},
    {.op = NULL},
};
/* clang-format on */
