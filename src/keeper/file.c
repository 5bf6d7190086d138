/* file.c - see file.h. */
#include "keeper/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/own.h"

#define FRESH ".new"

uint64_t file_sum(const void *from, size_t n)
{
    const unsigned char *p = from;
    uint64_t h = 14695981039346656037ull;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h;
}

ssize_t file_get(int dir, const char *name, void *to, size_t room, struct err *e)
{
    autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, to, room);

    if (n < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return err_sys(e, "read %s", name);
    return n < 0 ? 0 : n;
}

int file_put(int dir, const char *name, const void *p, size_t n, struct err *e)
{
    autofd int fd = openat(dir, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n || fsync(fd) < 0 ||
        renameat(dir, FRESH, dir, name) < 0 || fsync(dir) < 0)
        return err_sys(e, "write %s", name);
    return 0;
}
