/* boot.c - see boot.h. The order of the steps is the point of this file. */
#include "init/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
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

#include "base/own.h"
#include "base/str.h"
#include "wire/fds.h"
#include "wire/init.h"

/* What Docker leaves a container's root, and no more. */
static const int kept_caps[] = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,      CAP_FSETID,  CAP_KILL,
    CAP_SETGID, CAP_SETUID,       CAP_SETPCAP,     CAP_NET_RAW, CAP_NET_BIND_SERVICE,
    CAP_MKNOD,  CAP_SYS_CHROOT,   CAP_AUDIT_WRITE, CAP_SETFCAP,
};

/* Shown empty: what the host's kernel tells there is nobody's business inside.
 * (What only the host's root may read is closed by the user namespace already.) */
static const char *const masked_dirs[] = {
    "proc/acpi", "proc/asound",  "proc/bus", "proc/fs",    "proc/irq",
    "proc/scsi", "sys/firmware", "sys/fs",   "sys/module", "sys/devices/virtual/block"};
static const char *const masked_files[] = {
    "proc/kcore",       "proc/keys",          "proc/key-users",     "proc/timer_list",
    "proc/sched_debug", "proc/latency_stats", "proc/sysrq-trigger", "proc/kallsyms",
    "proc/modules",     "proc/interrupts",    "proc/diskstats",     "proc/partitions",
    "proc/swaps",       "proc/cmdline"};

#define CAPS_MAX 64        /* bits of a set */
#define NOBODYS_UID 65535u /* the last of our range; no user has it */

static int fs_mount(const char *type, const char *const *opts, unsigned attrs, struct err *e)
{
    autofd int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), mnt = -1;

    if (fs < 0)
        return err_sys(e, "%s", type);
    for (; opts != NULL && opts[0] != NULL; opts += 2)
        if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, opts[0], opts[1], 0) < 0)
            return err_sys(e, "%s %s=%s", type, opts[0], opts[1]);
    if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, "make %s", type);
    mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
    return mnt < 0 ? err_sys(e, "mount %s", type) : take_fd(&mnt);
}

