/* caps.c - more power than a container's root has: asked for, borrowed from a
 * file, or used as if it were there. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "attack.h"

static void show(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char *colon = strchr(line, ':');

        if (strncmp(line, "Cap", 3) != 0 || colon == NULL)
            continue;
        *colon = '\0';
        colon[strcspn(colon + 1, "\n") + 1] = '\0';
        say(line, colon + 1 + strspn(colon + 1, "\t "));
    }
}

static int set_all(unsigned long long permitted, unsigned long long inheritable)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {
        {(unsigned)permitted, (unsigned)permitted, (unsigned)inheritable},
        {(unsigned)(permitted >> 32), (unsigned)(permitted >> 32), (unsigned)(inheritable >> 32)}};

    return (int)syscall(SYS_capset, &h, d);
}

static void ask(void)
{
    static const struct {
        const char *name;
        int cap;
    } rows[] = {{"sys_admin", CAP_SYS_ADMIN},   {"sys_ptrace", CAP_SYS_PTRACE},
                {"net_admin", CAP_NET_ADMIN},   {"sys_resource", CAP_SYS_RESOURCE},
                {"sys_module", CAP_SYS_MODULE}, {"dac_read_search", CAP_DAC_READ_SEARCH},
                {"sys_rawio", CAP_SYS_RAWIO},   {"bpf", 39},
                {"checkpoint_restore", 40},     {"linux_immutable", CAP_LINUX_IMMUTABLE}};
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2];
    char name[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        unsigned long long now;

        syscall(SYS_capget, &h, d);
        now = d[0].permitted | (unsigned long long)d[1].permitted << 32;
        snprintf(name, sizeof(name), "capset %s", rows[i].name);
        TRY(name, set_all(now | 1ull << rows[i].cap, 0));
        snprintf(name, sizeof(name), "inheritable %s", rows[i].name);
        TRY(name, set_all(now, 1ull << rows[i].cap));
        snprintf(name, sizeof(name), "ambient %s", rows[i].name);
        TRY(name, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, rows[i].cap, 0, 0));
    }
}

/* Every capability there is, in a file that belongs to a user inside. */
static void file(const char *path, int effective)
{
    struct vfs_cap_data v2 = {.magic_etc =
                                  VFS_CAP_REVISION_2 | (effective ? VFS_CAP_FLAGS_EFFECTIVE : 0),
                              .data = {{~0u, ~0u}, {0x1ff, 0x1ff}}};
    struct vfs_ns_cap_data host = {.magic_etc = VFS_CAP_REVISION_3 |
                                                (effective ? VFS_CAP_FLAGS_EFFECTIVE : 0),
                                   .data = {{~0u, ~0u}, {0x1ff, 0x1ff}}};

    TRY("setcap", setxattr(path, "security.capability", &v2, sizeof(v2), 0));
    host.rootid = 0x7fffffff; /* root of somewhere else: not ours to name */
    TRY("setcap of another root", setxattr(path, "security.capability", &host, sizeof(host), 0));
    setxattr(path, "security.capability", &v2, sizeof(v2), 0);
}

static int netlink_ask(int protocol, void *msg, size_t len)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), err = 0;
    struct timeval wait = {.tv_sec = 5};
    char buf[4096];
    ssize_t n;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (send(fd, msg, len, 0) < 0)
        return -1;
    n = recv(fd, buf, sizeof(buf), 0);
    close(fd);
    if (n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
        ((struct nlmsghdr *)(void *)buf)->nlmsg_type == NLMSG_ERROR)
        err = -((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)(void *)buf))->error;
    else
        err = n < 0 ? errno : EPROTO;
    errno = err;
    return err == 0 ? 0 : -1;
}

static int new_table(void)
{
    struct {
        struct nlmsghdr h1;
        struct nfgenmsg g1;
        struct nlmsghdr h2;
        struct nfgenmsg g2;
        struct nlattr a;
        char name[8];
        struct nlmsghdr h3;
        struct nfgenmsg g3;
    } m = {
        .h1 = {20, NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 1, 0},
        .g1 = {AF_UNSPEC, 0, (unsigned short)(NFNL_SUBSYS_NFTABLES << 8)},
        .h2 = {20 + 12, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE,
               NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK, 2, 0},
        .g2 = {AF_INET, 0, 0},
        .a = {4 + 5, NFTA_TABLE_NAME},
        .name = "evil",
        .h3 = {20, NFNL_MSG_BATCH_END, NLM_F_REQUEST, 3, 0},
        .g3 = {AF_UNSPEC, 0, (unsigned short)(NFNL_SUBSYS_NFTABLES << 8)},
    };

    return netlink_ask(12 /* NETLINK_NETFILTER */, &m, sizeof(m));
}

static int new_link(void)
{
    struct {
        struct nlmsghdr h;
        struct ifinfomsg i;
        struct rtattr info;
        struct rtattr kind;
        char name[8];
    } m = {.h = {sizeof(m), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK, 1, 0},
           .info = {4 + 12, IFLA_LINKINFO},
           .kind = {4 + 6, IFLA_INFO_KIND},
           .name = "dummy"};

    return netlink_ask(NETLINK_ROUTE, &m, sizeof(m));
}

static int lower_loopback(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo"};

    return ioctl(fd, SIOCSIFFLAGS, &lo);
}

/* Without its capability each of these must fail. */
static void use(void)
{
    struct sched_param rt = {.sched_priority = 1};
    int fd;

    TRY("nf_tables", new_table());
    TRY("new link", new_link());
    TRY("loopback down", lower_loopback());
    TRY("nice", (errno = 0, setpriority(PRIO_PROCESS, 0, -5)));
    TRY("realtime", sched_setscheduler(0, SCHED_FIFO, &rt));
    TRY("securebits", prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP) == 0 &&
                              set_all(1ull << CAP_SYS_ADMIN, 0) == 0
                          ? 0
                          : -1);
    TRY("trusted xattr", setxattr("/tmp", "trusted.overlay.opaque", "y", 1, 0));
    fd = open("/tmp/immutable", O_CREAT | O_RDWR, 0600);
    TRY("immutable", ioctl(fd, _IOW('f', 2, long), &(long){0x10}));
    TRY("oom_score_adj",
        (fd = open("/proc/self/oom_score_adj", O_WRONLY)) < 0 ? -1 : write(fd, "-500", 4));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "show";

    if (strcmp(what, "show") == 0)
        show();
    else if (strcmp(what, "ask") == 0)
        ask();
    else if (strcmp(what, "file") == 0)
        file(argv[2], argc > 3);
    else if (strcmp(what, "use") == 0)
        use();
    return done();
}
