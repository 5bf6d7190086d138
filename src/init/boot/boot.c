/* boot.c - see boot.h. The order of the steps is the point of this file. */
#include "init/boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/own.h"
#include "base/str.h"
#include "base/tbf.h"
#include "init/boot/cgroups.h"
#include "init/boot/mount.h"
#include "init/syscalls/sockets.h"
#include "wire/fds.h"
#include "wire/init.h"

/* The same that Docker leaves to root in a container. */
static const int kept_caps[] = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,      CAP_FSETID,  CAP_KILL,
    CAP_SETGID, CAP_SETUID,       CAP_SETPCAP,     CAP_NET_RAW, CAP_NET_BIND_SERVICE,
    CAP_MKNOD,  CAP_SYS_CHROOT,   CAP_AUDIT_WRITE, CAP_SETFCAP,
};

/* Covered, so that they show as empty: they tell about the host. (Files that only the host's
 * root may read are closed by the user namespace already.) */
static const char *const masked_dirs[] = {
    "proc/acpi", "proc/asound", "proc/bus", "proc/fs", "proc/irq", "proc/scsi", "sys/firmware",
    "sys/module", "sys/devices/virtual/block",
    /* Writable, and each fd that is written to is a trigger of the host's, which closing waits for
     * (13 ms): 580,000 of them keep a killed sandbox for ten minutes. */
    "proc/pressure",
    /* The groups of commands (cgroups.h). */
    "sys/fs/cgroup/run", "sys/fs/cgroup/unified/run"};
static const char *const masked_files[] = {
    "proc/kcore", "proc/keys", "proc/key-users", "proc/timer_list", "proc/sched_debug",
    "proc/latency_stats", "proc/sysrq-trigger", "proc/kallsyms", "proc/modules", "proc/interrupts",
    "proc/diskstats", "proc/partitions", "proc/swaps", "proc/cmdline",
    /* They belong to the sandbox's root: with a lease on one, it would make the keeper wait. */
    "sys/fs/cgroup/cgroup.procs", "sys/fs/cgroup/unified/cgroup.procs"};

#define CAPS_MAX 64       /* bits of a set */
#define UNUSED_UID 65535u /* the last of our range; no user has it */

/* ---- the steps ---- */

/* Our ids are mapped by now: the keeper sends the message after that. */
static int step_identity(struct boot *b, struct err *e)
{
    (void)b;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return err_sys(e, "become root inside");
    /* Only now that we are in all our cgroups: the root of a cgroup namespace is the group in
     * which its maker is at that moment. */
    if (syscall(SYS_unshare, CLONE_NEWCGROUP) < 0)
        return err_sys(e, "unshare the cgroup namespace");
    return setsid() < 0 ? err_sys(e, "setsid") : 0;
}

/* /proc/uptime, the start times of processes and CLOCK_BOOTTIME count from now. Without time
 * namespaces they are the host's. */
