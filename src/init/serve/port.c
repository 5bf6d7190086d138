/* port.c - TCP ports inside: waiting until a server listens (and answers HTTP as wanted), and
 * connecting to one to pass the socket out. The server sees a peer of its own loopback; no
 * path leads in from outside. Only the loopback is ever dialled, 127.0.0.1 and then ::1. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/own.h"
#include "init/serve/internal.h"

#define FAMILIES 2 /* a server may listen on either */
#define WAIT_RETRY_MS 25u
#define WAIT_HTTP_MS 5000u /* a server that has not answered by then is asked again */

static socklen_t loopback(unsigned family, unsigned port, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    memcpy(ret, family == 0 ? (void *)&v4 : (void *)&v6, family == 0 ? sizeof(v4) : sizeof(v6));
    return family == 0 ? sizeof(v4) : sizeof(v6);
}

/* Connecting to a port on which no server listens can succeed: the kernel may choose that
 * very port for our end, and TCP then connects the socket to itself. True for such a socket;
 * closing it then leaves nothing that would keep a server from the port. Both names are zeroed
 * first: bytes that the kernel does not fill in are equal. */
static bool is_self(int fd)
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

enum dialled { DIAL_FAILED, DIAL_STARTED, DIAL_CONNECTED };

static enum dialled dial(unsigned family, unsigned port, int *ret_fd)
{
    struct sockaddr_storage to;
    socklen_t len = loopback(family, port, &to);

    *ret_fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0)
        return DIAL_FAILED;
    if (connect(*ret_fd, (struct sockaddr *)&to, len) == 0)
        return is_self(*ret_fd) ? DIAL_FAILED : DIAL_CONNECTED;
    return errno == EINPROGRESS ? DIAL_STARTED : DIAL_FAILED;
}

/* A dial that had started came to an end. */
static bool has_connected(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    return error == 0 && !is_self(fd);
}

/* ---- one HTTP request ---- */

bool probe_path_is_valid(const char *path)
{
    size_t n = 0;

    for (; path[n] != '\0'; n++)
        if ((unsigned char)path[n] <= ' ' || (unsigned char)path[n] >= 0x7f || path[n] == '#')
            return false;
    return path[0] == '/' && n <= PROBE_PATH_MAX;
}

void probe_request(struct buf *out, const char *path, unsigned port)
{
    buf_addf(out,
             "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: cove\r\nAccept: */*\r\n"
             "Connection: close\r\n\r\n",
             path, port);
}

