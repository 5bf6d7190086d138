/* fds.c - see fds.h. */
#include "wire/fds.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union room {
    struct cmsghdr align;
    char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

int fds_send(int sock, const void *msg, size_t len, const int *fds, size_t nfds, int flags)
{
    struct iovec iov = {(void *)(uintptr_t)msg, len};
    union room c = {0};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    struct cmsghdr *h = &c.align;

    if (nfds > FDS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (nfds > 0) {
        m.msg_control = &c;
        m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(h), fds, nfds * sizeof(int));
    }
    return sendmsg(sock, &m, MSG_NOSIGNAL | flags) < 0 ? -1 : 0;
}

static int wrong(const struct cmsghdr *h)
{
    int fd;

    for (size_t i = 0; h != NULL && CMSG_LEN((i + 1) * sizeof(int)) <= h->cmsg_len; i++) {
        memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
        close(fd);
    }
    errno = EPROTO;
    return -1;
}

ssize_t fds_receive(int sock, void *msg, size_t room, int *fds, size_t nfds)
{
    struct iovec iov = {msg, room};
    union room c;
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
    struct cmsghdr *h;
    ssize_t n;

    do
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    fds[0] = -1;
    if (n <= 0)
        return n;
    h = CMSG_FIRSTHDR(&m);
    if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return wrong(h);
    if (h == NULL)
        return n;
    if (h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(nfds * sizeof(int)))
        return wrong(h);
    memcpy(fds, CMSG_DATA(h), nfds * sizeof(int));
    return n;
}
