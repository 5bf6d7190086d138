/* outward.c - the answer of the server inside, parsed and written again to the client. While the client
 * does not read, the server is not read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/own.h"
#include "base/str.h"
#include "front/proxy/internal.h"

#define HEADER_NAME_MAX 256 /* a longer one is not passed on */

/* A page on a path of our own host must not be of its origin: it gets one of its own, by
 * a policy that it cannot change, and leaves no cookie. */
#define PAGE_POLICY "sandbox allow-scripts allow-forms allow-popups"

/* What a browser keeps for the whole host, or asks its user in the name of it. */
static bool is_kept_back(const struct relay *y, const char *name)
{
    static const char *const of_hosts[] = {"Accept-CH",
                                           "Alt-Svc",
                                           "Clear-Site-Data",
                                           "Content-Security-Policy",
                                           "NEL",
                                           "Origin-Agent-Cluster",
                                           "Public-Key-Pins",
                                           "Report-To",
                                           "Reporting-Endpoints",
                                           "Service-Worker-Allowed",
                                           "Set-Cookie",
                                           "Strict-Transport-Security",
                                           "WWW-Authenticate"};

    for (size_t i = 0; y->target.prefix > 0 && i < ARRAY_LEN(of_hosts); i++)
        if (strcasecmp(name, of_hosts[i]) == 0)
            return true;
    return false;
}

/* Connection may come several times, and each lists what is of this connection only. */
static bool is_hop(const struct http_msg *m, const char *head, struct http_span name)
{
    bool hop = request_is_hop(head + name.at, name.len, NULL, 0);

    for (size_t i = 0; i < m->nfields && !hop; i++) {
        struct http_span n = m->fields[i].name, v = m->fields[i].value;

        if (n.len == strlen("connection") && strncasecmp(head + n.at, "connection", n.len) == 0)
            hop = request_is_hop(head + name.at, name.len, head + v.at, v.len);
    }
    return hop;
}

static void add_answer_headers(struct relay *y)
{
    const struct http_msg *m = &y->answer.msg;
    const char *head = buf_data(&y->answer.head);
    char name[HEADER_NAME_MAX], *value;

    if (y->target.prefix > 0) /* first: whatever else there is no room for */
        http_reply_header(y->r, "Content-Security-Policy", PAGE_POLICY);
    for (size_t i = 0; i < m->nfields; i++) {
        struct http_span n = m->fields[i].name, v = m->fields[i].value;

        if (n.len >= sizeof(name) || is_hop(m, head, n))
            continue;
        str_fmt(name, sizeof(name), "%.*s", (int)n.len, head + n.at);
        if (is_kept_back(y, name))
            continue;
        value = strndup(head + v.at, v.len);
        if (value != NULL)
            http_reply_header(y->r, name, value);
        free(value);
    }
}

static void begin_tunnel(struct relay *y)
{
    const char *head = buf_data(&y->answer.head);
    struct http_span upgrade = {0};
    char protocol[256];

    http_field_find(&y->answer.msg, head, "upgrade", &upgrade);
    str_fmt(protocol, sizeof(protocol), "%.*s", upgrade.len < sizeof(protocol) ? upgrade.len : 0,
            head + upgrade.at);
    add_answer_headers(y);
    http_reply_header(y->r, "Connection", "Upgrade");
    http_reply_header(y->r, "Upgrade", protocol);
    y->whole = false;
    y->tunnel = http_tunnel_begin(relay_client_end(y), &relay_tunnel, y);
}

/* Both sides are done with the request, in ways that leave nothing of it in the connection. */
static bool is_reusable(const struct relay *y, size_t left_over)
{
    const struct answer *a = &y->answer;

    return left_over == 0 && a->msg.minor == 1 && !a->msg.close &&
           a->framing != HTTP_BODY_UNTIL_CLOSE && !a->upgrade && !y->deaf && y->out.len == 0 &&
           (y->whole || !http_head(y->r)->has_body) && y->up->io.fd >= 0;
}

