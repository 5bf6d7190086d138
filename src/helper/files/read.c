/* read.c - sends the bytes of a regular file that the front does not get as an fd: files of
 * procfs, where a read may block or never end, and of other mounts. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "helper/call/call.h"
#include "helper/files/files.h"
#include "helper/tree/where.h"

#define PIECE (64u << 10)

/* Sends as many bytes as the file has now, even if it grows meanwhile. Files of procfs have
 * size 0, and some do not end: of those at most `max` bytes. */
static int copy_out(const struct args *a, struct err *e)
{
    char path[PATH_ROOM], piece[PIECE];
    autofd int fd = -1;
    struct stat st;
    uint64_t left;
    ssize_t n = 0;

    if (where_path(args_get(a, "path"), path, e) < 0)
        return -1;
    if (stat(path, &st) < 0)
        return err_path(e, "%.200s", path);
    if (S_ISREG(st.st_mode)) {
        fd = where_open_file(AT_FDCWD, path, 0);
        if (fd < 0 || fstat(fd, &st) < 0)
            return err_path(e, "%.200s", path);
    }
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "%.200s: is not a regular file", path);
    left = st.st_size > 0 ? (uint64_t)st.st_size : args_u64(a, "max", 0);
    while (left > 0 && (n = read(fd, piece, left < PIECE ? (size_t)left : PIECE)) > 0) {
        left -= (uint64_t)n;
        for (ssize_t at = 0; at < n;) {
            ssize_t w = write(STDOUT_FILENO, piece + at, (size_t)(n - at));

            if (w == 0 || (w < 0 && errno != EINTR))
                return err_sys(e, "stdout");
            at += w > 0 ? w : 0;
        }
    }
    if (n < 0)
        return err_path(e, "%.200s", path);
    if (left == 0 && st.st_size == 0 && read(fd, piece, PIECE) > 0)
        return err_set(e, ERR_TOO_LARGE, "%.200s: longer than %s bytes", path, args_get(a, "max"));
    return 0;
}

int read_main(int argc, char **argv)
{
    struct args a = {argc, argv};
    struct err e;

    return copy_out(&a, &e) < 0 ? say_failed(stderr, &e) : 0;
}
