/* kernel.h - a few system calls without libc: we are linked to none, and errno is bash's. On
 * failure they return -errno. */
#ifndef SHELL_KERNEL_H
#define SHELL_KERNEL_H

#include <sys/syscall.h>

#define NEG_EINTR (-4)

static inline long sys(long nr, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return ret;
}

static inline int open_at(int at, const char *path, int flags)
{
    long fd;

    do
        fd = sys(SYS_openat, at, (long)path, flags, 0);
    while (fd == NEG_EINTR);
    return (int)fd;
}

static inline void close_fd(int fd)
{
    sys(SYS_close, fd, 0, 0, 0);
}

#endif
