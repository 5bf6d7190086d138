/* filesystem.c - filesystem.Filesystem: stat, list, mkdir, move, remove.
 *
 * Each is a call of the engine; most answer with the resulting entry. A listing is sent as it comes,
 * and not collected in memory. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/transfer.h"
#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/entry.h"
#include "front/planes/e2b/internal.h"

#define PIECE (64u << 10)  /* of a listing, sent at a time */
#define DEPTH_MAX 1000000u /* as deep as it goes */
#define XATTRS "xattrs=" ENTRY_XATTR

struct fs {
    struct call *c;
    bool named; /* `user` is one that the request names */
    bool list;  /* the answer is one; else one entry */
    size_t count;
    struct buf out;
    struct json_w w;
    struct entry_writer entries;
    char user[E2B_USER_MAX + 1];
    char path[E2B_PATH_MAX + 1], other[E2B_PATH_MAX + sizeof("to=")];
};

static void drop(void *state)
{
    buf_free(&((struct fs *)state)->out);
}

/* NULL: the call is answered. */
static struct fs *fs_new(struct call *c, const char *path)
{
    struct fs *f = call_state(c, sizeof(*f), drop);
    const char *user;
    struct err e;

    f->c = c;
    buf_init(&f->out, CONNECT_MESSAGE_MAX);
    f->entries.w = &f->w;
    if (e2b_user(c, f->user, &user, &e) < 0 || e2b_path(path, f->path, &e) < 0) {
        call_fail(c, &e);
        return NULL;
    }
    f->named = user != NULL;
    return f;
}

static void work(struct fs *f, const char *kind, const char *const *args,
                 const struct file_work_ops *ops)
{
    struct file_at at = e2b_at(f->c, f->path, f->named ? f->user : NULL);

    call_expect(f->c, &file_source, file_work(&at, kind, args, ops, f));
}

/* ---- descriptions ---- */

static void send_piece(struct fs *f)
{
    if (f->out.failed)
        call_cut(f->c);
    if (f->c->r == NULL)
        return;
    if (!f->c->streaming)
        call_begin_bytes(f->c, "application/json");
    call_write(f->c, buf_data(&f->out), f->out.len);
    buf_clear(&f->out);
}

/* Several JSON values, each with a writer of its own. */
static void on_entry(void *arg, const struct file_info *e)
{
    struct fs *f = arg;

    if (f->entries.state != ENTRY_LINK) { /* else this is what the link leads to */
        entry_end(&f->entries);
        if (!f->list && f->count > 0)
            return;
        if (f->out.len > PIECE)
            send_piece(f);
        buf_adds(&f->out, f->count++ > 0 ? "," : f->list ? "{\"entries\":[" : "{\"entry\":");
        jw_init(&f->w, &f->out);
    }
    entry_add(&f->entries, e);
}

static void on_xattr(void *arg, const struct file_attr_info *x)
{
    entry_add_xattr(&((struct fs *)arg)->entries, x);
}

static void described(void *arg, const struct file_result *d, const struct err *e)
{
    struct fs *f = arg;

    (void)d;
    if (!call_told(f->c))
        return;
    if (e != NULL) {
        call_fail(f->c, e);
        return;
    }
    entry_end(&f->entries);
    buf_adds(&f->out, f->count == 0 ? "{}" : f->list ? "]}" : "}");
    if (!f->c->streaming) {
        call_reply(f->c, 200, "application/json", &f->out);
        return;
    }
    send_piece(f);
    call_end(f->c);
}

static const struct file_work_ops description = {
    .on_entry = on_entry, .on_xattr = on_xattr, .on_done = described};

/* Answers with the one entry at f->path. */
static void describe(struct fs *f)
{
    static const char *const args[] = {"resolve", XATTRS, NULL};

    work(f, "stat", args, &description);
}

/* ---- what most are given ---- */

struct path_in {
    const char *path;
};
/* clang-format off */
static const struct json_field path_fields[] = {
    {"path", JSON_FIELD_STR, offsetof(struct path_in, path), 0, 0, false, ""},
};
/* clang-format on */
static const struct surface_input path_input = {SURFACE_INPUT(path_fields, struct path_in)};

static void stat_path(struct call *c, const void *in)
{
    struct fs *f = fs_new(c, ((const struct path_in *)in)->path);

    if (f != NULL)
        describe(f);
}

/* ---- list ---- */

struct list_in {
    const char *path;
    uint64_t depth;
};
/* clang-format off */
static const struct json_field list_fields[] = {
    {"path", JSON_FIELD_STR, offsetof(struct list_in, path), 0, 0, false, ""},
    {"depth", JSON_FIELD_U64, offsetof(struct list_in, depth), 0, UINT32_MAX, false, ""},
};
/* clang-format on */
static const struct surface_input list_input = {SURFACE_INPUT(list_fields, struct list_in)};

