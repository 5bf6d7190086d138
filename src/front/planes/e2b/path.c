/* path.c - which file a request means, and as whom: envd's rules in the engine's words.
 *
 * A file call has root's power inside; what it makes belongs to the user that was named.
 * A relative path begins in that user's home, and no path at all is that home. */
#include <string.h>

#include "base/str.h"
#include "front/planes/e2b/inside.h"

int e2b_path(const char *path, char out[E2B_PATH_MAX + 1], struct err *e)
{
    const char *home = "";

    if (path == NULL || *path == '\0')
        path = "~";
    if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
        return err_set(e, ERR_INVALID, "path: the home of another user cannot be named with ~");
    if (path[0] != '/' && path[0] != '~')
        home = "~/";
    if (strlen(home) + strlen(path) > E2B_PATH_MAX)
        return err_set(e, ERR_INVALID, "path: longer than %u bytes", E2B_PATH_MAX);
    str_fmt(out, E2B_PATH_MAX + 1, "%s%s", home, path);
    return 0;
}

void e2b_clean(const char *path, char out[E2B_PATH_MAX + 1])
{
    char *end = out;

    while (*(path += strspn(path, "/")) != '\0') {
        size_t n = strcspn(path, "/");

        if (n == 2 && memcmp(path, "..", 2) == 0) {
            while (end > out && *--end != '/')
                ;
        } else if ((n != 1 || *path != '.') && (size_t)(end - out) + n < E2B_PATH_MAX) {
            *end++ = '/';
            memcpy(end, path, n);
            end += n;
        }
        path += n;
    }
    if (end == out)
        *end++ = '/';
    *end = '\0';
}

struct file_at e2b_at(const struct call *c, const char *path, const char *user)
{
    return (struct file_at){
        .key = c->key, .sandbox = c->sandbox, .path = path, .user = user, .as_root = true};
}
