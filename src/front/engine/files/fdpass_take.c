/* fdpass_take.c - see fdpass_take.h. */
#include "front/engine/files/fdpass_take.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>

#include "base/own.h"

#define FDS_MAX 4 /* taken in at a time; one is what we want, the rest is closed */

static const char *vet_file(int fd, bool any_file, struct stat *st)
{
    struct statfs fs;

    if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
        return "not a regular file";
    if (!any_file && (fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC))
        return "not a file of the sandbox's root";
    return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? NULL : "not open for reading";
}

static int option(int fd, int name)
{
    int v = -1;
    socklen_t len = sizeof(v);

    return getsockopt(fd, SOL_SOCKET, name, &v, &len) < 0 ? -1 : v;
}

/* Also for refused sockets: SO_LINGER off, so that close() does not wait. */
static const char *vet_socket(int fd)
{
    struct linger none = {0};
    int domain = option(fd, SO_DOMAIN);

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    if ((domain != AF_INET && domain != AF_INET6) || option(fd, SO_TYPE) != SOCK_STREAM ||
        option(fd, SO_PROTOCOL) != IPPROTO_TCP)
        return "not a TCP socket";
    return NULL;
}

static void take(struct fd_taking *t, int fd)
{
    const char *linger = vet_socket(fd);

    if (t->passed >= 0) {
        t->overfull = true;
        close(fd);
        return;
    }
    t->passed = fd;
    t->wrong = t->want == INIT_FD_SOCKET ? linger : vet_file(fd, t->any_file, &t->st);
}

static void take_all(struct fd_taking *t, struct msghdr *m)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
            take(t, fd);
        }
    }
    t->overfull |= (m->msg_flags & MSG_CTRUNC) != 0;
}

/* What the kernel cannot hand over it closes, here in recvmsg(): why this is a thread. */
void fd_take(struct fd_taking *t)
{
    while (t->got < FD_ANSWER_MAX) {
        struct iovec iov = {t->bytes + t->got, FD_ANSWER_MAX - t->got};
        union {
            struct cmsghdr align;
            char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
        } control;
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
        ssize_t n = recvmsg(t->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0)
            take_all(t, &m);
        t->closed = n <= 0;
        if (t->closed)
            return;
        t->got += (size_t)n;
    }
}

void fd_let_go(int *fd)
{
    if (*fd >= 0)
        vet_socket(*fd);
    drop_fd(fd);
}
