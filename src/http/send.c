/* send.c - output: gathered, sent in as few system calls as possible, and
 * queued until the kernel takes it. */
#include <errno.h>

#include "base/own.h"
#include "http/conn.h"

static size_t total(const struct iovec *iov, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += iov[i].iov_len;
    return sum;
}

static void keep(struct http_conn *c, const struct iovec *iov, size_t n, size_t skip)
{
    for (size_t i = 0; i < n; i++) {
        size_t gone = skip < iov[i].iov_len ? skip : iov[i].iov_len;

        skip -= gone;
        if (gone < iov[i].iov_len)
            buf_add(&c->out, (const char *)iov[i].iov_base + gone, iov[i].iov_len - gone);
    }
    if (c->out.failed)
        http_conn_break(c); /* the writer ignored its backlog, or no memory */
}

void http_send_now(struct http_conn *c, const struct iovec *iov, size_t n)
{
    struct iovec v[HTTP_PIECES_MAX + 3] = {{.iov_base = buf_data(&c->out), .iov_len = c->out.len}};
    size_t had = c->out.len, k = had > 0, from_out;
    struct msghdr m = {.msg_iov = v};
    ssize_t sent;

    if (c->broken || had + total(iov, n) == 0)
        return;
    if (c->blocked) {
        keep(c, iov, n, 0);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[k++] = iov[i];
    m.msg_iovlen = k;
    do
        sent = sendmsg(c->io.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN) {
        http_conn_break(c);
        return;
    }
    sent = sent < 0 ? 0 : sent;
    from_out = (size_t)sent < had ? (size_t)sent : had;
    buf_consume(&c->out, from_out);
    keep(c, iov, n, (size_t)sent - from_out);
    if (c->out.len == 0) {
        c->send_due_ns = 0;
        if (c->out.cap > 4 * HTTP_BACKLOG_HIGH)
            buf_free(&c->out);
        return;
    }
    /* the peer has HTTP_SEND_MS from the last byte that the kernel took */
    http_conn_deadline(c, &c->send_due_ns, HTTP_SEND_MS);
    c->blocked = true;
    if (c->out.len > HTTP_BACKLOG_LOW)
        c->req.above_low = true;
    http_conn_kick(c);
}

void http_send_flush(struct http_conn *c)
{
    http_send_now(c, NULL, 0);
}

void http_send(struct http_conn *c, const struct iovec *iov, size_t n)
{
    if (!c->blocked && c->out.len + total(iov, n) >= HTTP_CORK_MAX) {
        http_send_now(c, iov, n);
        return;
    }
    keep(c, iov, n, 0);
    if (c->out.len > HTTP_BACKLOG_LOW)
        c->req.above_low = true;
    http_conn_kick(c);
}
