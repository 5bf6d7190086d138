/* fakeinit.c - what a tenant who has taken over init could say to the front.
 *
 *   fakeinit PATH MODE     serves the socket at PATH, on the host, until killed
 *
 * Frames are as in src/wire/wire.h: u32 length, u16 type, u16 zero, u32 seq. */
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "attack.h"

#define HELLO 1
#define OUTPUT 5
#define EXIT 7

static char big[1 << 18];

static void frame(int fd, uint32_t len, uint16_t type, uint32_t seq, const void *body, size_t n)
{
    struct {
        uint32_t len;
        uint16_t type, zero;
        uint32_t seq;
    } h = {len, type, 0, seq};

    send(fd, &h, sizeof(h), MSG_NOSIGNAL);
    if (n > 0)
        send(fd, body, n, MSG_NOSIGNAL);
}

static void hello(int fd, uint32_t version)
{
    struct __attribute__((packed)) {
        uint32_t version, len;
        char boot[36];
        uint64_t ms;
    } m = {version, 36, "00000000-0000-4000-8000-000000000000", 1};

    frame(fd, sizeof(m), HELLO, 0, &m, sizeof(m));
}

/* The seq of what the front asked, to answer something that looks like an answer. */
static uint32_t asked(int fd)
{
    uint32_t h[3] = {0};

    if (recv(fd, h, sizeof(h), MSG_WAITALL) != (ssize_t)sizeof(h))
        _exit(0);
    return h[2];
}

static void garbage(int fd)
{
    int r = open("/dev/urandom", O_RDONLY);

    for (int i = 0; i < 64 && read(r, big, 4096) > 0; i++)
        if (send(fd, big, 4096, MSG_NOSIGNAL) < 0)
            return;
}

static void giant(int fd)
{
    frame(fd, 0xffffffffu, HELLO, 0, big, sizeof(big));
}

static void almost(int fd)
{
    hello(fd, 1);
    frame(fd, 4u << 20, OUTPUT, asked(fd), big, sizeof(big));
    pause();
}

static void silent(int fd)
{
    (void)fd;
    pause();
}

static void leaving(int fd)
{
    close(fd);
}

static void tomorrow(int fd)
{
    hello(fd, 4000);
    pause();
}

static void twice(int fd)
{
    hello(fd, 1);
    for (int i = 0; i < 1000; i++)
        hello(fd, 1);
    pause();
}

/* Output without end, to a question that had none. */
static void flood(int fd)
{
    struct __attribute__((packed)) {
        uint64_t pos;
        uint32_t stream, len;
        char data[65536];
    } *m = calloc(1, sizeof(*m));
    uint32_t seq;

    hello(fd, 1);
    seq = asked(fd);
    m->stream = 1;
    m->len = sizeof(m->data);
    for (;;) {
        struct {
            uint32_t len;
            uint16_t type, zero;
            uint32_t seq;
        } h = {sizeof(*m), OUTPUT, 0, seq};

        if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) < 0 || send(fd, m, sizeof(*m), MSG_NOSIGNAL) < 0)
            return;
        m->pos += m->len;
    }
}

/* Every type there could be, with nothing, nonsense, and lengths that lie. */
static void nonsense(int fd)
{
    uint32_t seq;

    hello(fd, 1);
    seq = asked(fd);
    memset(big, 0xff, 64);
    frame(fd, 64, EXIT, seq, big, 64);
    for (uint16_t type = 0; type < 64; type++) {
        frame(fd, 0, type, seq, NULL, 0);
        frame(fd, 64, type, seq, big, 64);
    }
    pause();
}

/* Sockets that block the thread that closes them, and many of everything else. */
static void fds(int fd)
{
    struct linger l = {.l_onoff = 1, .l_linger = 30};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(100 * sizeof(int))];
    } c = {0};
    struct iovec iov = {(char[1]){0}, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    int all[100], s = socket(AF_INET, SOCK_STREAM, 0), on = socket(AF_INET, SOCK_STREAM, 0);

    bind(s, (struct sockaddr *)&a, len);
    listen(s, 1);
    getsockname(s, (struct sockaddr *)&a, &len);
    connect(on, (struct sockaddr *)&a, len);
    fcntl(on, F_SETFL, O_NONBLOCK);
    while (send(on, big, sizeof(big), MSG_NOSIGNAL) > 0)
        continue;
    setsockopt(on, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    for (int i = 0; i < 100; i++)
        all[i] = i % 2 ? on : fd;
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(all));
    memcpy(CMSG_DATA(h), all, sizeof(all));
    hello(fd, 1);
    asked(fd);
    for (int i = 0; i < 50; i++)
        if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0)
            break;
    close(on);
    pause();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int fd);
    } modes[] = {{"garbage", garbage}, {"giant", giant},       {"almost", almost},
                 {"silent", silent},   {"leaving", leaving},   {"tomorrow", tomorrow},
                 {"twice", twice},     {"nonsense", nonsense}, {"flood", flood},
                 {"fds", fds}};
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int l = socket(AF_UNIX, SOCK_STREAM, 0), fd;

    if (argc < 3)
        return 2;
    signal(SIGCHLD, SIG_IGN);
    setpgid(0, 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", argv[1]);
    unlink(argv[1]);
    if (bind(l, (struct sockaddr *)&a, sizeof(a)) < 0 || chmod(argv[1], 0666) < 0 ||
        listen(l, 100) < 0)
        return 1;
    say("ready", "ok");
    while ((fd = accept(l, NULL, NULL)) >= 0) {
        if (fork() == 0)
            for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
                if (strcmp(argv[2], modes[i].name) == 0) {
                    modes[i].run(fd);
                    _exit(0);
                }
        close(fd);
    }
    return 1;
}
