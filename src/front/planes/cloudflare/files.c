/* files.c - the workspace: one file out or in, or all of it as an archive. Nothing here
 * has a size that is too large. A session has no say in where a file is, since paths are
 * absolute; its id is only looked at. */
#include <string.h>

#include "base/own.h"
#include "front/plane/transfer.h"
#include "front/planes/cloudflare/internal.h"
#include "mem/mem.h"

/* ---- one file ---- */

/* Where the Agents SDK puts what it then moves as another user. The reference refuses that,
 * and with it the SDK's editor with runAs. */
#define SCRATCH "/tmp/openai-agents-"

static bool is_scratch(const char *path)
{
    return strncmp(path, SCRATCH, strlen(SCRATCH)) == 0 &&
           strchr(path + strlen(SCRATCH), '/') == NULL;
}

/* The path after /file/ is absolute, without its leading slash. */
static int path_of(const struct call *c, struct buf *out, struct err *e)
{
    char rest[ENGINE_PATH_MAX + 2] = "/";

    if (route_rest(&c->match, rest + 1, sizeof(rest) - 1, e) < 0)
        return -1;
    if (rest[1] == '\0')
        return err_set(e, ERR_INVALID, "file path must not be empty");
    if (is_scratch(rest) && strcmp(c->row->route.method, "PUT") == 0) {
        buf_adds(out, rest);
        return 0;
    }
    return cloudflare_path("path", rest, out, e);
}

static struct file_at at_of(const struct call *c, const char *path)
{
    return (struct file_at){.ref = c->ref, .path = path, .user = CLOUDFLARE_USER};
}

