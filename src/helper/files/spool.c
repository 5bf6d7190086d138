/* spool.c - see spool.h. */
#include "helper/files/spool.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/own.h"
#include "helper/files/tmpfile.h"

#define PIECE (256u << 10)
#define OUT_PIECE (16u << 20) /* bytes per write-back */
#define GZIP_WINDOW (16 + MAX_WBITS)

int spool_open(const char *dir, struct err *e)
{
    const char *const dirs[] = {dir, "/tmp", "/var/tmp", getenv("HOME"), "/workspace"};

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        int fd = dirs[i] == NULL ? -1 : tmpfile_open(AT_FDCWD, dirs[i]);

        if (fd >= 0)
            return fd;
        if (errno == ENOSPC || errno == EDQUOT)
            break;
    }
    return err_path(e, "%.200s: no directory in which the body can be received", dir);
}

struct sink {
    int fd;
    enum spool_how how;
    off_t at, out; /* bytes written, and bytes of which write-back was started */
};

static int put(struct sink *s, const char *p, size_t n, struct err *e)
{
    s->at += (off_t)n;
    while (n > 0) {
        ssize_t w = write(s->fd, p, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return err_path(e, "the body");
        p += w;
        n -= (size_t)w;
    }
    if ((s->how & SPOOL_CLONE) && s->at - s->out >= (off_t)OUT_PIECE) {
        /* only starts write-back, and does not wait for the disk */
        posix_fadvise(s->fd, 0, s->at, POSIX_FADV_DONTNEED);
        s->out = s->at;
    }
    return 0;
}

/* Writes the inflated bytes of z->next_in. A gzip file may consist of several members: *between
 * them a new one begins. */
static int put_inflated(struct sink *s, z_stream *z, bool *between, struct err *e)
{
    static unsigned char out[PIECE];

    while (z->avail_in > 0) {
        int r;

        if (*between && inflateReset(z) != Z_OK)
            return err_set(e, ERR_INTERNAL, "zlib");
        z->next_out = out;
        z->avail_out = sizeof(out);
        r = inflate(z, Z_NO_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
            return err_set(e, ERR_INVALID, "the body is not gzip: %s",
                           z->msg != NULL ? z->msg : "damaged");
        *between = r == Z_STREAM_END;
        if (put(s, (char *)out, sizeof(out) - z->avail_out, e) < 0)
            return -1;
    }
    return 0;
}

/* Not splice(): it holds the pipe's lock while the file is written, and the writer of the pipe
 * spins on it meanwhile. Measured: that costs more than the copy. */
int spool_fill(int fd, enum spool_how how, struct err *e)
{
    static char piece[PIECE];
    struct sink s = {.fd = fd, .how = how};
    z_stream z = {0};
    bool between = true;
    ssize_t n;

    if ((how & SPOOL_GZIP) && inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return err_set(e, ERR_INTERNAL, "zlib");
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "stdin");
        z.next_in = (unsigned char *)piece;
        z.avail_in = (unsigned)n;
        if ((how & SPOOL_GZIP ? put_inflated(&s, &z, &between, e) : put(&s, piece, (size_t)n, e)) <
            0)
            return -1;
    }
    inflateEnd(&z); /* after a failure the process ends */
    return between ? 0 : err_set(e, ERR_INVALID, "the body is not gzip: it ends too early");
}

void spool_whole(void)
{
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
}
