/* path.c - the file and user that a request names, by envd's rules.
 *
 * File calls have root's permissions inside; new files belong to the named user. A relative path
 * begins in that user's home, and an empty path is that home. */
#include <string.h>

#include "base/str.h"
#include "front/planes/e2b/internal.h"

/* Appends the parts of `path` to the `len` bytes of `out`, which stay: without "//", "." and
 * "..", by the letters alone, as Go cleans one. Where `above`, what leads out of them is kept. */
static void append_clean(const char *path, bool above, char out[E2B_PATH_MAX + 1], size_t len)
{
    size_t first = len;

    while (*(path += strspn(path, "/")) != '\0') {
        size_t n = strcspn(path, "/");
        bool up = n == 2 && memcmp(path, "..", 2) == 0;
        bool at_up = len >= first + 3 && memcmp(out + len - 3, "/..", 3) == 0;

        if (up && len > first && !at_up) {
            while (out[--len] != '/')
                ;
        } else if ((up ? above : n != 1 || *path != '.') && len + n < E2B_PATH_MAX) {
            out[len++] = '/';
            memcpy(out + len, path, n);
            len += n;
        }
        path += n;
    }
    out[len] = '\0';
}

int e2b_path(const char *path, char out[E2B_PATH_MAX + 1], struct err *e)
{
    const char *home = "";
    size_t n;

    if (path == NULL || *path == '\0')
        path = "~";
    if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
        return err_set(e, ERR_INVALID, "path: the home of another user cannot be named with ~");
    if (path[0] != '/' && path[0] != '~')
        home = "~/";
    n = strlen(path);
    if (strlen(home) + n > E2B_PATH_MAX)
        return err_set(e, ERR_INVALID, "path: longer than %u bytes", E2B_PATH_MAX);
    if (path[0] == '/') {
        e2b_clean(path, out);
    } else {
        out[0] = '~';
        append_clean(path + (path[0] == '~'), true, out, 1);
    }
    if (path[n - 1] == '/' && strcmp(out, "/") != 0) /* only a directory is meant */
        strcat(out, "/");
    return 0;
}

void e2b_clean(const char *path, char out[E2B_PATH_MAX + 1])
{
    append_clean(path, false, out, 0);
    if (*out == '\0')
        strcpy(out, "/");
}

struct file_at e2b_at(const struct call *c, const char *path, const char *user)
{
    return (struct file_at){.ref = c->ref, .path = path, .user = user, .as_root = true};
}
