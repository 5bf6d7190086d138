/* caller.c - see caller.h. */
#include "init/syscalls/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

int caller_open_mem(const struct caller *c)
{
    char path[32];

    str_fmt(path, sizeof(path), "/proc/%u/mem", c->q->pid);
    return open(path, O_RDWR | O_CLOEXEC);
}

int caller_waits(const struct caller *c)
{
    return ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->q->id) == 0;
}

/* The call came from a thread, and a pidfd is of a process (PIDFD_THREAD is of Linux 6.9). A
 * thread with a table of fds of its own would have another's used: only itself is deceived. */
static int process_of(uint32_t tid)
{
    char path[32], text[1024], *at;
    autofd int fd = -1;
    ssize_t n;

    str_fmt(path, sizeof(path), "/proc/%u/status", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    at = strstr(text, "\nTgid:");
    return at == NULL ? -1 : atoi(at + strlen("\nTgid:"));
}

int caller_take_fd(const struct caller *c, int fd)
{
    int pid = process_of(c->q->pid), got;
    autofd int pidfd = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0 || !caller_waits(c))
        return -ESRCH;
    got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    return got < 0 ? -errno : got;
}
