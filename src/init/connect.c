/* connect.c - a connection to a port inside, made here and passed out: who listens
 * there sees a peer of its own loopback, and no path leads in from outside. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "init/serve_state.h"
#include "init/wait.h"

struct dial {
    struct conn *conn;
    unsigned port, next; /* which address comes now */
    struct loop_io io;
    int fd;
};

static void dial_next(struct dial *d);

/* Both names are zeroed first: what the kernel does not fill in is the same. */
bool dial_is_self(int fd)
{
    static const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t len = sizeof(own), peer_len = sizeof(peer);

    if (getsockname(fd, (struct sockaddr *)&own, &len) < 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0 || len != peer_len ||
        memcmp(&own, &peer, len) != 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return true;
}

void dial_free(struct dial *d)
{
    if (d == NULL)
        return;
    loop_io_stop(d->conn->serve->loop, &d->io);
    drop_fd(&d->fd);
    free(d);
}

static void connected(struct dial *d)
{
    loop_io_stop(d->conn->serve->loop, &d->io);
    conn_pass(d->conn, INIT_FD_SOCKET, take_fd(&d->fd));
}

static void dial_ready(struct loop_io *io, uint32_t events)
{
    struct dial *d = CONTAINER_OF(io, struct dial, io);
    int error = 0;
    socklen_t len = sizeof(error);

    (void)events;
    getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error == 0 && !dial_is_self(d->fd))
        connected(d);
    else
        dial_next(d);
}

/* Only the loopback: a host that is not this sandbox is not reached through here. */
static socklen_t address(unsigned which, unsigned port, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    if (which > 1)
        return 0;
    if (which == 0)
        memcpy(ret, &v4, sizeof(v4));
    else
        memcpy(ret, &v6, sizeof(v6));
    return which == 0 ? sizeof(v4) : sizeof(v6);
}

static void nobody(struct dial *d)
{
    struct err e;

    err_set(&e, ERR_GONE, "nothing listens on port %u", d->port);
    conn_fail(d->conn, &e);
}

static void dial_next(struct dial *d)
{
    struct loop *loop = d->conn->serve->loop;
    struct sockaddr_storage to;
    socklen_t len;
    struct err e;

    loop_io_stop(loop, &d->io);
    while ((len = address(d->next++, d->port, &to)) > 0) {
        drop_fd(&d->fd);
        d->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (d->fd < 0)
            continue;
        if (connect(d->fd, (struct sockaddr *)&to, len) == 0) {
            if (dial_is_self(d->fd))
                continue;
            connected(d);
            return;
        }
        if (errno == EINPROGRESS &&
            loop_io_start(loop, &d->io, d->fd, EPOLLOUT, dial_ready, &e) == 0)
            return;
    }
    nobody(d);
}

void dial_port(struct conn *c, const struct init_connect *m)
{
    struct dial *d = calloc(1, sizeof(*d));
    struct err e;

    if (d == NULL || m->port == 0) {
        free(d);
        err_set(&e, m->port == 0 ? ERR_INVALID : ERR_UNAVAILABLE,
                m->port == 0 ? "port 0 is none" : "out of memory");
        conn_fail(c, &e);
        return;
    }
    *d = (struct dial){.conn = c, .port = m->port, .io.fd = -1, .fd = -1};
    c->dial = d;
    c->talk = TALK_CONNECT;
    wait_deadline(c, m->timeout_ms);
    if (c->talk == TALK_CONNECT)
        dial_next(d);
}
