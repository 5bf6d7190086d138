/* own.h - the declaration of a variable says who frees it.
 *
 * `autofd int fd` closes and `autofree char *p` frees at the end of the scope;
 * take_fd(&fd) and take_ptr(&p) hand over and empty the variable. errno survives
 * the cleanup, so `return err_sys(...)` may follow anything. */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void own_close(const int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd); /* Linux frees the fd even on EINTR: do not retry */
    errno = saved;
}

static inline void own_free(void *p)
{
    int saved = errno;

    free(*(void **)p);
    errno = saved;
}

static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/* Closes the fd if it is open, and sets it to -1. */
static inline void drop_fd(int *fd)
{
    own_close(fd);
    *fd = -1;
}

#define autofd __attribute__((cleanup(own_close)))
#define autofree __attribute__((cleanup(own_free)))
#define take_ptr(p)                                                                                \
    ({                                                                                             \
        __typeof__(*(p)) taken_ = *(p);                                                            \
        *(p) = NULL;                                                                               \
        taken_;                                                                                    \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

#endif