static int step_clock(struct boot *b, struct err *e)
{
    autofd int offsets = take_fd(&b->fds[BOOT_CLOCK]), ns = -1;
    struct timespec now;
    char text[64];

    (void)e;
    if (syscall(SYS_unshare, CLONE_NEWTIME) < 0 || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        return 0;
    str_fmt(text, sizeof(text), "boottime -%lld 0\n", (long long)now.tv_sec);
    if (write(offsets, text, strlen(text)) > 0) /* before the first process enters */
        ns = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    if (ns >= 0)
        syscall(SYS_setns, ns, CLONE_NEWTIME);
    return 0;
}

/* Over the nursery's root, in our own copy of its mounts. */
static int step_root(struct boot *b, struct err *e)
{
    if (syscall(SYS_move_mount, b->fds[BOOT_ROOT], "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "mount the root");
    return 0;
}

/* An image need not have them: one with a single static program has no directory at all. We
 * stat first: mkdir on an overlay prepares for writing before it answers EEXIST. */
static int step_mount_points(struct boot *b, struct err *e)
{
    static const char *const points[] = {"proc", "sys", "dev"};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        if (fstatat(b->fds[BOOT_ROOT], points[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
            if (!S_ISDIR(st.st_mode))
                return err_set(e, ERR_CONFLICT,
                               "/%s is %s instead of a directory: nothing can be mounted there; "
                               "make it a directory in the template or snapshot",
                               points[i], S_ISLNK(st.st_mode) ? "a link" : "a file");
        } else if (mkdirat(b->fds[BOOT_ROOT], points[i], 0755) < 0 && errno != EEXIST) {
            return err_sys(e, "make /%s", points[i]);
        }
    }
    return 0;
}

/* While the nursery's /proc and /sys are still mounted: the kernel lets a user namespace mount
 * new ones only where it can see uncovered ones already. */
static int step_kernel_fs(struct boot *b, struct err *e)
{
    unsigned closed = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    if (boot_mount(b, "proc", "proc", NULL, closed, e) < 0)
        return -1;
    return boot_mount(b, "sysfs", "sys", NULL, closed | MOUNT_ATTR_RDONLY, e);
}

static int step_dev(struct boot *b, struct err *e)
{
    char shm[32], ptys[16];
    const char *const pts_opts[] = {"mode", "0620", "ptmxmode", "0666", "gid",
                                    "5",    "max",  ptys,       NULL};
    /* For sessions (session/dir.h): only init can create files in it. */
    const char *const cove_opts[] = {"mode", "0711", "size", "64m", "nr_inodes", "4096", NULL};
    const char *const shm_opts[] = {"mode", "1777", "size", shm, NULL};

    str_fmt(shm, sizeof(shm), "%llu", (unsigned long long)b->msg.shm_bytes);
    str_fmt(ptys, sizeof(ptys), "%u", b->msg.ptys);
    if (boot_attach(b->fds[BOOT_DEV], b->fds[BOOT_ROOT], "dev", e) < 0 ||
        boot_mount(b, "devpts", "dev/pts", pts_opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e) <
            0 ||
        boot_mount(b, "tmpfs", "dev/shm", shm_opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e) < 0)
        return -1;
    if (boot_mount(b, "tmpfs", "dev/cove", cove_opts,
                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e) < 0)
        return -1;
    return boot_mount(b, "mqueue", "dev/mqueue", NULL,
                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
}

/* The old root lies on top of the new one for a moment and is unmounted: from here on no path
 * leads out. */
static int step_pivot(struct boot *b, struct err *e)
{
    if (fchdir(b->fds[BOOT_ROOT]) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return err_sys(e, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_sys(e, "unmount the old root");
    drop_fd(&b->fds[BOOT_ROOT]);
    drop_fd(&b->fds[BOOT_DEV]);
    return 0;
}

static int step_stdio(struct boot *b, struct err *e)
{
    (void)b;
    for (int fd = 0; fd < 3; fd++) {
        autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null < 0 || dup2(null, fd) < 0)
            return err_sys(e, "open /dev/null as fd %d", fd);
        if (null == fd)
            take_fd(&null);
    }
    return 0;
}

static int write_file(const char *path, const char *text)
{
    autofd int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);

    return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? -1 : 0;
}

/* The tenant cannot make a user namespace, which would give it a full set of capabilities.
 * Other namespaces need CAP_SYS_ADMIN, which is dropped below, and raising this limit again
 * needs CAP_SYS_RESOURCE. */
static int step_no_namespaces(struct boot *b, struct err *e)
{
    (void)b;
    if (write_file("/proc/sys/user/max_user_namespaces", "0") < 0)
        return err_sys(e, "set user.max_user_namespaces to 0");
    return 0;
}

static void put_addr(struct sockaddr *to, uint32_t addr)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(addr)};

    memcpy(to, &in, sizeof(in));
}

static int add_route(int fd, uint32_t to, uint32_t via, short flags)
{
    static char dev[] = "eth0";
    struct rtentry r = {.rt_flags = (unsigned short)(RTF_UP | flags), .rt_dev = dev};

    put_addr(&r.rt_dst, to);
    put_addr(&r.rt_gateway, via);
    put_addr(&r.rt_genmask, (flags & RTF_HOST) != 0 ? UINT32_MAX : 0);
    return ioctl(fd, SIOCADDRT, &r);
}

/* One address, one neighbour, and everything else through it. IPv6 is switched off before the
 * interface comes up, so that nothing is announced. */
static int bring_up_eth0(int fd, uint32_t addr, struct err *e)
{
    struct ifreq r = {.ifr_name = "eth0"};

    if (write_file("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1") < 0 && errno != ENOENT)
        return err_sys(e, "switch off IPv6 on eth0");
    put_addr(&r.ifr_addr, addr);
    if (ioctl(fd, SIOCSIFADDR, &r) < 0)
        return err_sys(e, "set the address of eth0");
    put_addr(&r.ifr_netmask, UINT32_MAX);
    if (ioctl(fd, SIOCSIFNETMASK, &r) < 0)
        return err_sys(e, "set the address of eth0");
    put_addr(&r.ifr_broadaddr, 0); /* the kernel guessed one from the address class */
    if (ioctl(fd, SIOCSIFBRDADDR, &r) < 0)
        return err_sys(e, "set the address of eth0");
    if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return err_sys(e, "read the flags of eth0");
    r.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
        return err_sys(e, "bring up eth0");
    if (add_route(fd, BOOT_GATEWAY, 0, RTF_HOST) < 0 ||
        add_route(fd, 0, BOOT_GATEWAY, RTF_GATEWAY) < 0)
        return err_sys(e, "add the default route");
    return 0;
}

/* The keeper limits what eth0 receives, at the other end of the veth (base/tbf.h). */
static int limit_eth0(uint64_t rate, struct err *e)
{
    _Alignas(16) char room[TBF_MESSAGE_MAX];
    autofd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct nlmsghdr *h = tbf_message(room, if_nametoindex("eth0"), rate);
    struct nlmsgerr *answer;
    ssize_t n;

    h->nlmsg_flags |= NLM_F_ACK;
    n = fd < 0 || send(fd, h, h->nlmsg_len, 0) < 0 ? -1 : recv(fd, room, sizeof(room), 0);
    answer = NLMSG_DATA(h);
    if (n >= (ssize_t)NLMSG_LENGTH(sizeof(*answer)) && h->nlmsg_type == NLMSG_ERROR)
        errno = -answer->error;
    else if (n >= 0)
        errno = EBADMSG;
    return errno != 0 ? err_sys(e, "limit what eth0 sends (sch_tbf)") : 0;
}

/* A template without name servers gets ours. We lstat before we open: opening for writing would
 * copy the file up to the disk. */
static void name_servers(void)
{
    static const char path[] = "/etc/resolv.conf", text[] = BOOT_RESOLV_CONF;
    autofd int fd = -1;
    struct stat st;

    if (lstat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > 0))
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, text, sizeof(text) - 1) < 0)
        return; /* a full disk: names do not resolve, and `df` shows why */
}

