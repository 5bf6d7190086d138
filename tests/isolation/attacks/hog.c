/* hog.c - takes all there is of one thing, and says how much that was.
 *
 *   hog memory       touches pages until something ends it
 *   hog shm          fills System V shared memory, which no process's death frees
 *   hog forks        forks until it cannot, and stays until its stdin ends
 *   hog bomb         forks for ever, in every child
 *   hog files        opens files until it cannot
 *   hog raise        tries to raise every limit of its own
 *   hog inotify, ptys, aio, mq, tcp, udp, netlink, raw, packet
 *                    takes all of it, says so, and stays until its stdin ends
 *   hog filters      one of each kind that a socket can have
 *   hog one-of-each  takes one of each */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attack.h"

#define BLOCK (4u << 20)

static void stay(void)
{
    char c;

    while (read(0, &c, 1) > 0)
        continue;
}

static void memory(void)
{
    say("began", "ok");
    for (;;) {
        char *p = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p != MAP_FAILED)
            memset(p, 1, BLOCK);
    }
}

static void shm(void)
{
    long long n = 0;

    for (;; n += BLOCK) {
        int id = shmget(IPC_PRIVATE, BLOCK, IPC_CREAT | 0600);
        char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

        if (p == (char *)-1)
            break;
        memset(p, 1, BLOCK);
        shmdt(p);
    }
    say_number("bytes", n);
}

static void forks(void)
{
    long n = 0;
    pid_t pid;

    while ((pid = fork()) > 0)
        n++;
    if (pid == 0) {
        pause();
        _exit(0);
    }
    say("end", errno_name(errno));
    say_number("forks", n);
    say("full", "ok");
    stay();
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
}

static void bomb(void)
{
    say("began", "ok");
    signal(SIGTERM, SIG_IGN);
    for (;;) {
        setsid();
        fork();
    }
}

static void files(void)
{
    long n = 0;

    while (open("/dev/null", O_RDONLY) >= 0)
        n++;
    say("end", errno_name(errno));
    say_number("files", n + 3);
}

static void raise_all(void)
{
    static const struct {
        const char *name;
        int kind;
    } rows[] = {
        {"nofile", RLIMIT_NOFILE},        {"nproc", RLIMIT_NPROC}, {"memlock", RLIMIT_MEMLOCK},
        {"rtprio", RLIMIT_RTPRIO},        {"nice", RLIMIT_NICE},   {"msgqueue", RLIMIT_MSGQUEUE},
        {"sigpending", RLIMIT_SIGPENDING}};
    char name[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rlimit now, more;

        getrlimit((__rlimit_resource_t)rows[i].kind, &now);
        more = (struct rlimit){now.rlim_max, now.rlim_max + 1};
        snprintf(name, sizeof(name), "setrlimit %s", rows[i].name);
        TRY(name, now.rlim_max == RLIM_INFINITY
                      ? 0
                      : setrlimit((__rlimit_resource_t)rows[i].kind, &more));
        snprintf(name, sizeof(name), "prlimit %s", rows[i].name);
        TRY(name, now.rlim_max == RLIM_INFINITY
                      ? 0
                      : prlimit(0, (__rlimit_resource_t)rows[i].kind, &more, NULL));
    }
}

static int one_inotify(void)
{
    return inotify_init1(IN_CLOEXEC);
}

