/* file.c - see file.h. */
#include "keeper/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"

#define FRESH ".new"
#define TWIN ".copy-"

uint64_t file_sum_more(uint64_t sum, const void *from, size_t n)
{
    const unsigned char *p = from;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ p[i]) * 1099511628211ull;
    return sum;
}

int dir_open(int at, const char *name, mode_t mode, struct err *e)
{
    int fd;

    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open %s", name) : fd;
}

DIR *dir_list(int dir)
{
    autofd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (d != NULL)
        take_fd(&fd);
    return d;
}

uint64_t file_sum(const void *from, size_t n)
{
    return file_sum_more(14695981039346656037ull, from, n);
}

ssize_t file_get(int dir, const char *name, void *to, size_t room, struct err *e)
{
    autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, to, room);

    if (n < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return err_sys(e, "read %s", name);
    return n < 0 ? 0 : n;
}

static int put(int dir, const char *name, const void *p, size_t n, bool durable, struct err *e)
{
    autofd int fd = openat(dir, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n || (durable && fsync(fd) < 0) ||
        renameat(dir, FRESH, dir, name) < 0 || (durable && fsync(dir) < 0))
        return err_sys(e, "write %s", name);
    return 0;
}

int file_put(int dir, const char *name, const void *p, size_t n, struct err *e)
{
    return put(dir, name, p, n, true, e);
}

static void twin_of(const char *name, char out[NAME_MAX + 1])
{
    snprintf(out, NAME_MAX + 1, TWIN "%s", name);
}

const char *file_twin_name(int dir, const char *entry)
{
    const char *name = entry + strlen(TWIN);

    if (entry[0] != '.')
        return entry;
    if (strncmp(entry, TWIN, strlen(TWIN)) != 0 ||
        faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return NULL;
    return name;
}

int file_put_twins(int dir, const char *name, const void *p, size_t n, struct err *e)
{
    char twin[NAME_MAX + 1];
    struct err why;

    twin_of(name, twin);
    if (put(dir, name, p, n, true, e) < 0)
        return -1;
    if (put(dir, twin, p, n, false, &why) < 0)
        log_warn("write the second copy: %s", why.msg);
    return 0;
}

/* The copy first: a copy without its twin would never be found. */
int file_remove_twins(int dir, const char *name, struct err *e)
{
    char twin[NAME_MAX + 1];

    twin_of(name, twin);
    if ((unlinkat(dir, twin, 0) < 0 && errno != ENOENT) ||
        (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
        return err_sys(e, "remove %s", name);
    return 0;
}

static bool has_bytes(int dir, const char *name, const char *p, size_t n)
{
    autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char part[4096];
    ssize_t got;

    while ((got = read(fd, part, sizeof(part))) > 0) {
        if ((size_t)got > n || memcmp(part, p, (size_t)got) != 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return got == 0 && n == 0;
}

int file_get_twins(int dir, const char *name, char *room, size_t n,
                   int (*parse)(void *arg, const char *p, size_t n, struct err *e), void *arg,
                   struct err *e)
{
    ssize_t got = file_get(dir, name, room, n, e);
    int r = got < 0 ? -1 : parse(arg, room, (size_t)got, e);
    char twin[NAME_MAX + 1];

    twin_of(name, twin);
    if (r != 0) {
        /* Repair a damaged copy, and make the missing one of release 0.1.0. */
        if (r > 0 && !has_bytes(dir, twin, room, (size_t)got) &&
            put(dir, twin, room, (size_t)got, false, e) < 0)
            log_warn("write the second copy: %s", e->msg);
        return r;
    }
    got = file_get(dir, twin, room, n, e);
    r = got < 0 ? -1 : parse(arg, room, (size_t)got, e);
    if (r > 0) {
        log_warn("%s was damaged; restored from its second copy", name);
        if (put(dir, name, room, (size_t)got, true, e) < 0)
            log_warn("%s", e->msg);
    }
    return r;
}
