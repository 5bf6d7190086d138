/* calls.c - every system call that could open a door, one attempt each.
 *
 * The arguments are as good as they can be made without doing harm if a call
 * should work, so that a refusal is a refusal and not a complaint about them. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/wait.h>

#include "attack.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static const struct {
    const char *name;
    int flag;
} kinds[] = {{"user", CLONE_NEWUSER},
             {"pid", CLONE_NEWPID},
             {"mnt", CLONE_NEWNS},
             {"net", CLONE_NEWNET},
             {"ipc", CLONE_NEWIPC},
             {"uts", CLONE_NEWUTS},
             {"time", CLONE_NEWTIME},
             {"cgroup", CLONE_NEWCGROUP},
             {"user+net", CLONE_NEWUSER | CLONE_NEWNET},
             {"user+mnt", CLONE_NEWUSER | CLONE_NEWNS}};

static long reap(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, __WALL);
    return pid;
}

static void namespaces(void)
{
    char name[64];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct clone_args a = {.flags = (unsigned)kinds[i].flag, .exit_signal = SIGCHLD};

        snprintf(name, sizeof(name), "unshare %s", kinds[i].name);
        TRY(name, syscall(SYS_unshare, kinds[i].flag));
        /* the old call keeps the signal where the new one has this flag */
        if ((kinds[i].flag & CLONE_NEWTIME) == 0) {
            snprintf(name, sizeof(name), "clone %s", kinds[i].name);
            TRY(name, reap(syscall(SYS_clone, kinds[i].flag | SIGCHLD, 0, 0, 0, 0)));
        }
        snprintf(name, sizeof(name), "clone3 %s", kinds[i].name);
        TRY(name, reap(syscall(SYS_clone3, &a, sizeof(a))));
    }
    for (size_t i = 0; i < 8; i++) {
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i].name);
        snprintf(name, sizeof(name), "setns %s", kinds[i].name);
        fd = open(path, O_RDONLY);
        TRY(name, syscall(SYS_setns, fd, 0));
        close(fd);
    }
}