static int one_pty(void)
{
    return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int one_aio(void)
{
    aio_context_t ctx = 0;

    return (int)syscall(SYS_io_setup, 128, &ctx);
}

static int one_mq(void)
{
    static int n;
    char name[32];

    snprintf(name, sizeof(name), "/hog-%d", n++);
    return mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
}

/* Until it fails: how many, why, and then they are held. */
static void take_all(int (*one)(void), long most)
{
    long n = 0;

    errno = 0;
    while (n < most && one() >= 0)
        n++;
    say("end", n < most ? errno_name(errno) : "never");
    say_number("taken", n);
    say("full", "ok");
    stay();
}

static int pair(int type, int fds[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int l = socket(AF_INET, type, 0), big = 64 << 20;

    fds[0] = socket(AF_INET, type | SOCK_NONBLOCK, 0);
    setsockopt(l, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
    if (l < 0 || fds[0] < 0 || bind(l, (struct sockaddr *)&a, len) < 0 ||
        getsockname(l, (struct sockaddr *)&a, &len) < 0)
        return -1;
    if (type == SOCK_DGRAM) {
        fds[1] = l;
        return connect(fds[0], (struct sockaddr *)&a, len);
    }
    if (listen(l, 1) < 0)
        return -1;
    if (connect(fds[0], (struct sockaddr *)&a, len) < 0 && errno != EINPROGRESS)
        return -1;
    fds[1] = accept(l, NULL, NULL);
    close(l);
    return fds[1] < 0 ? -1 : 0;
}

/* Sent and never read: it is in the kernel, in no address space. */
static void sockets(int type, long long most)
{
    static char block[32768];
    long long bytes = 0;
    int fds[2];

    errno = 0;
    while (bytes < most && pair(type, fds) == 0) {
        ssize_t n;
        long long before = bytes;

        for (int i = 0; i < 4096 && (n = send(fds[0], block, sizeof(block), MSG_NOSIGNAL)) > 0; i++)
            bytes += n;
        if (bytes == before)
            break;
    }
    say("end", bytes < most ? errno_name(errno) : "never");
    say_number("bytes", bytes);
    say("full", "ok");
    stay();
}

static void tcp(void)
{
    sockets(SOCK_STREAM, 1ll << 29);
}

static void udp(void)
{
    sockets(SOCK_DGRAM, 1ll << 29);
}

static int one_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 0);
}

static int one_raw(void)
{
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

/* By its old name, as some programs still do. */
static int one_packet(void)
{
    return socket(AF_INET, SOCK_PACKET, htons(3));
}

static int ring(int which)
{
    struct tpacket_req r = {1 << 20, 32, 1 << 16, 32 << 4};

    return setsockopt(one_packet(), SOL_PACKET, which, &r, sizeof(r));
}

static int filter(int fd, int level, int option)
{
    struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog p = {1, &code};

    return setsockopt(fd, level, option, &p, sizeof(p));
}

static void filters(void)
{
    TRY("tcp", filter(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_ATTACH_FILTER));
    TRY("unix", filter(socket(AF_UNIX, SOCK_DGRAM, 0), SOL_SOCKET, SO_ATTACH_FILTER));
    TRY("netlink", filter(one_netlink(), SOL_SOCKET, SO_ATTACH_FILTER));
    TRY("reuseport", filter(socket(AF_INET, SOCK_DGRAM, 0), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF));
    TRY("fanout", filter(one_packet(), SOL_PACKET, PACKET_FANOUT_DATA));
}

static void netlink(void)
{
    take_all(one_netlink, 100000);
}

static void raw(void)
{
    take_all(one_raw, 100000);
}

static void packet(void)
{
    TRY("rx ring", ring(PACKET_RX_RING));
    TRY("tx ring", ring(PACKET_TX_RING));
    take_all(one_packet, 100000);
}

static void inotify(void)
{
    take_all(one_inotify, 100000);
}

static void ptys(void)
{
    take_all(one_pty, 100000);
}

static void aio(void)
{
    take_all(one_aio, 100000);
}

static void mq(void)
{
    take_all(one_mq, 100000);
}

static void one_of_each(void)
{
    TRY("inotify", one_inotify());
    TRY("pty", one_pty());
    TRY("mq", one_mq());
    TRY("fork", fork() == 0 ? (_exit(0), 0) : 0);
    mq_unlink("/hog-0");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"memory", memory},
                 {"shm", shm},
                 {"forks", forks},
                 {"bomb", bomb},
                 {"files", files},
                 {"raise", raise_all},
                 {"tcp", tcp},
                 {"udp", udp},
                 {"netlink", netlink},
                 {"raw", raw},
                 {"packet", packet},
                 {"filters", filters},
                 {"inotify", inotify},
                 {"ptys", ptys},
                 {"aio", aio},
                 {"mq", mq},
                 {"one-of-each", one_of_each}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
            parts[i].run();
    return done();
}
