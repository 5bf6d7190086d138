/* path.c - see path.h. */
#include "helper/tree/path.h"

#include <string.h>

#include "base/id.h"

int path_clean(const char *from, const char *what, char out[PATH_ROOM], struct err *e)
{
    unsigned depth = 0;
    size_t len = 0;

    if (from[0] == '/')
        return err_set(e, ERR_INVALID, "%s '%.200s' is absolute", what, from);
    for (const char *p = from; *p != '\0';) {
        size_t n = strcspn(p, "/");

        if (n == 2 && p[0] == '.' && p[1] == '.')
            return err_set(e, ERR_INVALID, "%s '%.200s' leads out of the root", what, from);
        if (n > PATH_PART_MAX)
            return err_set(e, ERR_INVALID, "%s '%.80s...': a name is longer than %u bytes", what,
                           from, PATH_PART_MAX);
        if (n > 0 && !(n == 1 && p[0] == '.')) {
            if (len + n + 2 > PATH_ROOM || ++depth > PATH_DEPTH_MAX)
                return err_set(e, ERR_INVALID, "%s '%.80s...' is too long or too deep", what, from);
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, p, n);
            len += n;
        }
        p += n;
        p += *p == '/';
    }
    out[len] = '\0';
    return 0;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

bool path_link_is_inside(const char *path, const char *target)
{
    size_t depth = 0;

    for (const char *p = path; (p = strchr(p, '/')) != NULL; p++)
        depth++;
    if (*target == '/')
        return false;
    while (strncmp(target, "../", 3) == 0 || strncmp(target, "./", 2) == 0) {
        if (target[1] == '.' && depth-- == 0)
            return false;
        target += target[1] == '.' ? 3 : 2;
        target += strspn(target, "/");
    }
    if (strcmp(target, "..") == 0)
        return depth > 0;
    for (const char *p = target; (p = strstr(p, "/..")) != NULL; p += 3)
        if (p[3] == '/' || p[3] == '\0')
            return false;
    return true;
}

void path_beside(char ret[PATH_BESIDE_ROOM])
{
    static const char begin[] = ".cove-";

    memcpy(ret, begin, sizeof(begin));
    id_random(ret + strlen(begin), 16);
}
