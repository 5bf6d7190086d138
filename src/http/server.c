/* server.c - accepts, counts and drains connections. */
#include "http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

#define ACCEPT_BATCH 64       /* a flood of connects must not starve other connections */
#define ACCEPT_RETRY_MS 100   /* when the host has no fd or no memory for another one */
#define CONNS_REFUSED_MAX 256 /* answered 503 at the same time; above, closed without an answer */

static void on_listen(struct loop_io *io, uint32_t events);

int http_server_new(const struct http_server_opts *opts, struct http_server **ret, struct err *e)
{
    static const struct {
        int level, name, value;
    } inherited[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 60}, {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
    };
    struct http_server *s = mem_zeroed(1, sizeof(*s));

    s->opts = *opts;
    if (s->opts.conns_max == 0)
        s->opts.conns_max = HTTP_CONNS_MAX;
    list_init(&s->conns);
    list_init(&s->strangers);
    list_init(&s->guests);
    map_init(&s->peers);
    buf_init(&s->event, HTTP_BACKLOG_MAX);
    s->listen.fd = -1;
    if (opts->listen_fd >= 0) {
        /* Inherited by every accepted socket, which saves the calls there. They fail on a unix
         * socket, which has no such options. */
        for (size_t i = 0; i < ARRAY_LEN(inherited); i++)
            setsockopt(opts->listen_fd, inherited[i].level, inherited[i].name, &inherited[i].value,
                       sizeof(inherited[i].value));
        if (loop_io_start(opts->loop, &s->listen, opts->listen_fd, EPOLLIN, on_listen, e) < 0) {
            free(s);
            return -1;
        }
    }
    *ret = s;
    return 0;
}

static void stop_listening(struct http_server *s)
{
    loop_timer_stop(s->opts.loop, &s->retry);
    loop_io_stop(s->opts.loop, &s->listen);
}

void http_server_free(struct http_server *s)
{
    struct http_conn *c;

    if (s == NULL)
        return;
    stop_listening(s);
    s->on_drained = NULL;
    while ((c = LIST_FIRST(&s->conns, struct http_conn, link)) != NULL)
        http_conn_free(c);
    loop_undefer(&s->empty);
    map_free(&s->peers);
    buf_free(&s->event);
    free(s);
}

void http_cut_others(struct http_req *r, const char *whose)
{
    struct http_conn *c, *own = http_conn_of(r);

    LIST_EACH (&own->server->conns, c, struct http_conn, link)
        if (c != own && c->whose != NULL && strcmp(c->whose, whose) == 0)
            http_conn_break(c);
}

size_t http_server_conns(const struct http_server *s)
{
    return s->nconns;
}

/* ---- accepting ---- */

static void on_retry(struct loop_timer *t)
{
    struct http_server *s = CONTAINER_OF(t, struct http_server, retry);

    loop_io_set(s->opts.loop, &s->listen, EPOLLIN);
}

int http_server_adopt(struct http_server *s, int fd, struct err *e)
{
    if (s->nconns >= s->opts.conns_max + CONNS_REFUSED_MAX) {
        drop_fd(&fd);
        return err_set(e, ERR_UNAVAILABLE, "too many connections");
    }
    return http_conn_new(s, fd, e);
}

static void on_listen(struct loop_io *io, uint32_t events)
{
    struct http_server *s = CONTAINER_OF(io, struct http_server, listen);
    struct err e;

    (void)events;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            if (http_server_adopt(s, fd, &e) < 0)
                log_debug("connection refused: %s", e.msg);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* it stays in the backlog, and epoll would report it in every turn */
            if (!s->full)
                log_warn("accept: %s; trying again every %d ms", strerror(errno), ACCEPT_RETRY_MS);
            s->full = true;
            loop_io_set(s->opts.loop, &s->listen, 0);
            if (loop_timer_set(s->opts.loop, &s->retry, ACCEPT_RETRY_MS, on_retry) < 0)
                on_retry(&s->retry);
            return;
        } else if (errno == EAGAIN) {
            s->full = false;
            return;
        } /* else that connection failed before we accepted it: try the next */
    }
}

/* ---- draining ---- */

static void on_empty(struct loop_later *l)
{
    struct http_server *s = CONTAINER_OF(l, struct http_server, empty);

    if (s->on_drained != NULL)
        s->on_drained(s->drained_arg);
}

void http_server_shrunk(struct http_server *s)
{
    if (s->draining && s->nconns == 0)
        loop_defer(s->opts.loop, &s->empty, on_empty);
}

void http_server_drain(struct http_server *s, void (*done)(void *arg), void *arg)
{
    struct http_conn *c;

    stop_listening(s);
    s->draining = true;
    s->on_drained = done;
    s->drained_arg = arg;
    LIST_EACH (&s->conns, c, struct http_conn, link) {
        if (c->phase == PHASE_WS)
            http_ws_goodbye(c);
        else if (c->phase == PHASE_TUNNEL || http_conn_is_idle(c))
            http_conn_break(c);
    }
    http_server_shrunk(s);
}

/* ---- for answers ---- */

void http_server_next_id(struct http_server *s, char out[HTTP_ID_MAX])
{
    out[0] = 'r';
    out[1 + str_dec(out + 1, ++s->last_id)] = '\0';
}

const char *http_server_date(struct http_server *s)
{
    uint64_t now = clock_real_ms() / 1000;
    time_t t = (time_t)now;
    struct tm tm;

    if (now != s->date_s) {
        gmtime_r(&t, &tm);
        strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        s->date_s = now;
    }
    return s->date;
}
