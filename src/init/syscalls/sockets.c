/* sockets.c - see sockets.h. */
#include "init/syscalls/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define TEXT_MAX 16384u             /* a line for each of some thirty protocols */
#define JOINS_TEXT_MAX (128u << 10) /* more than SOCKETS_JOINS_MAX lines */
#define TCP_LISTEN_STATE 10

/* ---- kinds that are not counted ---- */

static bool is_uncounted(const char *protocol)
{
    static const char *const kinds[] = {"NETLINK", "PACKET", "RAW", "RAWv6", "PING", "PINGv6"};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(protocol, kinds[i]) == 0)
            return true;
    return false;
}

static char *next_word(char **at)
{
    char *word;

    do
        word = strsep(at, " ");
    while (word != NULL && *word == '\0');
    return word != NULL ? word : (char *)"";
}

/* "NAME SIZE SOCKETS ..." */
static uint64_t count_line(char *line)
{
    bool counts = is_uncounted(next_word(&line));
    uint64_t n = 0;

    next_word(&line);
    return counts && str_u64(next_word(&line), UINT32_MAX, &n) == 0 ? n : 0;
}

size_t sockets_count(char *text)
{
    size_t n = 0;
    char *line;

    while ((line = strsep(&text, "\n")) != NULL)
        n += count_line(line);
    return n;
}

