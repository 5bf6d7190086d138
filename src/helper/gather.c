/* gather.c - see gather.h. */
#include "helper/gather.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "helper/where.h"

#define PIECE (16u << 20)

static const char *source_of(const char *arg)
{
    static const char name[] = "from=";

    return strncmp(arg, name, sizeof(name) - 1) == 0 ? arg + sizeof(name) - 1 : NULL;
}

static int add_file(int fd, const char *named, struct err *e)
{
    autofd int from = where_open(named, O_RDONLY, e);
    struct stat st;
    ssize_t n;

    if (from < 0)
        return -1;
    if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "%.200s: is not a regular file", named);
    while ((n = sendfile(fd, from, NULL, PIECE)) != 0)
        if (n < 0 && errno != EINTR)
            return err_path(e, "%.200s", named);
    return 0;
}

int gather_fill(int fd, const struct args *a, struct err *e)
{
    for (int i = 0; i < a->n; i++)
        if (source_of(a->v[i]) != NULL && add_file(fd, source_of(a->v[i]), e) < 0)
            return -1;
    return 0;
}

int gather_remove(const struct args *a, const char *path, struct err *e)
{
    struct stat kept, st;
    char source[PATH_ROOM];

    if (stat(path, &kept) < 0)
        return err_path(e, "%.200s", path);
    for (int i = 0; i < a->n; i++) {
        if (source_of(a->v[i]) == NULL || where_path(source_of(a->v[i]), source, e) < 0)
            continue;
        if (stat(source, &st) == 0 && st.st_ino == kept.st_ino && st.st_dev == kept.st_dev)
            continue;
        if (unlink(source) < 0 && errno != ENOENT)
            return err_path(e, "%.200s", source);
    }
    return 0;
}
