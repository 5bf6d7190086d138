/* archive.c - a directory as one stream, out of a sandbox and into one. */
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
    {"path", JSON_FIELD_STR, offsetof(struct get_in, path), 1, 4096, true, "The directory: absolute, below the user's home with ~, or relative to where commands start."},
    {"user", JSON_FIELD_STR, offsetof(struct get_in, user), 1, 64, false, "Whose rights are used; without it the user that commands have."},
    {"format", JSON_FIELD_STR, offsetof(struct get_in, format), 1, 16, false, "tar, tar.gz or tar.zst; without it tar."},
    {"exclude", JSON_FIELD_STRLIST, offsetof(struct get_in, exclude), 0, EXCLUDES_MAX, false,
     "What to leave out, with all below it: a pattern without a slash is a name at any depth, one with a slash (./build) a path from the top. May be given several times."},
    {"skip_unreadable", JSON_FIELD_BOOL, offsetof(struct get_in, skip_unreadable), 0, 0, false, "Leave out what the user may not read; else that is an error."},
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
            err_set(e, ERR_INVALID, "exclude: a pattern has 1 to %u bytes", ARCHIVE_EXCLUDE_MAX);
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
    {"path", JSON_FIELD_STR, offsetof(struct put_in, path), 1, 4096, true, "The directory to unpack into."},
    {"user", JSON_FIELD_STR, offsetof(struct put_in, user), 1, 64, false, "Whose rights are used and who owns what is made; without it the user that commands have."},
    {"atomic", JSON_FIELD_BOOL, offsetof(struct put_in, atomic), 0, 0, false,
     "All or nothing: the directory becomes what is in the archive, in one step, or stays as it is. Without it the archive is laid over what is there, and what was made before a failure stays."},
    {"parents", JSON_FIELD_BOOL, offsetof(struct put_in, parents), 0, 0, false, "Make directories of the path that are missing."},
    {"owners", JSON_FIELD_BOOL, offsetof(struct put_in, owners), 0, 0, false, "Owners, setuid and capabilities as the archive says; the user must be root."},
    {"links", JSON_FIELD_STR, offsetof(struct put_in, links), 1, 16, false, "inside: a symbolic link that leads out of the directory is refused (the default); any: it is stored. None is ever followed."},
};
/* clang-format on */
static const struct surface_input put_input = {SURFACE_INPUT(put_fields, struct put_in)};

struct put_view {
    uint64_t entries, bytes, skipped;
    const char *left;
};
/* clang-format off */
static const struct shape_field view_fields[] = {
    {"entries", SHAPE_U64, offsetof(struct put_view, entries), "Entries of the archive."},
    {"bytes", SHAPE_U64, offsetof(struct put_view, bytes), "Bytes of its files."},
    {"skipped", SHAPE_U64, offsetof(struct put_view, skipped), "Of the entries: FIFOs, which are not made."},
    {"left", SHAPE_STR, offsetof(struct put_view, left), "With atomic: what the directory was before, where the user could not remove all of it.", SHAPE_OMITTED},
};
/* clang-format on */
static SHAPE(put_shape, "Unpacked", "What was in an archive.", view_fields);

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
     "Sends a directory as an archive: files (hard links as files of their own), directories and symbolic links; FIFOs, sockets, devices and what is mounted below are left out.",
     .query = &get_input, .status = 200, .flags = SURFACE_BYTES},
    {{"PUT", "/v1/sandboxes/{id}/archive"}, SCOPE_RUN, archive_put, "putArchive",
     "Unpacks the archive in the body, tar, gzip or zstd of it, into a directory. What is absolute, has .. in it, leads out or is a device is refused, and nothing of it is made.",
     .query = &put_input, .status = 200, .answers = {&put_shape}, .flags = SURFACE_RAW_BODY},
    {.op = NULL},
};
/* clang-format on */