/* As much as fits, with a NUL; -1: it is not there. */
static ssize_t read_text(const char *path, char *out, size_t room)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    while (fd >= 0 && len < room - 1 && (n = read(fd, out + len, room - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = '\0';
    return fd < 0 ? -1 : (ssize_t)len;
}

static uint64_t scaled(uint64_t memory, uint64_t each, uint64_t least, uint64_t most)
{
    uint64_t n = memory / each;

    return n < least ? least : n > most ? most : n;
}

/* A sixteenth of the memory, at twice the default buffer each. */
static uint64_t uncounted_max(uint64_t memory)
{
    return scaled(memory, (uint64_t)SOCKETS_UNCOUNTED_BUFFER * 4 * 16, SOCKETS_UNCOUNTED_LEAST,
                  SOCKETS_UNCOUNTED_MAX);
}

int sockets_on_socket(const struct caller *c)
{
    char text[TEXT_MAX];

    if (read_text("/proc/net/protocols", text, sizeof(text)) < 0 ||
        sockets_count(text) >= uncounted_max(c->memory))
        return -ENOBUFS;
    return CALLER_CONTINUE;
}

/* ---- listeners ---- */

struct listeners {
    unsigned n, waiting; /* waiting: that all of them may have, together */
};

int sockets_diag_open(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* One datagram of the answer. True: it was the last. */
static bool take(const char *data, size_t len, struct listeners *l)
{
    const struct nlmsghdr *h = (const void *)data;

    for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
        const struct inet_diag_msg *m = NLMSG_DATA(h);

        if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
            return true;
        if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
            continue;
        l->n++;
        l->waiting += m->idiag_wqueue;
    }
    return false;
}

/* The kernel has an answer ready before the question returns, so this never waits. */
static void ask(int diag_fd, uint8_t family, struct listeners *l)
{
    struct {
        struct nlmsghdr h;
        struct inet_diag_req_v2 r;
    } q = {.h = {.nlmsg_len = sizeof(q),
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
           .r = {.sdiag_family = family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = 1u << TCP_LISTEN_STATE}};
    _Alignas(16) char data[16384];
    ssize_t n;

    if (send(diag_fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
        return;
    do
        n = recv(diag_fd, data, sizeof(data), MSG_DONTWAIT);
    while (n > 0 && !take(data, (size_t)n, l));
}

static struct listeners count_listeners(const struct caller *c)
{
    struct listeners l = {0};

    if (c->diag_fd >= 0) {
        ask(c->diag_fd, AF_INET, &l);
        ask(c->diag_fd, AF_INET6, &l);
    }
    return l;
}

unsigned sockets_grant(int backlog, unsigned given, uint64_t memory)
{
    /* an eighth of the memory, at twice the listener's buffer each */
    unsigned most = (unsigned)scaled(memory, (uint64_t)SOCKETS_LISTENER_BUFFER * 2 * 8,
                                     SOCKETS_WAITING_LEAST, SOCKETS_WAITING_MAX);
    unsigned left = given < most ? most - given : 0;
    unsigned want = backlog < 0 || (unsigned)backlog > SOCKETS_WAITING_ONE ? SOCKETS_WAITING_ONE
                                                                           : (unsigned)backlog;

    if (left < SOCKETS_WAITING_REST)
        left = SOCKETS_WAITING_REST;
    return want < left ? want : left;
}

static int option_of(int fd, int name)
{
    socklen_t len = sizeof(int);
    int value = -1;

    return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static bool is_tcp(int fd)
{
    int domain = option_of(fd, SO_DOMAIN);

    return (domain == AF_INET || domain == AF_INET6) && option_of(fd, SO_TYPE) == SOCK_STREAM;
}

/* Past the filter, which is on init too. */
static int set_buffer(const struct caller *c, int fd, int name, int value)
{
    return syscall(SYS_setsockopt, fd, SOL_SOCKET, name, &value, sizeof(value), c->pass) < 0
               ? -errno
               : 0;
}

/* A unix socket must be its caller's own, since a peer sees who listens: the kernel goes on. A
 * thread that puts another socket in its place meanwhile makes one listener too many; and
 * then nothing inside may listen until that is gone. */
int sockets_on_listen(const struct caller *c)
{
    struct listeners now = count_listeners(c);
    autofd int fd = caller_take_fd(c, (int)c->q->data.args[0]);
    int buffer, r;

    if (fd < 0)
        return fd;
    if (!is_tcp(fd))
        return now.n > SOCKETS_LISTENERS_MAX ? -ENOBUFS : CALLER_CONTINUE;
    if (now.n >= SOCKETS_LISTENERS_MAX && option_of(fd, SO_ACCEPTCONN) != 1)
        return -ENOBUFS;
    buffer = option_of(fd, SO_RCVBUF) / 2;
    if (buffer > (int)SOCKETS_LISTENER_BUFFER)
        buffer = (int)SOCKETS_LISTENER_BUFFER;
    r = set_buffer(c, fd, SO_RCVBUF, buffer);
    if (r < 0)
        return r;
    r = (int)sockets_grant((int)c->q->data.args[1], now.waiting, c->memory);
    return syscall(SYS_listen, fd, r, 0, 0, 0, c->pass) < 0 ? -errno : 0;
}

/* ---- options ---- */

static int buffer_max(int fd)
{
    int domain = option_of(fd, SO_DOMAIN), type = option_of(fd, SO_TYPE);
    int protocol = option_of(fd, SO_PROTOCOL);

    if (domain == AF_UNIX)
        return INT32_MAX;
    if ((domain != AF_INET && domain != AF_INET6) || (type != SOCK_STREAM && type != SOCK_DGRAM) ||
        protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)
        return SOCKETS_UNCOUNTED_BUFFER;
    return option_of(fd, SO_ACCEPTCONN) == 1 ? (int)SOCKETS_LISTENER_BUFFER : INT32_MAX;
}

/* Too much is cut silently, as the kernel does with what is more than rmem_max. */
static int on_buffer(const struct caller *c)
{
    autofd int fd = caller_take_fd(c, (int)c->q->data.args[0]), mem = -1;
    int value, most;

    if (fd < 0)
        return fd;
    if ((int)c->q->data.args[4] < (int)sizeof(value))
        return -EINVAL;
    mem = caller_open_mem(c);
    if (mem < 0 || !caller_waits(c) ||
        pread(mem, &value, sizeof(value), (off_t)c->q->data.args[3]) != (ssize_t)sizeof(value))
        return -EFAULT;
    most = buffer_max(fd);
    return set_buffer(c, fd, (int)c->q->data.args[2], value > most ? most : value);
}

static uint64_t join_line(char *line)
{
    int column = *line == '\t' ? 2 : 4;
    uint64_t n = 0;
    char *word = line;

    line += strspn(line, "\t");
    while (column-- > 0)
        word = next_word(&line);
    return str_u64(word, UINT32_MAX, &n) == 0 ? n : 0;
}

size_t sockets_count_joins(char *text)
{
    size_t n = 0;
    char *line;

    while ((line = strsep(&text, "\n")) != NULL)
        n += join_line(line);
    return n;
}

static int on_join(void)
{
    static const char *const files[] = {"/proc/net/igmp", "/proc/net/igmp6", "/proc/net/anycast6"};
    static char text[JOINS_TEXT_MAX];
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (read_text(files[i], text, sizeof(text)) > 0) /* none: no such protocol */
            n += sockets_count_joins(text);
    return n < SOCKETS_JOINS_MAX ? CALLER_CONTINUE : -ENOBUFS;
}

int sockets_on_option(const struct caller *c)
{
    return (int)c->q->data.args[1] == SOL_SOCKET ? on_buffer(c) : on_join();
}
