/* archive.c - see archive.h. */
#include "front/engine/archive.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "json/read.h"

static const struct {
    const char *name, *type;
} formats[ARCHIVE_FORMAT_COUNT] = {
    [ARCHIVE_TAR] = {"tar", "application/x-tar"},
    [ARCHIVE_TAR_GZ] = {"tar.gz", "application/gzip"},
    [ARCHIVE_TAR_ZST] = {"tar.zst", "application/zstd"},
};

const char *archive_format_name(enum archive_format f)
{
    return formats[f].name;
}

const char *archive_format_type(enum archive_format f)
{
    return formats[f].type;
}

/* A path from the root needs no directory to start in, which might not be there. */
static const char *cwd_for(const char *path)
{
    return path[0] == '/' ? "/" : NULL;
}

struct work *archive_pack(struct ref ref, const struct archive_pack_opts *o,
                          const struct work_ops *ops, void *arg)
{
    const char *argv[4 + ARCHIVE_EXCLUDES_MAX + 1] = {"pack", o->path, formats[o->format].name,
                                                      o->skip_unreadable ? "s" : ""};
    struct work_opts w = {.argv = argv, .user = o->user, .cwd = cwd_for(o->path)};

    for (size_t i = 0; i < o->nexclude && i < ARCHIVE_EXCLUDES_MAX; i++)
        argv[4 + i] = o->exclude[i];
    return work_start(ref, &w, ops, arg);
}

struct work *archive_unpack(struct ref ref, const struct archive_unpack_opts *o,
                            const struct work_ops *ops, void *arg)
{
    char flags[5];
    const char *argv[] = {"unpack", o->path, flags, NULL};
    struct work_opts w = {.argv = argv, .user = o->user, .cwd = cwd_for(o->path), .input = true};

    str_fmt(flags, sizeof(flags), "%s%s%s%s", o->atomic ? "a" : "", o->parents ? "p" : "",
            o->owners ? "o" : "", o->any_links ? "l" : "");
    return work_start(ref, &w, ops, arg);
}

struct result_in {
    uint64_t entries, bytes, skipped;
    const char *left;
};
/* clang-format off */
static const struct json_field result_fields[] = {
    {"entries", JSON_FIELD_U64, offsetof(struct result_in, entries), 0, 0, true, ""},
    {"bytes",   JSON_FIELD_U64, offsetof(struct result_in, bytes),   0, 0, true, ""},
    {"skipped", JSON_FIELD_U64, offsetof(struct result_in, skipped), 0, 0, true, ""},
    {"left",    JSON_FIELD_STR, offsetof(struct result_in, left),    0, 4199, true, ""},
};
/* clang-format on */

int archive_result(const char *line, size_t len, struct archive_result *ret, struct err *e)
{
    autojson json_t *doc = NULL;
    struct result_in in = {.left = ""};

    if (len < 3 || memcmp(line, "R ", 2) != 0 || line[len - 1] != '\n' ||
        json_parse(line + 2, len - 3, &doc, e) < 0 ||
        json_decode(doc, result_fields, ARRAY_LEN(result_fields), &in, e) < 0)
        return err_set(e, ERR_INTERNAL, "cove-helper sent an invalid result line");
    *ret = (struct archive_result){in.entries, in.bytes, in.skipped, ""};
    str_fmt(ret->left, sizeof(ret->left), "%s", in.left);
    return 0;
}