static void mounts(void)
{
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

    mkdir("/tmp/m", 0755);
    TRY("mount tmpfs", mount("none", "/tmp/m", "tmpfs", 0, NULL));
    TRY("mount proc", mount("none", "/tmp/m", "proc", 0, NULL));
    TRY("mount bind", mount("/etc", "/tmp/m", NULL, MS_BIND, NULL));
    TRY("mount cgroup2", mount("none", "/tmp/m", "cgroup2", 0, NULL));
    TRY("mount cgroup", mount("none", "/tmp/m", "cgroup", 0, "memory"));
    TRY("mount overlay", mount("none", "/tmp/m", "overlay", 0, "lowerdir=/etc:/usr"));
    TRY("mount debugfs", mount("none", "/tmp/m", "debugfs", 0, NULL));
    TRY("mount devtmpfs", mount("none", "/tmp/m", "devtmpfs", 0, NULL));
    TRY("mount move", mount("/proc", "/tmp/m", NULL, MS_MOVE, NULL));
    TRY("remount proc/sys", mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("remount sys", mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("remount dev", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("mount propagation", mount(NULL, "/", NULL, MS_SHARED, NULL));
    TRY("umount masked", umount2("/proc/kcore", MNT_DETACH));
    TRY("umount keys", umount2("/proc/keys", MNT_DETACH));
    TRY("umount proc", umount2("/proc", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
    TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    TRY("fsmount", syscall(SYS_fsmount, 0, 0, 0));
    TRY("fsconfig", syscall(SYS_fsconfig, 0, 0, "a", "b", 0));
    TRY("fspick", syscall(SYS_fspick, AT_FDCWD, "/", 0));
    TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/etc", 1 /* clone */));
    TRY("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/etc", AT_FDCWD, "/tmp/m", 0));
    TRY("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/sys", 0, &attr, sizeof(attr)));
    TRY("statmount", syscall(457, NULL, NULL, 0, 0));
    TRY("listmount", syscall(458, NULL, NULL, 0, 0));
    TRY("open_tree_attr", syscall(467, AT_FDCWD, "/etc", 1, NULL, 0));
}

static void kernel(void)
{
    union bpf_attr map = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct io_uring_params ring = {0};
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(perf),
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .exclude_kernel = 1};
    struct timex tx = {0};
    struct timespec ts = {0};
    char buf[64];

    TRY("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
    TRY("io_uring_setup", syscall(SYS_io_uring_setup, 4, &ring));
    TRY("io_uring_enter", syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0));
    TRY("io_uring_register", syscall(SYS_io_uring_register, 0, 0, NULL, 0));
    TRY("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1));
    TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING));
    TRY("request_key", syscall(SYS_request_key, "user", "x", NULL, 0));
    TRY("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 1 /* user mode only */));
    TRY("fanotify_init", syscall(SYS_fanotify_init, 0x200 /* what anybody may have */, O_RDONLY));
    TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    TRY("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, "", 0));
    TRY("init_module", syscall(SYS_init_module, "x", 1, ""));
    TRY("finit_module", syscall(SYS_finit_module, 0, "", 0));
    TRY("delete_module", syscall(SYS_delete_module, "no_such", O_NONBLOCK));
    TRY("swapon", syscall(SYS_swapon, "/tmp/no", 0));
    TRY("swapoff", syscall(SYS_swapoff, "/tmp/no"));
    TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0 /* ctrl-alt-del off */, 0));
    TRY("iopl", syscall(SYS_iopl, 3));
    TRY("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
    TRY("modify_ldt", syscall(SYS_modify_ldt, 0, buf, sizeof(buf)));
    TRY("syslog", syscall(SYS_syslog, 10 /* size */, NULL, 0));
    TRY("acct", syscall(SYS_acct, NULL));
    TRY("quotactl", syscall(SYS_quotactl, 0x80000100 /* sync */, NULL, 0, NULL));
    TRY("sethostname", syscall(SYS_sethostname, "evil", 4));
    TRY("setdomainname", syscall(SYS_setdomainname, "evil", 4));
    TRY("settimeofday", syscall(SYS_settimeofday, NULL, &ts));
    TRY("clock_settime", syscall(SYS_clock_settime, 0, &ts));
    TRY("adjtimex", syscall(SYS_adjtimex, &tx));
    TRY("move_pages", syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0));
    TRY("migrate_pages", syscall(SYS_migrate_pages, 1, 0, NULL, NULL));
    TRY("vhangup", syscall(SYS_vhangup));
    TRY("sysfs", syscall(SYS_sysfs, 3));
    TRY("lookup_dcookie", syscall(SYS_lookup_dcookie, 0, buf, sizeof(buf)));
    TRY("a number of tomorrow", syscall(1000));
    TRY("an x32 number", syscall(0x40000000 + 39));
}

static void families(void)
{
    static const struct {
        const char *name;
        int family, type;
    } rows[] = {
        {"vsock", 40, SOCK_STREAM},  {"alg", 38, SOCK_SEQPACKET}, {"bluetooth", 31, SOCK_RAW},
        {"can", 29, SOCK_RAW},       {"tipc", 30, SOCK_RDM},      {"xdp", 44, SOCK_RAW},
        {"rds", 21, SOCK_SEQPACKET}, {"kcm", 41, SOCK_DGRAM},     {"smc", 43, SOCK_STREAM}};
    char name[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(name, sizeof(name), "socket %s", rows[i].name);
        TRY(name, socket(rows[i].family, rows[i].type, 0));
    }
}

static void devices(void)
{
    static const struct {
        const char *name;
        mode_t type;
        int major, minor;
    } rows[] = {{"mem", S_IFCHR, 1, 1},     {"kmsg", S_IFCHR, 1, 11},  {"vda", S_IFBLK, 254, 0},
                {"sda", S_IFBLK, 8, 0},     {"loop0", S_IFBLK, 7, 0},  {"null", S_IFCHR, 1, 3},
                {"fuse", S_IFCHR, 10, 229}, {"kvm", S_IFCHR, 10, 232}, {"whiteout", S_IFCHR, 0, 0}};
    static const char *const paths[] = {"/dev/mem",   "/dev/kmsg",         "/dev/port",
                                        "/dev/kvm",   "/dev/fuse",         "/dev/vda",
                                        "/dev/loop0", "/dev/loop-control", "/dev/console",
                                        "/dev/tty0",  "/dev/vsock",        "/dev/btrfs-control"};
    char name[64], path[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(name, sizeof(name), "mknod %s", rows[i].name);
        snprintf(path, sizeof(path), "/tmp/node-%s", rows[i].name);
        TRY(name, mknod(path, rows[i].type | 0666, makedev(rows[i].major, rows[i].minor)));
        snprintf(name, sizeof(name), "mknod in shm %s", rows[i].name);
        snprintf(path, sizeof(path), "/dev/shm/node-%s-%d", rows[i].name, (int)getuid());
        TRY(name, mknod(path, rows[i].type | 0666, makedev(rows[i].major, rows[i].minor)));
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        snprintf(name, sizeof(name), "open %s", paths[i]);
        TRY(name, open(paths[i], O_RDWR));
    }
    TRY("create in /dev", open("/dev/new", O_CREAT | O_WRONLY, 0600));
    TRY("chmod /dev/null", chmod("/dev/null", 0));
    TRY("unlink /dev/null", unlink("/dev/null"));
}

static void terminal(void)
{
    int master, slave;
    char c = 'x';

    if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
        say("TIOCSTI", "no pty");
        return;
    }
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    TRY("TIOCSTI", ioctl(slave, TIOCSTI, &c));
    /* the kernel looks at 32 bits of the number, so a filter must, too */
    TRY("TIOCSTI with high bits", syscall(SYS_ioctl, slave, 0x100000000ul | TIOCSTI, &c));
}

/* int 0x80 from a 64-bit program: the 32-bit table, where the numbers differ. */
static long old_call(long nr, long a, long b, long c)
{
    long ret;

    __asm__ volatile("int $0x80"
                     : "=a"(ret)
                     : "a"(nr), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    errno = ret < 0 ? (int)-ret : 0;
    return ret < 0 ? -1 : ret;
}

static void old(void)
{
    TRY("int80 getpid", old_call(20, 0, 0, 0));
    TRY("int80 mount", old_call(21, 0, 0, 0));
    TRY("int80 unshare", old_call(310, CLONE_NEWUSER, 0, 0));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"namespaces", namespaces},
                 {"mounts", mounts},
                 {"kernel", kernel},
                 {"families", families},
                 {"devices", devices},
                 {"terminal", terminal},
                 {"old", old}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
            parts[i].run();
    return done();
}
