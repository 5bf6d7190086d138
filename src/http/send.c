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

/* -1: the peer is gone. */
static ssize_t send_once(int fd, struct iovec *iov, size_t n)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t sent;

    do
        sent = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

static void sent_all(struct http_conn *c)
{
    c->blocked = false;
    c->send_due_ns = 0;
    if (c->out.cap > 4 * HTTP_BACKLOG_HIGH)
        buf_free(&c->out);
}

static void sent_some(struct http_conn *c, bool progress)
{
    if (progress || !c->blocked || c->send_due_ns == 0)
        http_conn_deadline(c, &c->send_due_ns, HTTP_SEND_MS);
    c->blocked = true;
    if (c->out.len > HTTP_BACKLOG_LOW)
        c->req.above_low = true;
    http_conn_kick(c);
}

void http_send_now(struct http_conn *c, const struct iovec *iov, size_t n)
{
    struct iovec v[HTTP_PIECES_MAX + 3] = {{.iov_base = buf_data(&c->out), .iov_len = c->out.len}};
    size_t had = c->out.len, k = had > 0;
    ssize_t sent;

    if (c->broken || had + total(iov, n) == 0)
        return;
    if (c->blocked) {
        keep(c, iov, n, 0);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[k++] = iov[i];
    sent = send_once(c->io.fd, v, k);
    if (sent < 0) {
        http_conn_break(c);
        return;
    }
    buf_consume(&c->out, (size_t)sent < had ? (size_t)sent : had);
    keep(c, iov, n, (size_t)sent < had ? 0 : (size_t)sent - had);
    if (c->out.len == 0)
        sent_all(c);
    else
        sent_some(c, sent > 0);
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