static void list_dir(struct call *c, const void *input)
{
    const struct list_in *in = input;
    struct fs *f = fs_new(c, in->path);
    uint64_t depth = in->depth == 0 ? 1 : in->depth < DEPTH_MAX ? in->depth : DEPTH_MAX;
    char levels[32];
    const char *const args[] = {levels, "hidden", "resolve", XATTRS, NULL};

    if (f == NULL)
        return;
    str_fmt(levels, sizeof(levels), "depth=%u", (unsigned)depth);
    f->list = true;
    work(f, "list", args, &description);
}

/* ---- make, move, remove ---- */

/* They tell what they made; it is looked at again, in all its detail. */
static void ignore(void *arg, const struct file_info *f)
{
    (void)arg;
    (void)f;
}

static void then_describe(void *arg, const struct file_result *d, const struct err *e)
{
    struct fs *f = arg;

    (void)d;
    if (!call_told(f->c))
        return;
    if (e != NULL)
        call_fail(f->c, e);
    else
        describe(f);
}

/* One that is there is a success to the engine, and not to envd; what is there and is
 * something else is the caller's mistake to it. */
static void made_dir(void *arg, const struct file_result *d, const struct err *e)
{
    struct fs *f = arg;
    struct err there;

    if (e == NULL && d->count == 0)
        err_set(&there, ERR_CONFLICT, "directory already exists: %.200s", f->path);
    else if (e != NULL && e->kind == ERR_CONFLICT && !e2b_is_absent(f->c, e))
        err_set(&there, ERR_INVALID, "%s, and is not a directory", e->msg);
    else {
        then_describe(f, d, e);
        return;
    }
    then_describe(f, NULL, &there);
}

static void make_dir(struct call *c, const void *in)
{
    static const struct file_work_ops ops = {.on_entry = ignore, .on_done = made_dir};
    static const char *const args[] = {"parents", NULL};
    struct fs *f = fs_new(c, ((const struct path_in *)in)->path);

    if (f != NULL)
        work(f, "mkdir", args, &ops);
}

struct move_in {
    const char *source, *destination;
};
/* clang-format off */
static const struct json_field move_fields[] = {
    {"source", JSON_FIELD_STR, offsetof(struct move_in, source), 0, 0, false, ""},
    {"destination", JSON_FIELD_STR, offsetof(struct move_in, destination), 0, 0, false, ""},
};
/* clang-format on */
static const struct surface_input move_input = {SURFACE_INPUT(move_fields, struct move_in)};

static void moved(void *arg, const struct file_result *d, const struct err *e)
{
    struct fs *f = arg;

    if (e == NULL)
        strcpy(f->path, f->other + sizeof("to=") - 1);
    then_describe(f, d, e);
}

static void move_path(struct call *c, const void *input)
{
    static const struct file_work_ops ops = {.on_entry = ignore, .on_done = moved};
    const struct move_in *in = input;
    struct fs *f = fs_new(c, in->source);
    const char *const args[] = {f == NULL ? NULL : f->other, "parents", "overwrite", NULL};
    char to[E2B_PATH_MAX + 1];
    struct err e;

    if (f == NULL)
        return;
    if (e2b_path(in->destination, to, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    str_fmt(f->other, sizeof(f->other), "to=%s", to);
    work(f, "move", args, &ops);
}

/* A missing entry is removed already. */
static void removed(void *arg, const struct file_result *d, const struct err *e)
{
    autobuf struct buf none = BUF_INIT(8);
    struct fs *f = arg;

    (void)d;
    if (!call_told(f->c))
        return;
    if (e != NULL && e->kind != ERR_NOT_FOUND) {
        call_fail(f->c, e);
        return;
    }
    buf_adds(&none, "{}");
    call_reply(f->c, 200, "application/json", &none);
}

static void remove_path(struct call *c, const void *in)
{
    static const struct file_work_ops ops = {.on_done = removed};
    static const char *const args[] = {"recursive", NULL};
    struct fs *f = fs_new(c, ((const struct path_in *)in)->path);

    if (f != NULL)
        work(f, "remove", args, &ops);
}

/* clang-format off */
#define RPC(method, input, handler, text) \
    {{"POST", "/filesystem.Filesystem/" method}, SCOPE_RUN, handler, "filesystem" method, text, .body = input, .status = 200}

const struct surface_row e2b_filesystem[] = {
    RPC("Stat",    &path_input, stat_path,   "What a path names; a link is not followed."),
    RPC("ListDir", &list_input, list_dir,    "The entries of a directory, and those below it to a depth."),
    RPC("MakeDir", &path_input, make_dir,    "Makes a directory and those above it."),
    RPC("Move",    &move_input, move_path,   "Gives another name, in a directory that is made if need be."),
    RPC("Remove",  &path_input, remove_path, "Removes a file, or a directory with all in it."),
    {.op = NULL},
};
/* clang-format on */
