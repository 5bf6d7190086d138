/* spool.c - see spool.h. */
#include "helper/spool.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/own.h"

#define PIECE (256u << 10)
#define GZIP_WINDOW (16 + MAX_WBITS)

int spool_open(const char *dir, struct err *e)
{
    const char *const dirs[] = {dir, "/tmp", "/var/tmp", getenv("HOME"), "/workspace"};

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        int fd = dirs[i] == NULL ? -1 : open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd >= 0)
            return fd;
        if (errno == ENOSPC || errno == EDQUOT)
            break;
    }
    return err_path(e, "%.200s: no place to receive into", dir);
}

static int put(int fd, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return err_path(e, "the body");
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* As it is: from the pipe to the file without passing through us, where that works. */
static int fill_plain(int fd, struct err *e)
{
    static char piece[PIECE];
    ssize_t n;

    while ((n = splice(STDIN_FILENO, NULL, fd, NULL, PIECE, SPLICE_F_MOVE)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL)
            break;
        if (n < 0)
            return err_path(e, "the body");
    }
    while (n != 0 && (n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno != EINTR)
            return err_sys(e, "stdin");
        if (n > 0 && put(fd, piece, (size_t)n, e) < 0)
            return -1;
    }
    return 0;
}

/* Several members may follow each other, as gzip has it. */
static int inflate_piece(z_stream *z, int fd, bool *between, struct err *e)
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
        if (put(fd, (char *)out, sizeof(out) - z->avail_out, e) < 0)
            return -1;
    }
    return 0;
}

static int fill_gzip(int fd, struct err *e)
{
    static unsigned char piece[PIECE];
    z_stream z = {0};
    bool between = false, any = false;
    ssize_t n;

    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return err_set(e, ERR_INTERNAL, "zlib");
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "stdin");
        any = true;
        z.next_in = piece;
        z.avail_in = (unsigned)n;
        if (inflate_piece(&z, fd, &between, e) < 0)
            return -1;
    }
    inflateEnd(&z);
    return any && !between ? err_set(e, ERR_INVALID, "the body is not gzip: it ends too early") : 0;
}

int spool_fill(int fd, bool gzip, struct err *e)
{
    return gzip ? fill_gzip(fd, e) : fill_plain(fd, e);
}

void spool_whole(void)
{
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
}
