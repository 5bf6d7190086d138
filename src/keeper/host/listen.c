/* listen.c - the listening socket. Opened by the keeper, so that it stays open when a front ends.
 */
#include "keeper/host/listen.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

#define LISTEN_BACKLOG 1024
#define LISTEN_STEP_MS 20
#define LISTEN_WAIT_MS 3000 /* for the old owner of the port to end */

static int split(const char *text, char host[256], char port[16], struct err *e)
{
    const char *colon = strrchr(text, ':');
    uint64_t n;

    if (colon == NULL || colon == text || str_u64(colon + 1, 65535, &n) < 0 ||
        (size_t)(colon - text) > 255)
        return err_set(e, ERR_INVALID, "--listen: '%s' is not ADDRESS:PORT", text);
    if (text[0] == '[' && colon[-1] == ']')
        str_fmt(host, 256, "%.*s", (int)(colon - text - 2), text + 1);
    else
        str_fmt(host, 256, "%.*s", (int)(colon - text), text);
    str_fmt(port, 16, "%u", (unsigned)n);
    return 0;
}

static int try_bind(const struct addrinfo *ai)
{
    autofd int fd =
        socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
    int one = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
        return -1;
    return take_fd(&fd);
}

int listen_open(struct keeper *k, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *ai;
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);
    char name[256], port[16];
    const char *host = name;
    int r;

    if (split(k->config.listen, name, port, e) < 0)
        return -1;
    r = getaddrinfo(host, port, &hints, &ai);
    if (r != 0)
        return err_set(e, ERR_INVALID, "--listen %s: %s", k->config.listen, gai_strerror(r));
    k->listen_fd = try_bind(ai);
    for (int waited = 0; k->listen_fd < 0 && errno == EADDRINUSE && waited < LISTEN_WAIT_MS;
         waited += LISTEN_STEP_MS) {
        poll(NULL, 0, LISTEN_STEP_MS);
        k->listen_fd = try_bind(ai);
    }
    freeaddrinfo(ai);
    if (k->listen_fd < 0 && errno == EADDRINUSE)
        return err_set(e, ERR_CONFLICT, "listen on %s: the port is in use by another program",
                       k->config.listen);
    if (k->listen_fd < 0)
        return err_sys(e, "listen on %s", k->config.listen);
    if (getsockname(k->listen_fd, (struct sockaddr *)&a, &len) == 0)
        getnameinfo((struct sockaddr *)&a, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        host = "127.0.0.1";
    str_fmt(k->url, sizeof(k->url), strchr(host, ':') ? "http://[%.80s]:%s" : "http://%.80s:%s",
            host, port);
    return 0;
}
