/* archive.c - downloads a directory as an archive, and unpacks one. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/transfer.h"
#include "front/planes/native/internal.h"

#define EXCLUDES_MAX 50u /* in one query */
#define NAME_MAX_SHOWN 256u

/* ---- out ---- */

struct get_in {
    const char *path, *user, *format;
    json_t *exclude;
    bool skip_unreadable;
};
/* clang-format off */
static const struct json_field get_fields[] = {
    {"path", JSON_FIELD_STR, offsetof(struct get_in, path), 1, 4096, true, "Directory: an absolute path, a path below ~, or a path relative to the default working directory."},
    {"user", JSON_FIELD_STR, offsetof(struct get_in, user), 1, 64, false, "User whose permissions are used. Default: the user that runs commands."},
    {"format", JSON_FIELD_STR, offsetof(struct get_in, format), 1, 16, false, "tar, tar.gz or tar.zst. Default: tar."},
    {"exclude", JSON_FIELD_STRLIST, offsetof(struct get_in, exclude), 0, EXCLUDES_MAX, false,
     "Pattern of paths to exclude, with everything below them. Without a slash it matches names at any depth, with a slash (./build) paths from the top. Repeatable."},
    {"skip_unreadable", JSON_FIELD_BOOL, offsetof(struct get_in, skip_unreadable), 0, 0, false, "Skip files that the user may not read. Default: fail."},
};
/* clang-format on */
static const struct surface_input get_input = {SURFACE_INPUT(get_fields, struct get_in)};

static int format_of(const char *name, enum archive_format *ret, struct err *e)
{
    for (unsigned f = 0; f < ARCHIVE_FORMAT_COUNT; f++) {
        if (name != NULL && strcmp(name, archive_format_name(f)) != 0)
            continue;
        *ret = f;
        return 0;
    }
    return err_set(e, ERR_INVALID, "format: expected tar, tar.gz or tar.zst");
}

/* The last part of the path, without what a header or a shell would stumble over. */
static void name_file(char out[NAME_MAX_SHOWN], const char *path, enum archive_format format)
{
    const char *end = path + strlen(path), *p;
    size_t n = 0;

    while (end > path && end[-1] == '/')
        end--;
    for (p = end; p > path && p[-1] != '/';)
        p--;
    for (; p < end && n < 200; p++)
        if (*p > ' ' && *p < 0x7f && strchr("\"\\'`$;%", *p) == NULL)
            out[n++] = *p;
    str_fmt(out + n, NAME_MAX_SHOWN - n, "%s.%s", n == 0 || out[0] == '.' ? "archive" : "",
            archive_format_name(format));
}

static size_t strings_of(const json_t *list, const char *out[EXCLUDES_MAX], struct err *e)
{
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++) {
        out[i] = json_string_value(json_array_get(list, i));
        if (*out[i] == '\0' || strlen(out[i]) > ARCHIVE_EXCLUDE_MAX) {
            err_set(e, ERR_INVALID, "exclude: expected patterns of 1 to %u bytes",
                    ARCHIVE_EXCLUDE_MAX);
            return SIZE_MAX;
        }
    }
    return n;
}

static void archive_get(struct call *c, const void *query)
{
    const struct get_in *in = query;
    const char *exclude[EXCLUDES_MAX];
    char name[NAME_MAX_SHOWN];
    struct archive_pack_opts o = {.path = in->path,
                                  .user = in->user,
                                  .exclude = exclude,
                                  .skip_unreadable = in->skip_unreadable};
    struct err e;

    o.nexclude = strings_of(in->exclude, exclude, &e);
    if (o.nexclude == SIZE_MAX || format_of(in->format, &o.format, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    name_file(name, in->path, o.format);
    transfer_pack(c, &o, name);
}

/* ---- in ---- */

struct put_in {
    const char *path, *user, *links;
    bool atomic, parents, owners;
};
/* clang-format off */
static const struct json_field put_fields[] = {
    {"path", JSON_FIELD_STR, offsetof(struct put_in, path), 1, 4096, true, "Directory to unpack into."},
    {"user", JSON_FIELD_STR, offsetof(struct put_in, user), 1, 64, false, "User whose permissions are used and who owns the new files. Default: the user that runs commands."},
    {"atomic", JSON_FIELD_BOOL, offsetof(struct put_in, atomic), 0, 0, false,
     "Replace the directory with the contents of the archive in one step, or change nothing. Default: unpack over the existing files; after a failure the files unpacked so far remain."},
    {"parents", JSON_FIELD_BOOL, offsetof(struct put_in, parents), 0, 0, false, "Create missing parent directories."},
    {"owners", JSON_FIELD_BOOL, offsetof(struct put_in, owners), 0, 0, false, "Keep owners, setuid bits and capabilities of the archive. The user must be root."},
    {"links", JSON_FIELD_STR, offsetof(struct put_in, links), 1, 16, false, "inside (default): refuse symbolic links that point out of the directory. any: store them. Links are never followed."},
};
/* clang-format on */
static const struct surface_input put_input = {SURFACE_INPUT(put_fields, struct put_in)};

struct put_view {
    uint64_t entries, bytes, skipped;
    const char *left;
};
/* clang-format off */
static const struct shape_field view_fields[] = {
    {"entries", SHAPE_U64, offsetof(struct put_view, entries), "Number of entries in the archive."},
    {"bytes", SHAPE_U64, offsetof(struct put_view, bytes), "Total size of its files in bytes."},
    {"skipped", SHAPE_U64, offsetof(struct put_view, skipped), "Number of entries that were skipped (FIFOs)."},
    {"left", SHAPE_STR, offsetof(struct put_view, left), "With atomic: path of the replaced directory, if the user could not remove all of it.", SHAPE_OMITTED},
};
/* clang-format on */
static SHAPE(put_shape, "Unpacked", "Contents of an archive.", view_fields);

static void unpacked(struct call *c, const struct archive_result *got)
{
    struct put_view v = {got->entries, got->bytes, got->skipped, got->left};

    call_reply_shape(c, &put_shape, &v);
}

static int links_of(const char *word, bool *any, struct err *e)
{
    *any = word != NULL && strcmp(word, "any") == 0;
    if (word == NULL || *any || strcmp(word, "inside") == 0)
        return 0;
    return err_set(e, ERR_INVALID, "links: expected inside or any");
}

static void archive_put(struct call *c, const void *query)
{
    const struct put_in *in = query;
    struct archive_unpack_opts o = {.path = in->path,
                                    .user = in->user,
                                    .atomic = in->atomic,
                                    .parents = in->parents,
                                    .owners = in->owners};
    struct err e;

    if (links_of(in->links, &o.any_links, &e) < 0)
        call_fail(c, &e);
    else
        transfer_unpack(c, &o, unpacked);
}

/* clang-format off */
const struct surface_row surface_archive[] = {
    {{"GET", "/v1/sandboxes/{id}/archive"}, SCOPE_RUN, archive_get, "getArchive",
     "Downloads a directory as an archive of files, directories and symbolic links. Hard links become separate files. FIFOs, sockets, devices and other mounts are skipped.",
     .query = &get_input, .status = 200, .flags = SURFACE_BYTES},
    {{"PUT", "/v1/sandboxes/{id}/archive"}, SCOPE_RUN, archive_put, "putArchive",
     "Unpacks the body (tar, tar.gz or tar.zst) into a directory. Entries with absolute names, `..`, links out of the directory, and devices are refused and not created.",
     .query = &put_input, .status = 200, .answers = {&put_shape}, .flags = SURFACE_RAW_BODY},
    {.op = NULL},
};
/* clang-format on */
