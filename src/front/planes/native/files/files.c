/* files.c - reads, writes and shows one file. */
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "front/plane/transfer.h"
#include "front/planes/native/files/file.h"

/* ---- look ---- */

struct stat_in {
    struct file_in at;
    bool follow;
};
/* clang-format off */
static const struct json_field stat_fields[] = {
    FILE_PATH_FIELD(struct stat_in, "Path: absolute, below ~/, or relative to the default working directory."),
    FILE_USER_FIELD(struct stat_in),
    {"follow", JSON_FIELD_BOOL, offsetof(struct stat_in, follow), 0, 0, false, "Show the target of a symbolic link instead of the link."},
};
/* clang-format on */
static const struct surface_input stat_input = {SURFACE_INPUT(stat_fields, struct stat_in)};

static void shown(void *arg, const struct file_info *f, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        file_reply(c, f);
}

static void on_stat(struct call *c, const void *input)
{
    const struct stat_in *in = input;
    struct file_at at = file_at_of(c, &in->at);

    call_expect(c, &file_source, file_stat(&at, in->follow, shown, c));
}

/* ---- read ---- */

struct read_in {
    struct file_in at;
    bool download;
};
/* clang-format off */
static const struct json_field read_fields[] = {
    FILE_PATH_FIELD(struct read_in, "Path: absolute, below ~/, or relative to the default working directory."),
    FILE_USER_FIELD(struct read_in),
    {"download", JSON_FIELD_BOOL, offsetof(struct read_in, download), 0, 0, false, "Send Content-Disposition: attachment."},
};
/* clang-format on */
static const struct surface_input read_input = {SURFACE_INPUT(read_fields, struct read_in)};

static void on_read(struct call *c, const void *input)
{
    const struct read_in *in = input;
    struct file_at at = file_at_of(c, &in->at);

    transfer_read(c, &at, in->at.path, in->download ? DOWNLOAD_SAVED : DOWNLOAD_SHOWN);
}

/* ---- write ---- */

struct write_in {
    struct file_in at;
    const char *mode, *owner;
    bool append, atomic, parents;
};
/* clang-format off */
static const struct json_field write_fields[] = {
    FILE_PATH_FIELD(struct write_in, "Path: absolute, below ~/, or relative to the default working directory. Symbolic links are followed."),
    FILE_USER_FIELD(struct write_in),
    {"mode", JSON_FIELD_STR, offsetof(struct write_in, mode), 1, 5, false, "Permissions in octal. Default: unchanged; 0644 for a new file."},
    {"owner", JSON_FIELD_STR, offsetof(struct write_in, owner), 1, 2 * ENGINE_USER_MAX, false, "USER, USER:GROUP or :GROUP, as names or numbers."},
    {"append", JSON_FIELD_BOOL, offsetof(struct write_in, append), 0, 0, false, "Append to the file."},
    {"atomic", JSON_FIELD_BOOL, offsetof(struct write_in, atomic), 0, 0, false, "Replace the file with a new one in one step. Default: overwrite it and keep its inode and links."},
    {"parents", JSON_FIELD_BOOL, offsetof(struct write_in, parents), 0, 0, false, "Create missing parent directories."},
};
/* clang-format on */
static const struct surface_input write_input = {SURFACE_INPUT(write_fields, struct write_in)};

/* What the headers say. */
static int write_conditions(struct call *c, struct file_write_opts *o, struct err *e)
{
    const char *coding = http_header(c->r, "Content-Encoding");
    const char *unless = http_header(c->r, "If-None-Match");

    o->match = http_header(c->r, "If-Match");
    o->gzip = coding != NULL && strcasecmp(coding, "gzip") == 0;
    if (coding != NULL && !o->gzip && strcasecmp(coding, "identity") != 0)
        return err_set(e, ERR_MEDIA, "Content-Encoding: expected gzip or none");
    if (unless != NULL && strcmp(unless, "*") != 0)
        return err_set(e, ERR_INVALID, "If-None-Match: expected *");
    o->only_new = unless != NULL;
    return 0;
}

static void on_write(struct call *c, const void *input)
{
    const struct write_in *in = input;
    struct file_write_opts o = {
        .owner = in->owner, .append = in->append, .atomic = in->atomic, .parents = in->parents};
    struct file_at at = file_at_of(c, &in->at);
    struct err e;

    if (file_mode(in->mode, &o.mode, &e) < 0 || write_conditions(c, &o, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (o.append && o.atomic) {
        err_set(&e, ERR_INVALID, "at most one of append and atomic is allowed");
        call_fail(c, &e);
        return;
    }
    transfer_write(c, &at, &o, file_reply);
}

/* clang-format off */
const struct surface_row surface_files[] = {
    {{"GET", "/v1/sandboxes/{id}/files"}, SCOPE_READ, on_read, "readFile",
     "Downloads a regular file of any size. Supports Range, If-Range, If-None-Match and If-Match; the ETag is strong.",
     .query = &read_input, .status = 200, .flags = SURFACE_BYTES},
    {{"PUT", "/v1/sandboxes/{id}/files"}, SCOPE_RUN, on_write, "writeFile",
     "Writes the body, of any size, to a file. Nothing is visible until the whole body has arrived. Supports If-Match, If-None-Match: * and Content-Encoding: gzip.",
     .query = &write_input, .status = 200, .answers = {&file_shape}, .flags = SURFACE_RAW_BODY},
    {{"GET", "/v1/sandboxes/{id}/files/stat"}, SCOPE_READ, on_stat, "statFile",
     "Shows a file's metadata.",
     .query = &stat_input, .status = 200, .answers = {&file_shape}},
    {.op = NULL},
};
/* clang-format on */
