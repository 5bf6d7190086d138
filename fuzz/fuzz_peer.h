/* fuzz_peer.h - one conversation with the real server over a socketpair. */
#ifndef FUZZ_PEER_H
#define FUZZ_PEER_H

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "fuzz.h"
#include "http/http.h"

static unsigned fuzz_ws_closes;

static void fuzz_on_message(struct http_ws *ws, bool binary, const char *p, size_t n, void *arg)
{
    (void)arg;
    FUZZ_MUST(n <= HTTP_WS_MESSAGE_MAX);
    http_ws_send(ws, binary, p, n);
    if (n > 0 && p[0] == 'Q')
        http_ws_close(ws, 1000, "asked to");
}

static void fuzz_on_close(struct http_ws *ws, int code, void *arg)
{
    (void)ws, (void)code, (void)arg;
    fuzz_ws_closes++;
}

static const struct http_ws_ops fuzz_ws_ops = {.on_message = fuzz_on_message,
                                               .on_close = fuzz_on_close};

static void fuzz_turns(struct loop *loop, int fd)
{
    static char drop[65536];
    struct err e;

    for (int i = 0; i < 4; i++) {
        FUZZ_MUST(loop_turn(loop, 0, &e) == 0);
        while (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0)
            continue;
    }
}

static void fuzz_say(struct loop *loop, int fd, const void *p, size_t n)
{
    if (n > 0 && send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
    fuzz_turns(loop, fd);
}

/* Sends `before` and the input, in two pieces, and closes. */
static void fuzz_converse(void (*on_request)(void *arg, struct http_req *r), const char *before,
                          const uint8_t *data, size_t n)
{
    struct http_server_opts opts = {.listen_fd = -1, .on_request = on_request};
    struct http_server *s;
    struct loop *loop;
    struct err e;
    size_t half = n / 2;
    int fd[2];

    log_open("fuzz", LOG_LEVEL_ERROR);
    clock_hold(1000000000, 1700000000000);
    FUZZ_MUST(loop_new(&loop, &e) == 0);
    opts.loop = loop;
    FUZZ_MUST(http_server_new(&opts, &s, &e) == 0);
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) == 0);
    FUZZ_MUST(http_server_adopt(s, fd[0], &e) == 0);
    fuzz_say(loop, fd[1], before, strlen(before));
    fuzz_say(loop, fd[1], data, half);
    fuzz_say(loop, fd[1], data + half, n - half);
    drop_fd(&fd[1]);
    for (int i = 0; i < 4; i++)
        FUZZ_MUST(loop_turn(loop, 0, &e) == 0);
    FUZZ_MUST(http_server_conns(s) == 0);
    http_server_free(s);
    loop_free(loop);
}

#endif
