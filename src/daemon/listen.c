/* listen.c - the listening socket. Not opened by the front, so that it stays open when a front ends.
 */
#include "daemon/listen.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define LISTEN_BACKLOG 1024
#define LISTEN_STEP_MS 20
#define LISTEN_WAIT_MS 3000 /* for the old owner of the port to end */
#define LISTEN_HOST_MAX 255

static int split(const char *text, char host[LISTEN_HOST_MAX + 1], char port[16], struct err *e)
{
    const char *colon = strrchr(text, ':');
    uint64_t n;

    if (colon == NULL || colon == text || str_u64(colon + 1, 65535, &n) < 0 ||
        (size_t)(colon - text) > LISTEN_HOST_MAX)
        return err_set(e, ERR_INVALID, "--listen wants ADDRESS:PORT, not '%s'", text);
    if (text[0] == '[' && colon[-1] == ']')
        str_fmt(host, LISTEN_HOST_MAX + 1, "%.*s", (int)(colon - text - 2), text + 1);
    else
        str_fmt(host, LISTEN_HOST_MAX + 1, "%.*s", (int)(colon - text), text);
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

static int bind_patiently(const struct addrinfo *ai)
{
    int fd = try_bind(ai);

    for (int waited = 0; fd < 0 && errno == EADDRINUSE && waited < LISTEN_WAIT_MS;
         waited += LISTEN_STEP_MS) {
        poll(NULL, 0, LISTEN_STEP_MS);
        fd = try_bind(ai);
    }
    return fd;
}

static void url_of(int fd, const char *host, char url[LISTEN_URL_MAX])
{
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);
    char port[16] = "0";

    if (getsockname(fd, (struct sockaddr *)&a, &len) == 0)
        getnameinfo((struct sockaddr *)&a, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        host = "127.0.0.1";
    str_fmt(url, LISTEN_URL_MAX, strchr(host, ':') ? "http://[%.80s]:%s" : "http://%.80s:%s", host,
            port);
}

/* The address of --listen; *ret is for freeaddrinfo(). */
static int look_up(const char *text, char host[LISTEN_HOST_MAX + 1], struct addrinfo **ret,
                   struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[16];
    int r;

    if (split(text, host, port, e) < 0)
        return -1;
    r = getaddrinfo(host, port, &hints, ret);
    return r == 0 ? 0
                  : err_set(e, ERR_INVALID, "--listen %s: %s; expected an address of this host",
                            text, gai_strerror(r));
}

static int in_use(const char *text, struct err *e)
{
    return err_set(e, ERR_CONFLICT, "listen on %s: the port is in use by another program", text);
}

int listen_check(const char *text, bool first, struct err *e)
{
    struct addrinfo *ai;
    char host[LISTEN_HOST_MAX + 1];
    int fd, ret = 0;

    if (look_up(text, host, &ai, e) < 0)
        return -1;
    fd = try_bind(ai);
    if (fd < 0 && errno == EADDRINUSE)
        ret = first ? in_use(text, e) : 0;
    else if (fd < 0)
        ret = err_set(e, ERR_INVALID, "--listen %s: %s", text, strerror(errno));
    drop_fd(&fd);
    freeaddrinfo(ai);
    return ret;
}

int listen_open(const char *text, char url[LISTEN_URL_MAX], struct err *e)
{
    struct addrinfo *ai;
    char host[LISTEN_HOST_MAX + 1];
    int fd;

    if (look_up(text, host, &ai, e) < 0)
        return -1;
    fd = bind_patiently(ai);
    freeaddrinfo(ai);
    if (fd < 0 && errno == EADDRINUSE)
        return in_use(text, e);
    if (fd < 0)
        return err_sys(e, "listen on %s", text);
    url_of(fd, host, url);
    return fd;
}