/* `left_over`: bytes that came after the answer. */
static void end_answer(struct relay *y, size_t left_over)
{
    if (is_reusable(y, left_over))
        upstream_rest(take_ptr(&y->up));
    http_reply_end(relay_client_end(y));
    relay_free(y);
}

enum step { STEP_MORE, STEP_WAIT, STEP_TUNNEL, STEP_GONE };

static enum step begin(struct relay *y)
{
    const struct answer *a = &y->answer;

    if (a->msg.status != 101) {
        y->begun = true;
        add_answer_headers(y);
        http_reply_bare(y->r);
        if (a->msg.content_length >= 0)
            http_reply_begin_length(y->r, a->msg.status, NULL, (uint64_t)a->msg.content_length);
        else
            http_reply_begin(y->r, a->msg.status, NULL);
        return STEP_MORE;
    }
    begin_tunnel(y);
    if (y->tunnel != NULL)
        return STEP_TUNNEL;
    relay_free(y);
    return STEP_GONE;
}

static enum step step(struct relay *y, const char *p, size_t n, size_t *used)
{
    struct http_str data;
    struct http_fault f;

    switch (answer_next(&y->answer, p, n, used, &data, &f)) {
    case ANSWER_HEAD:
        return begin(y);
    case ANSWER_DATA:
        http_write(y->r, data.p, data.len);
        return STEP_MORE;
    case ANSWER_MORE:
        return STEP_WAIT;
    case ANSWER_END:
        end_answer(y, n - *used);
        return STEP_GONE;
    default:
        relay_fail(y, f.status, f.why);
        return STEP_GONE;
    }
}

/* False: the relay is gone. */
static bool feed(struct relay *y, const char *p, size_t n)
{
    enum step done = y->tunnel != NULL ? STEP_TUNNEL : STEP_MORE;
    size_t used;

    while (done == STEP_MORE) {
        done = step(y, p, n, &used);
        p += used;
        n -= used;
    }
    if (done == STEP_TUNNEL && n > 0)
        http_tunnel_send(y->tunnel, p, n);
    return done != STEP_GONE;
}

static void on_eof(struct relay *y)
{
    struct http_fault f;

    if (y->tunnel != NULL) {
        loop_io_stop(y->p->loop, &y->up->io);
        http_tunnel_end(y->tunnel); /* on_close frees */
    } else if (relay_again(y)) {
        return;
    } else if (answer_eof(&y->answer, &f) == ANSWER_BAD) {
        relay_fail(y, f.status, f.why);
    } else {
        end_answer(y, 1); /* it is closed: not to be used again */
    }
}

static size_t backlog(const struct relay *y)
{
    return y->tunnel != NULL ? http_tunnel_backlog(y->tunnel) : http_backlog(y->r);
}

static void receive(struct relay *y)
{
    ssize_t n = recv(y->up->fd, y->p->read, PROXY_READ, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        if (!relay_again(y))
            relay_fail(y, 502, "the connection to the server in the sandbox broke");
    } else if (n == 0) {
        on_eof(y);
    } else if (feed(y, y->p->read, (size_t)n) && backlog(y) > HTTP_BACKLOG_HIGH) {
        y->stalled = true;
        relay_watch(y);
    }
}

void outward_on_io(struct loop_io *io, uint32_t events)
{
    struct upstream *u = CONTAINER_OF(io, struct upstream, io);
    struct relay *y = u->y;

    if (y == NULL) { /* it was idle: closed, or it sends what no request asked for */
        upstream_free(u);
        return;
    }
    if (events & EPOLLOUT)
        inward_flush(y);
    /* Reported whether we want it or not, and again at once: look away until the
     * client has read what is there. */
    if (y->stalled && (events & (EPOLLHUP | EPOLLERR)))
        loop_io_stop(y->p->loop, io);
    else if (!y->stalled && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        receive(y);
}

/* The client has read: on with it. */
void outward_pump(struct relay *y)
{
    struct err e;

    y->stalled = false;
    if (y->up->io.fd >= 0)
        relay_watch(y);
    else if (loop_io_start(y->p->loop, &y->up->io, y->up->fd, EPOLLIN, outward_on_io, &e) < 0)
        relay_fail(y, 502, "out of memory");
}
