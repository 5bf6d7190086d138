/* kmem.c - takes memory that the kernel charges to no cgroup, within bounds of its own: this runs on a
 * machine that others use.
 *
 *   kmem unaccepted N  N listeners, each with connections that are not accepted, filled with data
 *   kmem netlink       netlink sockets with large buffers, filled
 *   kmem joins4|joins6 multicast groups, of many sockets
 *   kmem filters       seccomp filters, one for each of many children
 *   kmem options       options whose memory, or whose number, is the host's
 *   kmem protocols     sockets of protocols that need a module
 *   kmem pairs         socketpair() of families that socket() refuses
 *   kmem btrfs DIR     what btrfs offers in DIR
 *   kmem files         open files, in as many processes as there may be
 *   kmem servers       what honest servers do
 *
 * The first four stay until stdin ends. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "attack.h"

#define UNACCEPTED_BYTES (96ll << 20) /* more than the limits allow, and no more than that */
#define NETLINK_BYTES (96ll << 20)
#define JOINS 4000

static void stay(void)
{
    char c;

    say("full", "ok");
    while (read(0, &c, 1) > 0)
        continue;
}

static int listener(struct sockaddr_in *a, int backlog)
{
    socklen_t len = sizeof(*a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), big = 64 << 20;

    *a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
    if (bind(fd, (struct sockaddr *)a, len) < 0 ||
        getsockname(fd, (struct sockaddr *)a, &len) < 0 || listen(fd, backlog) < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
    return fd;
}

/* A connection that is filled and closed: what was sent lies with the one who did not accept. */
static long long fill(const struct sockaddr_in *a)
{
    static char block[65536];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    long long sent = 0;
    ssize_t n;

    connect(fd, (const struct sockaddr *)a, sizeof(*a));
    if (poll(&p, 1, 200) != 1 || (p.revents & POLLERR) != 0) {
        close(fd);
        return -1; /* the queue is full */
    }
    for (int quiet = 0; quiet < 2; quiet++)
        while ((n = send(fd, block, sizeof(block), MSG_NOSIGNAL)) > 0) {
            sent += n;
            quiet = 0;
        }
    close(fd);
    return sent;
}

static void unaccepted(int most)
{
    long long bytes = 0, conns = 0, listeners = 0, n;
    struct sockaddr_in a;

    for (; listeners < most && listener(&a, 4096) >= 0; listeners++)
        while (bytes < UNACCEPTED_BYTES && (n = fill(&a)) >= 0) {
            bytes += n;
            conns++;
        }
    say("end", listeners < most ? errno_name(errno) : "never");
    say_number("listeners", listeners);
    say_number("connections", conns);
    say_number("bytes", bytes);
    stay();
}

/* Each sends to the next, as much as that takes. */
static void netlink(void)
{
    static char block[65536];
    int fds[4096], n = 0, big = 64 << 20;
    long long bytes = 0;

    for (; n < 4096; n++) {
        struct sockaddr_nl to = {.nl_family = AF_NETLINK};
        socklen_t len = sizeof(to);
        ssize_t sent;

        fds[n] = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_USERSOCK);
        if (fds[n] < 0)
            break;
        setsockopt(fds[n], SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
        setsockopt(fds[n], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
        if (bind(fds[n], (struct sockaddr *)&to, len) < 0 ||
            getsockname(fds[n], (struct sockaddr *)&to, &len) < 0)
            break;
        while (bytes < NETLINK_BYTES && (sent = sendto(fds[n], block, sizeof(block), MSG_DONTWAIT,
                                                       (struct sockaddr *)&to, len)) > 0)
            bytes += sent;
    }
    say("end", n < 4096 ? errno_name(errno) : "never");
    say_number("sockets", n);
    say_number("bytes", bytes);
    stay();
}

static int join4(int fd, int i)
{
    struct ip_mreq r = {.imr_multiaddr.s_addr = htonl(0xe9000000u + (unsigned)i),
                        .imr_interface.s_addr = htonl(INADDR_LOOPBACK)};

    return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &r, sizeof(r));
}

static int join6(int fd, int i)
{
    struct ipv6_mreq r = {.ipv6mr_interface = 1};

    inet_pton(AF_INET6, "ff15::1", &r.ipv6mr_multiaddr);
    r.ipv6mr_multiaddr.s6_addr[8] = (unsigned char)(i >> 8);
    r.ipv6mr_multiaddr.s6_addr[9] = (unsigned char)i;
    return setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &r, sizeof(r));
}

