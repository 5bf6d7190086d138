/* inward.c - to the server inside: the body of the request, or the client's half of a tunnel. While the
 * server does not read, the client is not read. */
#include <errno.h>
#include <sys/socket.h>

#include "front/proxy/internal.h"

static void hold_client(struct relay *y, bool hold)
{
    if (y->held == hold)
        return;
    y->held = hold;
    if (y->tunnel != NULL)
        http_tunnel_pause(y->tunnel, hold);
    else if (y->r != NULL)
        http_body_pause(y->r, hold);
}

void relay_watch(struct relay *y)
{
    uint32_t events = (y->blocked ? EPOLLOUT : 0u) | (y->stalled ? 0u : EPOLLIN);

    if (y->up->io.fd >= 0)
        loop_io_set(y->p->loop, &y->up->io, events);
}

/* It may have answered already and closed: what it said still counts, so a failure
 * to send is not the end. */
void inward_flush(struct relay *y)
{
    while (y->out.len > 0 && !y->deaf) {
        ssize_t n = send(y->up->fd, buf_data(&y->out), y->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        y->blocked = n < 0 && errno == EAGAIN;
        if (y->blocked)
            break;
        if (n < 0)
            y->deaf = true;
        else
            buf_consume(&y->out, (size_t)n);
    }
    if (y->out.failed) { /* no memory: it must not take what it got for the whole */
        y->deaf = true;
        shutdown(y->up->fd, SHUT_RDWR);
    }
    if (y->deaf)
        buf_clear(&y->out);
    if (y->out.len == 0) {
        y->blocked = false;
        if (y->whole && !y->half_closed && y->tunnel != NULL) {
            y->half_closed = true;
            shutdown(y->up->fd, SHUT_WR);
        }
    }
    hold_client(y, y->out.len > (y->held ? PROXY_OUT_LOW : PROXY_OUT_HIGH));
    relay_watch(y);
}

static void on_body(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct relay *y = arg;

    (void)r;
    if (y->deaf)
        return;
    if (y->chunked)
        buf_addf(&y->out, "%zx\r\n", n);
    buf_add(&y->out, p, n);
    if (y->chunked)
        buf_adds(&y->out, "\r\n");
    inward_flush(y);
}

static void on_body_end(struct http_req *r, void *arg)
{
    struct relay *y = arg;

    (void)r;
    if (y->chunked)
        buf_adds(&y->out, "0\r\n\r\n");
    y->whole = true;
    inward_flush(y);
}

/* ---- a tunnel ---- */

static void on_tunnel_data(struct http_tunnel *t, const char *p, size_t n, void *arg)
{
    struct relay *y = arg;

    (void)t;
    buf_add(&y->out, p, n);
    inward_flush(y);
}

static void on_tunnel_eof(struct http_tunnel *t, void *arg)
{
    struct relay *y = arg;

    (void)t;
    y->whole = true;
    inward_flush(y);
}

static void on_tunnel_drain(struct http_tunnel *t, void *arg)
{
    (void)t;
    outward_pump(arg);
}

static void on_tunnel_close(struct http_tunnel *t, void *arg)
{
    struct relay *y = arg;

    (void)t;
    y->tunnel = NULL;
    relay_free(y);
}

const struct http_tunnel_ops relay_tunnel = {.on_data = on_tunnel_data,
                                             .on_eof = on_tunnel_eof,
                                             .on_drain = on_tunnel_drain,
                                             .on_close = on_tunnel_close};

void inward_begin(struct relay *y)
{
    if (http_head(y->r)->has_body)
        http_body_stream(y->r, on_body, on_body_end, y);
    inward_flush(y);
}
