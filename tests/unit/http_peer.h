/* http_peer.h - a server and one client on the two ends of a socketpair.
 *
 * Nothing here waits: settle() turns the loop until it has nothing left to do,
 * and time passes only when pass_ms() says so. */
#ifndef HTTP_PEER_H
#define HTTP_PEER_H

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "http/http.h"

static struct loop *loop;
static struct http_server *server;
static struct err e;
static int peer = -1; /* the client's end */
static struct buf got = BUF_INIT(256u << 20);
static bool closed; /* by the server */
static uint64_t now_ns;
static void (*handler)(struct http_req *r);

static void dispatch(void *arg, struct http_req *r)
{
    (void)arg;
    handler(r);
}

static inline void turn(void)
{
    CHECK_INT(loop_turn(loop, 0, &e), 0);
}

static inline void settle(void)
{
    for (int i = 0; i < 12; i++)
        turn();
}

static inline int connect_peer(void)
{
    int fd[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    CHECK_INT(http_server_adopt(server, fd[0], &e), 0);
    return fd[1];
}

static inline void hold_time(void)
{
    now_ns = 1000000000;
    clock_hold(now_ns, 1700000000000);
}

/* The server and its client on `loop`, which is set. */
static inline void serve_begin(void (*h)(struct http_req *r), size_t conns_max)
{
    struct http_server_opts opts = {
        .loop = loop, .listen_fd = -1, .on_request = dispatch, .conns_max = conns_max};

    CHECK_INT(http_server_new(&opts, &server, &e), 0);
    handler = h;
    closed = false;
    buf_clear(&got);
    peer = connect_peer();
}

static inline void begin_with(void (*h)(struct http_req *r), size_t conns_max)
{
    hold_time();
    CHECK_INT(loop_new(&loop, &e), 0);
    serve_begin(h, conns_max);
}

static inline void begin(void (*h)(struct http_req *r))
{
    begin_with(h, 0);
}

static inline void serve_end(void)
{
    http_server_free(server);
    server = NULL;
    drop_fd(&peer);
    settle();
    buf_free(&got);
}

static inline void end(void)
{
    serve_end();
    loop_free(loop);
    clock_release();
}

static inline void pass_ms(uint64_t ms)
{
    now_ns += ms * 1000000;
    clock_hold(now_ns, 1700000000000);
    settle();
}

/* All that has arrived so far, as a string; sets `closed` at the end. */
static inline const char *heard(void)
{
    ssize_t n;

    do {
        char *room = buf_room(&got, 65536);

        CHECK(room != NULL);
        n = recv(peer, room, 65536, 0);
        if (n > 0)
            buf_added(&got, (size_t)n);
        turn();
    } while (n > 0);
    closed |= n == 0 || (n < 0 && errno != EAGAIN);
    return buf_cstr(&got);
}

static inline void say_n(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(peer, p, n, MSG_NOSIGNAL);

        CHECK(sent > 0 || (sent < 0 && errno == EAGAIN));
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
        turn();
    }
    settle();
}

static inline void say(const char *text)
{
    say_n(text, strlen(text));
}

/* Clears the input, sends `text`, and returns the answer. */
static inline const char *ask(const char *text)
{
    buf_clear(&got);
    say(text);
    return heard();
}

#endif
