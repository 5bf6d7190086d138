/* download.c - see download.h. */
#include "front/plane/download.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/etag.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/fdpass.h"
#include "front/plane/surface.h"

#define NAME_SHOWN 255u

static const struct {
    const char *ending, *type;
} types[] = {
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"c", "text/plain; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", "text/plain; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"log", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ogg", "audio/ogg"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"py", "text/x-python; charset=utf-8"},
    {"sh", "text/x-shellscript; charset=utf-8"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"toml", "application/toml"},
    {"ts", "text/plain; charset=utf-8"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xml", "application/xml"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

const char *download_type(const char *path)
{
    const char *name = last_part(path), *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && dot != name && i < ARRAY_LEN(types); i++)
        if (strcasecmp(types[i].ending, dot + 1) == 0)
            return types[i].type;
    return "application/octet-stream";
}

/* ---- what goes with it ---- */

static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("!#$&+-.^_`|~", c) != NULL;
}

/* RFC 6266: the name as it is if it is plain, and percent-encoded for other clients. */
static void put_disposition(struct http_req *r, const char *name)
{
    autobuf struct buf value = BUF_INIT(NAME_SHOWN * 4 + 64);
    size_t n = strnlen(name, NAME_SHOWN);

    buf_adds(&value, "attachment; filename=\"");
    for (size_t i = 0; i < n; i++)
        buf_addc(&value, is_plain((unsigned char)name[i]) || name[i] == ' ' ? name[i] : '_');
    buf_adds(&value, "\"; filename*=UTF-8''");
    for (size_t i = 0; i < n; i++)
        buf_addf(&value, is_plain((unsigned char)name[i]) ? "%c" : "%%%02X",
                 (unsigned char)name[i]);
    http_reply_header(r, "Content-Disposition", buf_cstr(&value));
}

/* A page of a tenant's, shown from our own origin, may do nothing. */
static void put_walls(struct http_req *r)
{
    http_reply_header(r, "Content-Security-Policy", "sandbox; default-src 'none'");
    http_reply_header(r, "X-Content-Type-Options", "nosniff");
}

void download_stream_headers(struct call *c, const char *name, enum download_as as)
{
    put_walls(c->r);
    http_reply_header(c->r, "Accept-Ranges", "none");
    if (as == DOWNLOAD_SAVED)
        put_disposition(c->r, last_part(name));
}

/* ---- ranges ---- */

enum range { RANGE_ALL, RANGE_PART, RANGE_NONE };

/* Of "bytes=A-B", "A-" and "-N"; several, or what is not understood, are all of it. */
static enum range parse_range(const char *text, uint64_t size, uint64_t *at, uint64_t *len)
{
    char from[24], to[24];
    uint64_t a, b;
    const char *dash;

    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0)
        return RANGE_ALL;
    text += 6;
    dash = strchr(text, '-');
    if (strchr(text, ',') != NULL || dash == NULL || (size_t)(dash - text) >= sizeof(from) ||
        strlen(dash + 1) >= sizeof(to))
        return RANGE_ALL;
    snprintf(from, sizeof(from), "%.*s", (int)(dash - text), text);
    snprintf(to, sizeof(to), "%s", dash + 1);
    if (from[0] == '\0') {
        if (str_u64(to, UINT64_MAX, &b) < 0)
            return RANGE_ALL;
        *len = b < size ? b : size;
        *at = size - *len;
        return *len == 0 ? RANGE_NONE : RANGE_PART;
    }
    if (str_u64(from, UINT64_MAX, &a) < 0 || (to[0] != '\0' && str_u64(to, UINT64_MAX, &b) < 0))
        return RANGE_ALL;
    if (to[0] == '\0' || b >= size)
        b = size == 0 ? 0 : size - 1;
    if (a >= size)
        return RANGE_NONE;
    if (b < a)
        return RANGE_ALL;
    *at = a;
    *len = b - a + 1;
    return RANGE_PART;
}

/* ---- the answer ---- */

struct answer {
    int status;
    uint64_t at, len;
};

static int not_satisfiable(struct call *c, uint64_t size, struct err *e)
{
    char value[48];

    snprintf(value, sizeof(value), "bytes */%llu", (unsigned long long)size);
    http_reply_header(c->r, "Content-Range", value);
    return err_set(e, ERR_RANGE, "the file has %llu bytes", (unsigned long long)size);
}

static int decide(struct call *c, const struct file_info *f, const char *tag, struct answer *ret,
                  struct err *e)
{
    const char *match = http_header(c->r, "If-Match"), *unless, *range, *only;
    char value[96];

    unless = http_header(c->r, "If-None-Match");
    range = http_header(c->r, "Range");
    only = http_header(c->r, "If-Range");
    *ret = (struct answer){.status = 200, .len = f->size};
    if (match != NULL && !etag_listed(match, tag))
        return err_set(e, ERR_PRECONDITION, "the file does not match If-Match");
    if (unless != NULL && etag_listed(unless, tag)) {
        ret->status = 304;
        return 0;
    }
    if (only != NULL && strcmp(only, tag) != 0)
        range = NULL;
    switch (parse_range(range, f->size, &ret->at, &ret->len)) {
    case RANGE_NONE:
        return not_satisfiable(c, f->size, e);
    case RANGE_ALL:
        return 0;
    default:
        ret->status = 206;
    }
    snprintf(value, sizeof(value), "bytes %llu-%llu/%llu", (unsigned long long)ret->at,
             (unsigned long long)(ret->at + ret->len - 1), (unsigned long long)f->size);
    http_reply_header(c->r, "Content-Range", value);
    return 0;
}

void download_reply(struct call *c, const struct file_content *f, const char *name,
                    enum download_as as)
{
    const struct file_info *n = f->entry;
    struct etag_parts parts = {n->ino, n->size, n->mtime_ns, n->ctime_ns};
    const char *type = download_type(name);
    char tag[ETAG_MAX];
    struct answer a;
    struct err e;

    if (c->r == NULL) {
        fd_close(c->plane->engine, f->fd, c->ref.key);
        return;
    }
    etag_make(&parts, tag);
    http_reply_header(c->r, "ETag", tag);
    http_reply_header(c->r, "Accept-Ranges", "bytes");
    if (decide(c, n, tag, &a, &e) < 0) {
        fd_close(c->plane->engine, f->fd, c->ref.key);
        call_fail(c, &e);
        return;
    }
    put_walls(c->r);
    if (as == DOWNLOAD_SAVED)
        put_disposition(c->r, last_part(name));
    if (a.status == 304) {
        fd_close(c->plane->engine, f->fd, c->ref.key);
        call_reply_bytes(c, a.status, type, NULL, 0);
    } else if (f->fd < 0) {
        call_reply_bytes(c, a.status, type, f->data + a.at, (size_t)a.len);
    } else {
        call_reply_file(c, a.status, type, f->fd, a.at, a.len);
    }
}
