/* files.c - /files: the bytes of one file, out of a sandbox. upload.c is the way in.
 *
 * A file of the root filesystem is answered as any server answers one; what has no
 * size beforehand, as in /proc, is sent until it ends. */
#include "front/planes/e2b/files.h"
#include "base/own.h"
#include "front/plane/transfer.h"

/* clang-format off */
static const struct json_field query_fields[] = {
    {"path", JSON_FIELD_PATH, offsetof(struct files_in, path), 0, E2B_PATH_MAX, false, ""},
    {"username", JSON_FIELD_STR, offsetof(struct files_in, user), 0, E2B_USER_MAX, false, ""},
    {"signature", JSON_FIELD_STR, offsetof(struct files_in, signature), 0, 0, false, ""},
    {"signature_expiration", JSON_FIELD_STR, offsetof(struct files_in, expiration), 0, 0, false, ""},
};
/* clang-format on */
static const struct surface_input query = {SURFACE_INPUT(query_fields, struct files_in)};

int files_check(struct call *c, const struct files_in *in, const char *operation, struct err *e)
{
    struct signature s = {
        .path = in->path, .user = in->user, .operation = operation, .expiration = in->expiration};

    return signature_check(c, &s, in->signature, e);
}

const char *files_user(const struct files_in *in)
{
    return in->user != NULL && *in->user != '\0' ? in->user : NULL;
}

static void file_get(struct call *c, const void *input)
{
    const struct files_in *in = input;
    char path[E2B_PATH_MAX + 1];
    struct file_at at = e2b_at(c, path, files_user(in));
    struct err e;

    if (files_check(c, in, "read", &e) < 0 || e2b_path(in->path, path, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    http_reply_header(c->r, "Content-Disposition", "inline");
    transfer_read(c, &at, path, DOWNLOAD_SHOWN);
}

/* clang-format off */
const struct surface_row e2b_files[] = {
    {{"GET",  "/files"}, SCOPE_PUBLIC, file_get, "downloadFile", "Sends a file.",
     .query = &query, .status = 200, .flags = SURFACE_BYTES},
    {{"POST", "/files"}, SCOPE_PUBLIC, files_post, "uploadFile", "Writes one file or several.",
     .query = &query, .status = 200, .flags = SURFACE_RAW_BODY},
    {.op = NULL},
};
/* clang-format on */