static int place(int mnt, int dfd, const char *path, struct err *e)
{
    if (syscall(SYS_move_mount, mnt, "", dfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "place /%s", path);
    return 0;
}

static int mount_at(struct boot *b, const char *type, const char *path, const char *const *opts,
                    unsigned attrs, struct err *e)
{
    autofd int mnt = fs_mount(type, opts, attrs, e);

    return mnt < 0 ? -1 : place(mnt, b->fds[BOOT_ROOT], path, e);
}

/* ---- the steps ---- */

/* Our ids are mapped by now: the message comes after that. */
static int step_identity(struct boot *b, struct err *e)
{
    (void)b;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return err_sys(e, "be root inside");
    /* Only now that we are in all our groups: what a cgroup namespace shows as its
     * root, and hides above it, is where its maker was at that moment. */
    if (syscall(SYS_unshare, CLONE_NEWCGROUP) < 0)
        return err_sys(e, "a cgroup namespace");
    return setsid() < 0 ? err_sys(e, "a session") : 0;
}

/* Over the nursery's root, in our own copy of its mounts; nobody sees it but us. */
static int step_root(struct boot *b, struct err *e)
{
    if (syscall(SYS_move_mount, b->fds[BOOT_ROOT], "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "place the root");
    return 0;
}

/* An image need not have them: one with a single static program has nothing. Looked for
 * first: an overlay prepares to write before it says that there is one. */
static int step_mount_points(struct boot *b, struct err *e)
{
    static const char *const points[] = {"proc", "sys", "dev"};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        if (fstatat(b->fds[BOOT_ROOT], points[i], &st, AT_SYMLINK_NOFOLLOW) < 0 &&
            mkdirat(b->fds[BOOT_ROOT], points[i], 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make /%s", points[i]);
    return 0;
}

/* While the nursery's /proc and /sys are still there: the kernel lets a user
 * namespace mount new ones only where it can see whole ones already. */
static int step_kernel_fs(struct boot *b, struct err *e)
{
    unsigned closed = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    if (mount_at(b, "proc", "proc", NULL, closed, e) < 0)
        return -1;
    return mount_at(b, "sysfs", "sys", NULL, closed | MOUNT_ATTR_RDONLY, e);
}

static int step_dev(struct boot *b, struct err *e)
{
    char shm[32], ptys[16];
    const char *const pts_opts[] = {"mode", "0620", "ptmxmode", "0666", "gid",
                                    "5",    "max",  ptys,       NULL};
    /* For sessions (session_dir.h): only we can add to it. */
    const char *const cove_opts[] = {"mode", "0711", "size", "64m", "nr_inodes", "4096", NULL};
    const char *const shm_opts[] = {"mode", "1777", "size", shm, NULL};

    str_fmt(shm, sizeof(shm), "%llu", (unsigned long long)b->msg.shm_bytes);
    str_fmt(ptys, sizeof(ptys), "%u", b->msg.ptys);
    if (place(b->fds[BOOT_DEV], b->fds[BOOT_ROOT], "dev", e) < 0 ||
        mount_at(b, "devpts", "dev/pts", pts_opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, e) < 0 ||
        mount_at(b, "tmpfs", "dev/shm", shm_opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, e) < 0)
        return -1;
    if (mount_at(b, "tmpfs", "dev/cove", cove_opts,
                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e) < 0)
        return -1;
    return mount_at(b, "mqueue", "dev/mqueue", NULL,
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
}

/* The old root ends up on top of the new one for a moment and is let go: from
 * here on there is no path out. */
static int step_pivot(struct boot *b, struct err *e)
{
    if (fchdir(b->fds[BOOT_ROOT]) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return err_sys(e, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_sys(e, "let go of the old root");
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
            return err_sys(e, "/dev/null");
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

/* Nobody inside makes a namespace: without one there is no new set of powers to be
 * had. For all others than this one the kernel wants SYS_ADMIN, which goes below, and
 * for raising this one again SYS_RESOURCE. */
static int step_no_namespaces(struct boot *b, struct err *e)
{
    (void)b;
    if (write_file("/proc/sys/user/max_user_namespaces", "0") < 0)
        return err_sys(e, "no user namespaces");
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

/* One address, one neighbour, and everything else through it. IPv6 goes before the
 * interface comes up: nothing is announced. */
static int bring_up_eth0(int fd, uint32_t addr, struct err *e)
{
    struct ifreq r = {.ifr_name = "eth0"};

    if (write_file("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1") < 0 && errno != ENOENT)
        return err_sys(e, "no IPv6 on eth0");
    put_addr(&r.ifr_addr, addr);
    if (ioctl(fd, SIOCSIFADDR, &r) < 0)
        return err_sys(e, "address of eth0");
    put_addr(&r.ifr_netmask, UINT32_MAX);
    if (ioctl(fd, SIOCSIFNETMASK, &r) < 0)
        return err_sys(e, "address of eth0");
    put_addr(&r.ifr_broadaddr, 0); /* the kernel has guessed one from the old classes */
    if (ioctl(fd, SIOCSIFBRDADDR, &r) < 0)
        return err_sys(e, "address of eth0");
    if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return err_sys(e, "eth0");
    r.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
        return err_sys(e, "bring up eth0");
    if (add_route(fd, BOOT_GATEWAY, 0, RTF_HOST) < 0 ||
        add_route(fd, 0, BOOT_GATEWAY, RTF_GATEWAY) < 0)
        return err_sys(e, "the way out");
    return 0;
}

/* A template that says nothing about name servers gets ours; one that does is
 * believed. Looked at before it is opened, which would copy it to the disk. */
static void name_servers(void)
{
    static const char path[] = "/etc/resolv.conf", text[] = BOOT_RESOLV_CONF;
    autofd int fd = -1;
    struct stat st;

    if (lstat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > 0))
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, text, sizeof(text) - 1) < 0)
        return; /* a full disk: names do not work, and everybody sees why */
}

static int step_network(struct boot *b, struct err *e)
{
    autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(e, "bring up the loopback");
    if (b->msg.address != 0) {
        if (bring_up_eth0(fd, b->msg.address, e) < 0)
            return -1;
        name_servers();
    }
    /* Best effort, as in containers elsewhere: anybody may serve on port 80. */
    write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    return 0;
}

/* System V shared memory outlives its processes: without a bound it could fill the
 * sandbox's memory with nothing left to kill for it but us. /dev/shm has one. */
static int step_shared_memory(struct boot *b, struct err *e)
{
    char pages[32];

    str_fmt(pages, sizeof(pages), "%llu", (unsigned long long)(b->msg.shm_bytes / 2 / 4096));
    return write_file("/proc/sys/kernel/shmall", pages) < 0 ? err_sys(e, "kernel.shmall") : 0;
}

static int step_name(struct boot *b, struct err *e)
{
    if (sethostname(b->msg.hostname, strlen(b->msg.hostname)) < 0)
        return err_sys(e, "host name");
    return 0;
}

/* A mount of one file, with nothing of it left in any directory. */
static int step_boot_id(struct boot *b, struct err *e)
{
    autofd int fd = open("/dev/shm/boot", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444), mnt = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    char text[64];

    str_fmt(text, sizeof(text), "%s\n", b->msg.boot_id);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_sys(e, "boot id");
    mnt =
        (int)syscall(SYS_open_tree, AT_FDCWD, "/dev/shm/boot", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (mnt < 0 || syscall(SYS_mount_setattr, mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return err_sys(e, "boot id");
    if (syscall(SYS_move_mount, mnt, "", AT_FDCWD, "/proc/sys/kernel/random/boot_id",
                MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "place the boot id");
    return unlink("/dev/shm/boot") < 0 ? err_sys(e, "boot id") : 0;
}

/* A bind keeps the flags of what it shows: /dev is read-only, nosuid, noexec. */
static int cover(const char *with, const char *path, struct err *e)
{
    if (mount(with, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT && errno != ENOTDIR)
        return err_sys(e, "cover /%s", path);
    return 0;
}

/* An empty directory of /dev is what lies over directories, /dev/null over files. */
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
        return err_sys(e, "open files limit");
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    /* Not 0: that does not keep a core_pattern from starting the host's program for
     * it, and 1 does. The filter keeps everybody from changing it. */
    r = (struct rlimit){1, 1};
    return setrlimit(RLIMIT_CORE, &r) < 0 ? err_sys(e, "core limit") : 0;
}

/* Before the capabilities go: with CAP_SYS_ADMIN a filter needs no no_new_privs,
 * and without no_new_privs sudo works inside. */
static int step_filter(struct boot *b, struct err *e)
{
    struct sock_fprog prog = {.len =
                                  (unsigned short)(b->msg.filter_len / sizeof(struct sock_filter)),
                              .filter = (struct sock_filter *)(void *)b->msg.filter};

    b->listener =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    return b->listener < 0 ? err_sys(e, "seccomp") : 0;
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
    for (int cap = 0; cap < CAPS_MAX; cap++) /* EINVAL: the kernel has no more of them */
        if (!is_kept(cap) && prctl(PR_CAPBSET_DROP, cap) < 0) {
            if (errno == EINVAL)
                break;
            return err_sys(e, "drop capability %d", cap);
        }
    for (size_t i = 0; i < ARRAY_LEN(kept_caps); i++)
        d[kept_caps[i] / 32].permitted |= 1u << (kept_caps[i] % 32);
    /* Ours alone, to answer statfs in the asker's memory: what we execute gets
     * nothing that is not in the bounding set. */
    d[CAP_SYS_PTRACE / 32].permitted |= 1u << (CAP_SYS_PTRACE % 32);
    d[0].effective = d[0].permitted;
    d[1].effective = d[1].permitted;
    if (syscall(SYS_capset, &h, d) < 0)
        return err_sys(e, "keep only a container's capabilities");
    return 0;
}

/* Whoever has the same three uids as we may set our limits (prlimit) and lower
 * them to nothing, and root inside has 0, 0, 0. A saved uid that differs from the
 * others can be nobody's; it is also one more wall against ptrace. */
static int step_alone(struct boot *b, struct err *e)
{
    (void)b;
    if (syscall(SYS_setresuid, -1, -1, NOBODYS_UID) < 0)
        return err_sys(e, "be like nobody else");
    return 0;
}

static int step_listen(struct boot *b, struct err *e)
{
    return listen(b->fds[BOOT_LISTEN], 128) < 0 ? err_sys(e, "listen") : 0;
}

/* clang-format off */
static const struct {
    const char *name;
    int (*run)(struct boot *b, struct err *e);
} steps[] = {
    {"identity",      step_identity},
    {"root",          step_root},
    {"mount points",  step_mount_points},
    {"kernel files",  step_kernel_fs},
    {"devices",       step_dev},
    {"pivot",         step_pivot},
    {"stdio",         step_stdio},
    {"network",       step_network},
    {"shared memory", step_shared_memory},
    {"name",          step_name},
    {"boot id",       step_boot_id},
    {"masks",         step_mask},
    {"namespaces",    step_no_namespaces},
    {"sysctl",        step_sysctl},
    {"files",         step_files},
    {"filter",        step_filter},
    {"capabilities",  step_capabilities},
    {"alone",         step_alone},
    {"socket",        step_listen},
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
        return err_sys(e, "boot message");
    if ((size_t)n < offsetof(struct boot_message, filter) || b->msg.version != INIT_VERSION ||
        (size_t)n != offsetof(struct boot_message, filter) + b->msg.filter_len || b->fds[0] < 0)
        return err_set(e, ERR_INTERNAL, "a boot message of another version");
    return 0;
}

void boot_answer(const struct err *why)
{
    struct boot_answer a = {.ok = why == NULL};

    if (why != NULL)
        snprintf(a.error, sizeof(a.error), "%.490s", why->msg);
    send(BOOT_FD, &a, sizeof(a), MSG_NOSIGNAL);
    close(BOOT_FD);
}