static void read_go(struct call *c, const void *in)
{
    autobuf struct buf path = BUF_INIT(2 * ENGINE_PATH_MAX);
    struct file_at at;
    struct err e;

    (void)in;
    if (path_of(c, &path, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    at = at_of(c, buf_cstr(&path));
    /* whatever its name says: the client wants bytes */
    transfer_read(c, &at, "", DOWNLOAD_SHOWN);
}

static void wrote(struct call *c, const struct file_info *f)
{
    (void)f;
    cloudflare_reply_ok(c);
}

static void write_go(struct call *c, const void *in)
{
    autobuf struct buf path = BUF_INIT(2 * ENGINE_PATH_MAX);
    struct file_write_opts o = {.mode = FILE_MODE_KEEP, .parents = true};
    struct file_at at;
    struct err e;

    (void)in;
    if (path_of(c, &path, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    at = at_of(c, buf_cstr(&path));
    transfer_write(c, &at, &o, wrote);
}

static void enter_file(struct call *c, const void *in, void (*go)(struct call *c, const void *in))
{
    autobuf struct buf path = BUF_INIT(2 * ENGINE_PATH_MAX);
    struct err e;

    if (path_of(c, &path, &e) < 0 || cloudflare_session_header(c, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, go);
}

static void file_read_(struct call *c, const void *in)
{
    enter_file(c, in, read_go);
}

static void file_write_(struct call *c, const void *in)
{
    enter_file(c, in, write_go);
}

/* ---- all of it ---- */

struct persist_in {
    const char *excludes;
};

/* Comma-separated patterns of paths below /workspace. The text is cut
 * into `out`, which points into it. */
static int split(char *text, const char *out[ARCHIVE_EXCLUDES_MAX], size_t *n, struct err *e)
{
    char *word;

    while ((word = strsep(&text, ",")) != NULL) {
        if (*word == '\0')
            continue;
        if (strstr(word, "..") != NULL)
            return err_set(e, ERR_INVALID, "exclude paths must not contain \"..\"");
        if (*n == ARCHIVE_EXCLUDES_MAX || strlen(word) + 2 > ARCHIVE_EXCLUDE_MAX)
            return err_set(e, ERR_INVALID, "at most %u excludes, of at most %u bytes each",
                           ARCHIVE_EXCLUDES_MAX, ARCHIVE_EXCLUDE_MAX - 2);
        out[(*n)++] = word;
    }
    return 0;
}

/* "./PATH". The reference gives it to tar, whose '*' matches slashes too: at the beginning of a part
 * ours is made to. */
static void put_pattern(struct buf *out, const char *path)
{
    bool begins = true;

    if (strncmp(path, "./", 2) == 0)
        path += 2;
    buf_adds(out, "./");
    for (; *path != '\0'; path++) {
        if (begins && *path == '*')
            buf_adds(out, "**/");
        buf_addc(out, *path);
        begins = *path == '/';
    }
    buf_addc(out, '\0');
}

/* -1 with `e`; else their number. `patterns` holds them, concatenated. */
static int patterns_of(const char *excludes, struct buf *patterns, struct err *e)
{
    autofree char *copy = mem_text(excludes != NULL ? excludes : "");
    const char *words[ARCHIVE_EXCLUDES_MAX];
    size_t n = 0;

    if (split(copy, words, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        put_pattern(patterns, words[i]);
    return patterns->failed ? err_set(e, ERR_INVALID, "excludes: too long") : (int)n;
}

#define PATTERNS_MAX (3u * ARCHIVE_EXCLUDES_MAX * ARCHIVE_EXCLUDE_MAX)

static void persist_go(struct call *c, const void *query)
{
    const struct persist_in *in = query;
    autobuf struct buf patterns = BUF_INIT(PATTERNS_MAX);
    const char *exclude[ARCHIVE_EXCLUDES_MAX], *at;
    struct archive_pack_opts o = {
        .path = CLOUDFLARE_ROOT, .user = CLOUDFLARE_USER, .exclude = exclude};
    struct err e;
    int n = patterns_of(in->excludes, &patterns, &e);

    if (n < 0) {
        call_fail(c, &e);
        return;
    }
    at = buf_data(&patterns);
    for (; o.nexclude < (size_t)n; at += strlen(at) + 1)
        exclude[o.nexclude++] = at;
    transfer_pack(c, &o, NULL);
}

static void persist_run(struct call *c, const void *query)
{
    const struct persist_in *in = query;
    autobuf struct buf patterns = BUF_INIT(PATTERNS_MAX);
    struct err e;

    if (patterns_of(in->excludes, &patterns, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, persist_go);
}

static void hydrated(struct call *c, const struct archive_result *r)
{
    (void)r;
    cloudflare_reply_ok(c);
}

/* Unpacked over existing files, as tar does. Links that lead out are what tar stores too; they
 * are not followed while it is unpacked. */
static void hydrate_go(struct call *c, const void *in)
{
    static const struct archive_unpack_opts o = {.path = CLOUDFLARE_ROOT,
                                                 .user = CLOUDFLARE_USER,
                                                 .parents = true,
                                                 .owners = true,
                                                 .any_links = true};

    (void)in;
    transfer_unpack(c, &o, hydrated);
}

static void hydrate_run(struct call *c, const void *in)
{
    const struct http_head *h = http_head(c->r);
    struct err e;

    if (h->has_body && h->content_length != 0) {
        cloudflare_enter(c, in, hydrate_go);
        return;
    }
    err_set(&e, ERR_INVALID, "Empty tar payload");
    call_fail(c, &e);
}

/* clang-format off */
static const struct json_field persist_fields[] = {
    {"excludes", JSON_FIELD_STR, offsetof(struct persist_in, excludes), 0, PATTERNS_MAX, false,
     "Paths below /workspace to exclude, comma-separated; *, ? and [...] as tar has them."},
};
static const struct surface_input persist_input = {SURFACE_INPUT(persist_fields, struct persist_in)};

const struct surface_row cloudflare_files[] = {
    {{"GET", CLOUDFLARE_SANDBOX "/file/{path...}"}, SCOPE_READ, file_read_, "cloudflareReadFile",
     "Downloads a file below /workspace, of any size.",
     .status = 200, .flags = SURFACE_BYTES, .failure = "exec_transport_error", .missing = "workspace_read_not_found"},
    {{"PUT", CLOUDFLARE_SANDBOX "/file/{path...}"}, SCOPE_RUN, file_write_, "cloudflareWriteFile",
     "Writes a file below /workspace, of any size, and creates missing parent directories.",
     .status = 200, .answers = {&cloudflare_ok_shape}, .flags = SURFACE_RAW_BODY, .failure = "workspace_archive_write_error"},
    {{"POST", CLOUDFLARE_SANDBOX "/persist"}, SCOPE_RUN, persist_run, "persistWorkspace",
     "Downloads /workspace as a tar. Hard links become separate files; sockets, FIFOs and devices are skipped.",
     .query = &persist_input, .status = 200, .flags = SURFACE_BYTES, .failure = "workspace_archive_read_error"},
    {{"POST", CLOUDFLARE_SANDBOX "/hydrate"}, SCOPE_RUN, hydrate_run, "hydrateWorkspace",
     "Unpacks a tar over /workspace.",
     .status = 200, .answers = {&cloudflare_ok_shape}, .flags = SURFACE_RAW_BODY, .failure = "workspace_archive_write_error"},
    {.op = NULL},
};
/* clang-format on */