static void joins(int family, int (*join)(int fd, int i))
{
    int fd = -1, n = 0;

    for (; n < JOINS; n++) {
        if (n % 16 == 0)
            fd = socket(family, SOCK_DGRAM, 0);
        if (join(fd, n) < 0)
            break;
    }
    say("end", n < JOINS ? errno_name(errno) : "never");
    say_number("taken", n);
    stay();
}

static int install(int by_prctl)
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {1, code};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0)
                    : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
}

static void filters(void)
{
    int said[2], n = 0, status = 0;
    char c;

    if (pipe(said) < 0)
        return;
    for (; n < 400 && status == 0; n++) {
        if (fork() == 0) {
            for (int i = 0; i < 4; i++)
                if (install(i % 2) < 0)
                    _exit(write(said[1], errno == ENOMEM ? "m" : "e", 1) != 1);
            if (write(said[1], "+", 1) != 1)
                _exit(1);
            pause();
        }
        status = read(said[0], &c, 1) == 1 && c == '+' ? 0 : c;
    }
    say("end", status == 'm' ? "ENOMEM" : status == 'e' ? "other" : "never");
    say_number("processes", n);
    stay();
}

static void files(void)
{
    pid_t pid = 1;

    for (int i = 0; i < 100 && pid > 0; i++)
        pid = fork();
    if (pid == 0) {
        while (open("/dev/null", O_RDONLY) >= 0)
            continue;
        pause();
    }
    for (int i = 0; i < 2000; i++)
        poll(NULL, 0, 1);
}

static int option(int family, int type, int level, int name)
{
    unsigned char data[1024] = {0};
    int fd = socket(family, type, 0), r = setsockopt(fd, level, name, data, sizeof(int)), e = errno;

    close(fd);
    errno = e;
    return r;
}

static void options(void)
{
    static const struct {
        const char *name;
        int family, type, level, option;
    } rows[] = {
        {"TCP_LINGER2", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_LINGER2},
        {"TCP_MD5SIG", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_MD5SIG},
        {"TCP_MD5SIG_EXT", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_MD5SIG_EXT},
        {"TCP_AO_ADD_KEY", AF_INET, SOCK_STREAM, IPPROTO_TCP, 38},
        {"SO_BUF_LOCK", AF_INET, SOCK_STREAM, SOL_SOCKET, 72},
        {"IPV6_FLOWLABEL_MGR", AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 32},
        {"IPV6_HOPOPTS", AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 54},
        {"IPV6_RTHDRDSTOPTS", AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 55},
        {"IPV6_RTHDR", AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 57},
        {"IPV6_DSTOPTS", AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 59},
        {"IPV6_2292PKTOPTIONS", AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, 6},
        {"PACKET_ADD_MEMBERSHIP", AF_PACKET, SOCK_RAW, SOL_PACKET, PACKET_ADD_MEMBERSHIP},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        TRY(rows[i].name, option(rows[i].family, rows[i].type, rows[i].level, rows[i].option));
}

static void protocols(void)
{
    TRY("sctp stream", socket(AF_INET, SOCK_STREAM, 132));
    TRY("sctp seqpacket", socket(AF_INET, SOCK_SEQPACKET, 132));
    TRY("dccp", socket(AF_INET, 6, 33));
    TRY("smc", socket(AF_INET6, SOCK_STREAM, 256));
    TRY("l2tp", socket(AF_INET, SOCK_DGRAM, 115));
    TRY("rdm", socket(AF_INET, SOCK_RDM, 0));
    TRY("tcp", socket(AF_INET, SOCK_STREAM, IPPROTO_TCP));
    TRY("udp", socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP));
}

