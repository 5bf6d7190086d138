/* spool.c - see spool.h. */
#include "helper/image/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "helper/archive/source.h"
#include "helper/call/call.h"

int spool_write(int fd, const void *p, size_t n, uint64_t at, const char *name, struct err *e)
{
    uint64_t piece = at / SOURCE_PIECE;
    const char *from = p;

    while (n > 0) {
        ssize_t w = pwrite(fd, from, n, (off_t)at);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return say_sys(e, "write", name);
        from += w;
        at += (uint64_t)w;
        n -= (size_t)w;
    }
    for (; piece < at / SOURCE_PIECE; piece++)
        sync_file_range(fd, (off_t)(piece * SOURCE_PIECE), SOURCE_PIECE, SYNC_FILE_RANGE_WRITE);
    return 0;
}
