/* upload.c - see upload.h. */
#include "cli/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/pack.h"
#include "cli/stream.h"

static void say_upload(struct upload *u)
{
    if (!isatty(STDERR_FILENO) || u->sent - u->said < (4u << 20))
        return;
    u->said = u->sent;
    fprintf(stderr, "\r\033[Ksending %llu MiB", (unsigned long long)(u->sent >> 20));
    if (u->total > 0)
        fprintf(stderr, " %llu%%", (unsigned long long)(u->sent * 100 / u->total));
}

ssize_t upload_next(void *arg, const char **ret, struct err *e)
{
    struct upload *u = arg;
    ssize_t n;

    *ret = u->piece;
    n = u->pack != NULL ? pack_next(u->pack, ret, e)
                        : stream_read(u->fd, u->piece, sizeof(u->piece));
    if (n < 0 && u->pack == NULL)
        return err_set(e, ERR_INVALID, "read the archive: %s", strerror(errno));
    u->sent += n > 0 ? (uint64_t)n : 0;
    say_upload(u);
    return n;
}

int upload_open(struct upload *u, const char *from, struct err *e)
{
    struct stat st;

    if (strcmp(from, "-") == 0) {
        u->fd = dup(STDIN_FILENO);
        return u->fd < 0 ? err_sys(e, "stdin") : 0;
    }
    if (stat(from, &st) < 0)
        return err_set(e, ERR_INVALID, "%s: %s", from, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        u->pack = pack_open(from, e);
        return u->pack == NULL ? -1 : 0;
    }
    u->fd = open(from, O_RDONLY | O_CLOEXEC);
    u->total = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return u->fd < 0 ? err_set(e, ERR_INVALID, "%s: %s", from, strerror(errno)) : 0;
}

void upload_close(struct upload *u)
{
    pack_free(u->pack);
    u->pack = NULL;
    drop_fd(&u->fd);
}
