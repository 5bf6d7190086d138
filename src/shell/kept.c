/* kept.c - see kept.h. */
#include "shell/kept.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "shell/kernel.h"

#define KEPT_FROM 700 /* above what scripts use */

bool kept_note(struct kept *k)
{
    struct stat st;

    if (sys(SYS_fstat, k->fd, (long)&st, 0, 0) < 0)
        return false;
    k->dev = st.st_dev;
    k->ino = st.st_ino;
    return true;
}

bool kept_is_valid(const struct kept *k)
{
    struct stat st;

    return k->fd >= 0 && sys(SYS_fstat, k->fd, (long)&st, 0, 0) == 0 && st.st_dev == k->dev &&
           st.st_ino == k->ino;
}

bool kept_put(struct kept *k, int fd)
{
    int from = KEPT_FROM;

    do { /* ulimit -n may be lower */
        k->fd = (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from, 0);
        from = from > 10 ? 10 : from - 1;
    } while (k->fd < 0 && from >= 3);
    close_fd(fd);
    return kept_note(k);
}