int probe_status(const char *p, size_t n)
{
    static const char form[] = "HTTP/1.# ### "; /* '#' stands for a digit */
    size_t last = sizeof(form) - 2;

    for (size_t i = 0; i < n && i < last; i++)
        if (form[i] == '#' ? p[i] < '0' || p[i] > '9' : p[i] != form[i])
            return -1;
    if (n <= last)
        return 0;
    if (p[last] != ' ' && p[last] != '\r') /* some servers omit the reason and the blank */
        return -1;
    return (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
}

/* ---- waiting ---- */

/* Both families are tried in each round. */
struct port_wait {
    struct conn *conn;
    struct loop_timer again;
    unsigned port, status_min, status_max; /* of HTTP, if there is a request */
    struct port_try {
        struct port_wait *wait;
        struct loop_io io;
        int fd;
        uint64_t since_ms;
        char answer[PROBE_ANSWER_MAX];
        size_t got;
    } tries[FAMILIES];
    struct buf request; /* empty: it is enough that a server listens */
};

static void drop_try(struct port_try *t)
{
    loop_io_stop(t->wait->conn->conns->loop, &t->io);
    drop_fd(&t->fd);
}

/* What the server sends is hostile: a dozen bytes of it are looked at. Any other answer than
 * the wanted one: the next round asks again. */
static void try_answered(struct loop_io *io, uint32_t events)
{
    struct port_try *t = CONTAINER_OF(io, struct port_try, io);
    struct port_wait *w = t->wait;
    ssize_t n = recv(t->fd, t->answer + t->got, sizeof(t->answer) - t->got, MSG_DONTWAIT);
    int status;

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    t->got += n > 0 ? (size_t)n : 0;
    status = probe_status(t->answer, t->got);
    if (n > 0 && status == 0)
        return;
    drop_try(t);
    if (status > 0 && (unsigned)status >= w->status_min && (unsigned)status <= w->status_max)
        conn_ok(w->conn, w->port);
}

/* Connected. True: that is enough. The request fits any socket's buffer; if not, the next
 * round tries. */
static bool try_ask(struct port_try *t)
{
    const struct buf *request = &t->wait->request;
    struct loop *loop = t->wait->conn->conns->loop;
    struct err e;

    if (request->len == 0) {
        drop_try(t);
        return true;
    }
    loop_io_stop(loop, &t->io);
    t->got = 0;
    if (send(t->fd, buf_data(request), request->len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
            (ssize_t)request->len ||
        loop_io_start(loop, &t->io, t->fd, EPOLLIN, try_answered, &e) < 0)
        drop_try(t);
    return false;
}

static void try_ready(struct loop_io *io, uint32_t events)
{
    struct port_try *t = CONTAINER_OF(io, struct port_try, io);
    struct port_wait *w = t->wait;

    (void)events;
    if (!has_connected(t->fd))
        drop_try(t);
    else if (try_ask(t))
        conn_ok(w->conn, w->port);
}

/* True when it is connected already, and that is enough. */
static bool try_connect(struct port_wait *w, unsigned family)
{
    struct port_try *t = &w->tries[family];
    struct err e;

    if (t->fd >= 0 && clock_mono_ms() - t->since_ms < WAIT_HTTP_MS)
        return false;
    drop_try(t);
    t->since_ms = clock_mono_ms();
    switch (dial(family, w->port, &t->fd)) {
    case DIAL_CONNECTED:
        return try_ask(t);
    case DIAL_STARTED:
        if (loop_io_start(w->conn->conns->loop, &t->io, t->fd, EPOLLOUT, try_ready, &e) == 0)
            return false;
        break;
    case DIAL_FAILED:
        break;
    }
    drop_try(t);
    return false;
}

static void try_again(struct loop_timer *t)
{
    struct port_wait *w = CONTAINER_OF(t, struct port_wait, again);

    if (try_connect(w, 0) || try_connect(w, 1))
        conn_ok(w->conn, w->port);
    else
        loop_timer_set(w->conn->conns->loop, &w->again, WAIT_RETRY_MS, try_again);
}

void port_wait_pump(struct conn *c)
{
    const struct port_wait *w = c->detail;

    if (c->watch.proc != NULL && c->watch.proc->output == OUTPUT_ENDED)
        conn_fail_with(c, ERR_GONE, "process %s ended before port %u was open",
                       c->watch.proc->record.id, w->port);
}

void port_wait_free(void *detail)
{
    struct port_wait *w = detail;

    for (unsigned i = 0; i < FAMILIES; i++)
        drop_try(&w->tries[i]);
    loop_timer_stop(w->conn->conns->loop, &w->again);
    buf_free(&w->request);
    free(w);
}

void port_wait(struct conn *c, struct proc *p, const struct init_wait_port *m)
{
    struct port_wait *w;

    if (*m->path != '\0' && !probe_path_is_valid(m->path)) {
        conn_fail_with(c, ERR_INVALID,
                       "wait for port %u: '%.80s' is not a path that can be requested; it "
                       "begins with '/' and is ASCII without blanks and '#'",
                       m->port, m->path);
        return;
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        conn_fail_with(c, ERR_UNAVAILABLE, "out of memory");
        return;
    }
    *w = (struct port_wait){.conn = c,
                            .port = m->port,
                            .status_min = m->status_min,
                            .status_max = m->status_max,
                            .request = BUF_INIT(PROBE_PATH_MAX + 256)};
    for (unsigned i = 0; i < FAMILIES; i++)
        w->tries[i] = (struct port_try){.wait = w, .fd = -1};
    if (*m->path != '\0')
        probe_request(&w->request, m->path, m->port);
    conn_begin(c, TALK_PORT, w);
    conn_deadline(c, m->timeout_ms, "port %u", m->port);
    if (c->talk == TALK_PORT && p != NULL)
        conn_watch(c, p, 0);
    if (c->talk == TALK_PORT)
        try_again(&w->again);
}

/* ---- connecting ---- */

struct port_connect {
    struct conn *conn;
    unsigned port, next; /* next: the family to try if this one fails */
    struct loop_io io;
    int fd;
};

static void connect_next(struct port_connect *d);

void port_connect_free(void *detail)
{
    struct port_connect *d = detail;

    loop_io_stop(d->conn->conns->loop, &d->io);
    drop_fd(&d->fd);
    free(d);
}

static void connect_done(struct port_connect *d)
{
    loop_io_stop(d->conn->conns->loop, &d->io);
    conn_pass(d->conn, INIT_FD_SOCKET, take_fd(&d->fd));
}

static void connect_ready(struct loop_io *io, uint32_t events)
{
    struct port_connect *d = CONTAINER_OF(io, struct port_connect, io);

    (void)events;
    if (has_connected(d->fd))
        connect_done(d);
    else
        connect_next(d);
}

static void connect_next(struct port_connect *d)
{
    struct loop *loop = d->conn->conns->loop;
    struct err e;

    loop_io_stop(loop, &d->io);
    while (d->next < FAMILIES) {
        enum dialled r;

        drop_fd(&d->fd);
        r = dial(d->next++, d->port, &d->fd);
        if (r == DIAL_CONNECTED) {
            connect_done(d);
            return;
        }
        if (r == DIAL_STARTED &&
            loop_io_start(loop, &d->io, d->fd, EPOLLOUT, connect_ready, &e) == 0)
            return;
    }
    conn_fail_with(d->conn, ERR_GONE, "nothing listens on port %u", d->port);
}

void port_connect(struct conn *c, const struct init_connect *m)
{
    struct port_connect *d;

    if (m->port == 0) {
        conn_fail_with(c, ERR_INVALID, "connect: port 0 is not a port; 1 to 65535 are");
        return;
    }
    d = calloc(1, sizeof(*d));
    if (d == NULL) {
        conn_fail_with(c, ERR_UNAVAILABLE, "out of memory");
        return;
    }
    *d = (struct port_connect){.conn = c, .port = m->port, .io.fd = -1, .fd = -1};
    conn_begin(c, TALK_CONNECT, d);
    conn_deadline(c, m->timeout_ms, "port %u to accept a connection", m->port);
    if (c->talk == TALK_CONNECT)
        connect_next(d);
}