static int step_network(struct boot *b, struct err *e)
{
    autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(e, "bring up lo");
    if (b->msg.address != 0) {
        if (bring_up_eth0(fd, b->msg.address, e) < 0 ||
            (b->msg.bandwidth != 0 && limit_eth0(b->msg.bandwidth, e) < 0))
            return -1;
        name_servers();
    }
    /* As in Docker, any user may listen on port 80. Errors are ignored: root still may. */
    write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    return 0;
}

/* System V shared memory outlives its processes: without a limit it could fill the sandbox's
 * memory, and the OOM killer would find no process but init. (/dev/shm has a size.) */
static int step_shared_memory(struct boot *b, struct err *e)
{
    char pages[32];

    str_fmt(pages, sizeof(pages), "%llu", (unsigned long long)(b->msg.shm_bytes / 2 / 4096));
    return write_file("/proc/sys/kernel/shmall", pages) < 0 ? err_sys(e, "set kernel.shmall") : 0;
}

static int step_name(struct boot *b, struct err *e)
{
    if (sethostname(b->msg.hostname, strlen(b->msg.hostname)) < 0)
        return err_sys(e, "sethostname");
    return 0;
}

/* The mount of a file that is in no directory any more. */
static int step_boot_id(struct boot *b, struct err *e)
{
    autofd int fd = open("/dev/shm/boot", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444), mnt = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    char text[64];

    str_fmt(text, sizeof(text), "%s\n", b->msg.boot_id);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_sys(e, "write the boot id");
    mnt =
        (int)syscall(SYS_open_tree, AT_FDCWD, "/dev/shm/boot", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (mnt < 0 || syscall(SYS_mount_setattr, mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return err_sys(e, "write the boot id");
    if (syscall(SYS_move_mount, mnt, "", AT_FDCWD, "/proc/sys/kernel/random/boot_id",
                MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "mount the boot id");
    return unlink("/dev/shm/boot") < 0 ? err_sys(e, "write the boot id") : 0;
}

/* A bind mount keeps the flags of its source: /dev is read-only, nosuid, noexec. */
static int cover(const char *with, const char *path, struct err *e)
{
    if (mount(with, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT && errno != ENOTDIR)
        return err_sys(e, "cover /%s", path);
    return 0;
}

/* Directories are covered with an empty one of /dev, files with /dev/null. */
static int step_mask(struct boot *b, struct err *e)
{
    (void)b;
    for (size_t i = 0; i < ARRAY_LEN(masked_dirs); i++)
        if (cover("/dev/empty", masked_dirs[i], e) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(masked_files); i++)
        if (cover("/dev/null", masked_files[i], e) < 0)
            return -1;
    return 0;
}

/* In the directory of sessions, where only init can write. */
static int step_limits(struct boot *b, struct err *e)
{
    return limits_files_cover(&b->limits, "/dev/cove", e);
}

static int step_sysctl(struct boot *b, struct err *e)
{
    (void)b;
    if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND | MS_REC, NULL) < 0 ||
        mount(NULL, "/proc/sys", NULL,
              MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "make /proc/sys read-only");
    return 0;
}

static int step_files(struct boot *b, struct err *e)
{
    struct rlimit r;

    (void)b;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return err_sys(e, "getrlimit RLIMIT_NOFILE");
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    /* Not 0: with 0 the kernel still starts the host's core_pattern program, with 1 it does
     * not. The filter prevents the tenant from changing it. */
    r = (struct rlimit){1, 1};
    return setrlimit(RLIMIT_CORE, &r) < 0 ? err_sys(e, "setrlimit RLIMIT_CORE") : 0;
}

/* Before the capabilities are dropped: with CAP_SYS_ADMIN a filter needs no no_new_privs, and
 * without no_new_privs sudo works inside. */
static int step_filter(struct boot *b, struct err *e)
{
    struct sock_fprog prog = {.len =
                                  (unsigned short)(b->msg.filter_len / sizeof(struct sock_filter)),
                              .filter = (struct sock_filter *)(void *)b->msg.filter};

    b->listener =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    return b->listener < 0 ? err_sys(e, "install the seccomp filter") : 0;
}

static bool is_kept(int cap)
{
    for (size_t i = 0; i < ARRAY_LEN(kept_caps); i++)
        if (kept_caps[i] == cap)
            return true;
    return false;
}

static int step_capabilities(struct boot *b, struct err *e)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0}};

    (void)b;
    for (int cap = 0; cap < CAPS_MAX; cap++) /* EINVAL: the kernel knows no higher one */
        if (!is_kept(cap) && prctl(PR_CAPBSET_DROP, cap) < 0) {
            if (errno == EINVAL)
                break;
            return err_sys(e, "drop capability %d", cap);
        }
    for (size_t i = 0; i < ARRAY_LEN(kept_caps); i++)
        d[kept_caps[i] / 32].permitted |= 1u << (kept_caps[i] % 32);
    /* For init alone, to write the answer of statfs into its caller's memory: what we execute
     * gets nothing that is not in the bounding set. */
    d[CAP_SYS_PTRACE / 32].permitted |= 1u << (CAP_SYS_PTRACE % 32);
    d[0].effective = d[0].permitted;
    d[1].effective = d[1].permitted;
    if (syscall(SYS_capset, &h, d) < 0)
        return err_sys(e, "capset");
    return 0;
}

/* A process with the same real, effective and saved uid may lower our limits (prlimit), and
 * root inside has 0, 0, 0. A saved uid that no process inside can have prevents that, and
 * ptrace too. */
static int step_alone(struct boot *b, struct err *e)
{
    (void)b;
    if (syscall(SYS_setresuid, -1, -1, UNUSED_UID) < 0)
        return err_sys(e, "set a saved uid that no process inside has");
    return 0;
}

/* Before the filter, which hands listen() to init itself. Connections wait until init serves. */
static int step_listen(struct boot *b, struct err *e)
{
    b->diag_fd = sockets_diag_open();
    return listen(b->fds[BOOT_LISTEN], 128) < 0 ? err_sys(e, "listen on the socket of the front")
                                                : 0;
}

/* clang-format off */
static const struct {
    const char *name;
    int (*run)(struct boot *b, struct err *e);
} steps[] = {
    {"identity",      step_identity},
    {"clock",         step_clock},
    {"root",          step_root},
    {"mount points",  step_mount_points},
    {"kernel files",  step_kernel_fs},
    {"devices",       step_dev},
    {"cgroups",       cgroups_mount},
    {"pivot",         step_pivot},
    {"stdio",         step_stdio},
    {"network",       step_network},
    {"shared memory", step_shared_memory},
    {"name",          step_name},
    {"boot id",       step_boot_id},
    {"masks",         step_mask},
    {"limits",        step_limits},
    {"namespaces",    step_no_namespaces},
    {"sysctl",        step_sysctl},
    {"files",         step_files},
    {"socket",        step_listen},
    {"filter",        step_filter},
    {"capabilities",  step_capabilities},
    {"alone",         step_alone},
};
/* clang-format on */

int boot_run(struct boot *b, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i].run(b, e) < 0)
            return err_wrap(e, "%s", steps[i].name);
    return 0;
}

int boot_receive(struct boot *b, struct err *e)
{
    ssize_t n = fds_receive(BOOT_FD, &b->msg, sizeof(b->msg), b->fds, BOOT_FD_COUNT);

    if (n < 0)
        return err_sys(e, "receive the boot message");
    if ((size_t)n < offsetof(struct boot_message, filter) || b->msg.version != INIT_VERSION ||
        (size_t)n != offsetof(struct boot_message, filter) + b->msg.filter_len || b->fds[0] < 0)
        return err_set(e, ERR_INTERNAL, "the boot message is of another version than this init");
    return 0;
}

void boot_answer(const struct err *why)
{
    struct boot_answer a = {.ok = why == NULL, .kind = why == NULL ? 0 : why->kind};

    if (why != NULL)
        snprintf(a.error, sizeof(a.error), "%.490s", why->msg);
    send(BOOT_FD, &a, sizeof(a), MSG_NOSIGNAL);
    close(BOOT_FD);
}
