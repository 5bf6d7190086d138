/* words.c - what a client writes: paths of the workspace, arguments of a command. */
#include <string.h>

#include "base/sha256.h"
#include "base/str.h"
#include "front/planes/cloudflare/internal.h"

void cloudflare_resolve(struct buf *out, const char *path)
{
    while (*path != '\0') {
        size_t n = strcspn(path, "/");

        if (n == 2 && memcmp(path, "..", 2) == 0) {
            /* Drops the last part of a path. */
            while (out->len > 0 && buf_data(out)[out->len - 1] != '/')
                out->len--;
            if (out->len > 0)
                out->len--;
        } else if (n > 0 && !(n == 1 && *path == '.')) {
            buf_addc(out, '/');
            buf_add(out, path, n);
        }
        path += n + (path[n] == '/');
    }
}

int cloudflare_path(const char *what, const char *path, struct buf *out, struct err *e)
{
    static const char root[] = CLOUDFLARE_ROOT;
    size_t n = sizeof(root) - 1;

    if (strlen(path) > ENGINE_PATH_MAX)
        return err_set(e, ERR_INVALID, "%s must have at most %u bytes", what, ENGINE_PATH_MAX);
    if (*path != '/')
        buf_adds(out, root);
    cloudflare_resolve(out, path);
    if (out->failed)
        return err_set(e, ERR_INVALID, "%s is too long", what);
    if (out->len < n || memcmp(buf_cstr(out), root, n) != 0 ||
        (out->len > n && buf_data(out)[n] != '/'))
        return err_set(e, ERR_DENIED, "%s must resolve to a location within %s", what, root);
    return 0;
}

int cloudflare_check_session(const char *id, struct err *e)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    if (n > 0 && n <= CLOUDFLARE_SESSION_MAX && id[n] == '\0' && strstr(id, "..") == NULL)
        return 0;
    return err_set(e, ERR_INVALID, "Invalid session ID format");
}

int cloudflare_session_header(struct call *c, struct err *e)
{
    const char *id = http_header(c->r, "Session-Id");

    return id == NULL || *id == '\0' ? 0 : cloudflare_check_session(id, e);
}

/* Ids of this plane are longer than those of the engine may be, and may begin with a dot. */
void cloudflare_name(const char *prefix, const char *id, char out[PROCESS_ID_MAX + 1])
{
    char hex[SHA256_HEX];
    struct sha256 sum;

    if (strlen(prefix) + strlen(id) <= PROCESS_ID_MAX && (*prefix != '\0' || *id != '.')) {
        str_fmt(out, PROCESS_ID_MAX + 1, "%s%s", prefix, id);
        return;
    }
    sha256_init(&sum);
    sha256_add(&sum, id, strlen(id));
    sha256_hex(&sum, hex);
    str_fmt(out, PROCESS_ID_MAX + 1, "%s%.40s", prefix, hex);
}

/* As Cloudflare does it: bare if nothing in it means anything to a shell, else $'...',
 * which can hold any byte on one line. */
void cloudflare_quote(struct buf *out, const char *arg)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-";
    static const char special[] = "\\'\n\r\t", written[] = "\\'nrt";

    if (*arg != '\0' && arg[strspn(arg, plain)] == '\0') {
        buf_adds(out, arg);
        return;
    }
    buf_adds(out, "$'");
    for (; *arg != '\0'; arg++) {
        const char *at = strchr(special, *arg);

        if (at != NULL)
            buf_addc(out, '\\');
        buf_addc(out, at != NULL ? written[at - special] : *arg);
    }
    buf_addc(out, '\'');
}
