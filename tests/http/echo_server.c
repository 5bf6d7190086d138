/* echo_server.c - the HTTP server alone, for strict.test.mjs.
 *
 * Listens on 127.0.0.1 at the port given (0: any), prints the port, answers every
 * request with its method, path and length of body, and ends when its standard
 * input does, so that it cannot outlive the test that started it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"
#include "base/str.h"
#include "http/http.h"

#define BODY_MAX (8u << 20)

static void echo(struct http_req *r, struct buf *body, void *arg)
{
    const struct http_head *h = http_head(r);
    autobuf struct buf out = BUF_INIT(HTTP_HEAD_MAX);

    (void)arg;
    buf_addf(&out, "%s %s %zu\n", h->method.p, h->path.p, body->len);
    http_reply(r, 200, "text/plain", buf_data(&out), out.len);
}

static void on_request(void *arg, struct http_req *r)
{
    http_body_collect(r, BODY_MAX, echo, arg);
}

static int listen_on(uint64_t port, struct err *e)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof(a);
    autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return err_sys(e, "listen on port %u", (unsigned)port);
    printf("%u\n", ntohs(a.sin_port));
    fflush(stdout);
    return take_fd(&fd);
}

static struct loop *loop;

static void on_stdin(struct loop_io *io, uint32_t events)
{
    char drop[64];

    (void)events;
    if (read(io->fd, drop, sizeof(drop)) <= 0)
        loop_stop(loop);
}

static int serve(int fd, struct err *e)
{
    struct http_server_opts opts = {.listen_fd = fd, .on_request = on_request};
    struct http_server *s = NULL;
    struct loop_io in = {.fd = -1};
    int r = loop_new(&loop, e);

    opts.loop = loop;
    if (r == 0)
        r = http_server_new(&opts, &s, e);
    if (r == 0)
        r = loop_io_start(loop, &in, STDIN_FILENO, EPOLLIN, on_stdin, e);
    if (r == 0)
        r = loop_run(loop, e);
    http_server_free(s);
    loop_free(loop);
    return r;
}

int main(int argc, char **argv)
{
    struct err e;
    uint64_t port = 0;
    autofd int fd = -1;

    if (argc > 1 && str_u64(argv[1], 65535, &port) < 0)
        return 64;
    fd = listen_on(port, &e);
    if (fd < 0 || serve(fd, &e) < 0) {
        fprintf(stderr, "echo_server: %s\n", e.msg);
        return 70;
    }
    return 0;
}