static void pairs(void)
{
    static const struct {
        const char *name;
        int family, type;
    } rows[] = {{"inet", AF_INET, SOCK_STREAM}, {"netlink", AF_NETLINK, SOCK_RAW},
                {"tipc", 30, SOCK_RDM},         {"tipc stream", 30, SOCK_STREAM},
                {"vsock", 40, SOCK_STREAM},     {"bluetooth", 31, SOCK_RAW},
                {"rds", 21, SOCK_SEQPACKET},    {"kcm", 41, SOCK_DGRAM},
                {"ax25", 3, SOCK_DGRAM},        {"alg", 38, SOCK_SEQPACKET}};
    int fds[2];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        TRY(rows[i].name, socketpair(rows[i].family, rows[i].type, 0, fds));
    TRY("unix", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
}

static void btrfs(const char *dir)
{
    struct btrfs_ioctl_vol_args v = {.name = "subvolume"};
    struct btrfs_ioctl_vol_args_v2 v2 = {.name = "another"};
    int d = open(dir, O_RDONLY | O_DIRECTORY), a, b;
    unsigned long long transid;

    TRY("the directory", d);
    TRY("subvolume", ioctl(d, BTRFS_IOC_SUBVOL_CREATE, &v));
    TRY("subvolume, version 2", ioctl(d, BTRFS_IOC_SUBVOL_CREATE_V2, &v2));
    strcpy(v.name, "snapshot");
    v.fd = d;
    TRY("snapshot", ioctl(d, BTRFS_IOC_SNAP_CREATE, &v));
    v2.fd = d;
    strcpy(v2.name, "snapshot2");
    TRY("snapshot, version 2", ioctl(d, BTRFS_IOC_SNAP_CREATE_V2, &v2));
    TRY("destroy", ioctl(d, BTRFS_IOC_SNAP_DESTROY, &v));
    TRY("sync", ioctl(d, BTRFS_IOC_SYNC, 0));
    TRY("start sync", ioctl(d, BTRFS_IOC_START_SYNC, &transid));
    TRY("sync with high bits", syscall(SYS_ioctl, d, BTRFS_IOC_SYNC | 1ul << 32, 0));
    TRY("defrag", ioctl(d, BTRFS_IOC_DEFRAG, NULL));
    a = openat(d, "a", O_RDWR | O_CREAT, 0600);
    b = openat(d, "b", O_RDWR | O_CREAT, 0600);
    if (write(a, dir, strlen(dir)) < 0)
        return;
    TRY("clone", ioctl(b, FICLONE, a));
}

/* Small buffers too: a program may rely on them. */
static void servers(void)
{
    struct sockaddr_in a;
    struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "/tmp/kmem-socket"};
    int l = listener(&a, 128), c = socket(AF_INET, SOCK_STREAM, 0), s, v = 4096;
    int ux = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t len = sizeof(v);

    TRY("listen", l);
    TRY("listen again", listen(l, 5));
    TRY("connect", connect(c, (struct sockaddr *)&a, sizeof(a)));
    s = accept(l, NULL, NULL);
    TRY("accept", s);
    TRY("small buffer", setsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, sizeof(v)));
    getsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, &len);
    say_number("is", v);
    v = 1 << 20;
    TRY("large buffer", setsockopt(c, SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
    getsockopt(c, SOL_SOCKET, SO_SNDBUF, &v, &len);
    say("is larger", v > 212992 ? "ok" : "no");
    TRY("short value", setsockopt(c, SOL_SOCKET, SO_SNDBUF, &v, 2));
    TRY("no memory", setsockopt(c, SOL_SOCKET, SO_SNDBUF, (void *)8, 4));
    TRY("no fd", setsockopt(999, SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
    TRY("no socket", listen(0, 5));
    TRY("bind unix", bind(ux, (struct sockaddr *)&u, sizeof(u)));
    TRY("listen unix", listen(ux, 5));
    TRY("join", join4(socket(AF_INET, SOCK_DGRAM, 0), 1));
    TRY("join v6", join6(socket(AF_INET6, SOCK_DGRAM, 0), 1));
    TRY("filter", install(0));
    TRY("filter by prctl", install(1));
    unlink(u.sun_path);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "unaccepted") == 0)
        unaccepted(argc > 2 ? atoi(argv[2]) : 1);
    else if (strcmp(what, "netlink") == 0)
        netlink();
    else if (strcmp(what, "joins4") == 0)
        joins(AF_INET, join4);
    else if (strcmp(what, "joins6") == 0)
        joins(AF_INET6, join6);
    else if (strcmp(what, "filters") == 0)
        filters();
    else if (strcmp(what, "files") == 0)
        files();
    else if (strcmp(what, "options") == 0)
        options();
    else if (strcmp(what, "protocols") == 0)
        protocols();
    else if (strcmp(what, "pairs") == 0)
        pairs();
    else if (strcmp(what, "btrfs") == 0 && argc > 2)
        btrfs(argv[2]);
    else if (strcmp(what, "servers") == 0)
        servers();
    return done();
}
