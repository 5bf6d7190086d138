/* where.c - see where.h. */
#include "helper/tree/where.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/own.h"
#include "helper/call/call.h"

int where_path(const char *named, char out[PATH_ROOM], struct err *e)
{
    const char *home = "", *rest = named;
    int n;

    if (named[0] == '~' && (named[1] == '/' || named[1] == '\0')) {
        home = getenv("HOME") != NULL ? getenv("HOME") : "/";
        rest = named + 1;
    }
    n = snprintf(out, PATH_ROOM, "%s%s", home, rest);
    if (n == 0)
        return err_set(e, ERR_INVALID, "path: empty");
    if (n < 0 || n >= (int)PATH_ROOM)
        return err_set(e, ERR_INVALID, "path: longer than %u bytes", PATH_ROOM - 1);
    while (n > 1 && out[n - 1] == '/')
        out[--n] = '\0';
    return 0;
}

int where_open(const char *named, int flags, struct err *e)
{
    char path[PATH_ROOM];
    int fd;

    if (where_path(named, path, e) < 0)
        return -1;
    fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? say_sys(e, "open", path) : fd;
}

int where_open_file(int dir, const char *path, int flags)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    int fd;

    for (int i = 0;; i++) {
        fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
        if (fd >= 0 || errno != EAGAIN || i == WHERE_LEASE_MS)
            return fd;
        nanosleep(&ms, NULL);
    }
}

int where_parent(char path[PATH_ROOM], char **ret_name, struct err *e)
{
    char *slash = strrchr(path, '/');
    int fd;

    *ret_name = slash != NULL ? slash + 1 : path;
    if (**ret_name == '\0' || strcmp(*ret_name, ".") == 0 || strcmp(*ret_name, "..") == 0)
        return err_set(e, ERR_INVALID,
                       "%.200s: the path must end in a name, not in '/', '.' or '..'", path);
    if (slash == NULL || slash == path) {
        fd = open(slash == NULL ? "." : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    } else {
        *slash = '\0';
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        *slash = '/';
    }
    return fd < 0 ? err_path(e, "%.200s", path) : fd;
}

int where_make_parents(const char *path, uid_t uid, gid_t gid, struct err *e)
{
    char part[PATH_ROOM];

    strcpy(part, path);
    for (char *at = strchr(part + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(part, 0755) == 0) {
            if (uid != (uid_t)-1 && lchown(part, uid, gid) < 0)
                return err_path(e, "%.200s", part);
        } else if (errno != EEXIST) {
            return err_path(e, "%.200s", part);
        }
        *at = '/';
    }
    return 0;
}

int where_make(const char *named, struct err *e)
{
    char path[PATH_ROOM];

    if (where_path(named, path, e) < 0 || where_make_parents(path, (uid_t)-1, (gid_t)-1, e) < 0)
        return -1;
    return mkdir(path, 0755) < 0 && errno != EEXIST ? say_sys(e, "make", path) : 0;
}
