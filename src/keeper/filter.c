/* filter.c - the system calls a sandbox may make, compiled once at start.
 *
 * An allow-list. A number it does not know answers ENOSYS, so that programs fall
 * back as on an older kernel; a known dangerous one answers EPERM, so that they
 * say why. What root inside may do with an allowed call is bounded by its
 * capabilities and namespaces, not here. */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "keeper/host.h"

/* clang-format off */
/* Not here: io_setup and what belongs to it. The host has one number of requests
 * for everybody (fs.aio-max-nr), and one sandbox could take it; programs that know
 * these calls do without them. */
static const char *const allowed[] = {
    /* files */
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr",
    "flock", "fremovexattr", "fsetxattr", "fstat",  "fsync", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "getxattr", "getxattrat", "lchown", "lgetxattr", "link", "linkat",
    "listxattr", "listxattrat", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat",
    "mknod", "mknodat", "name_to_handle_at", "newfstatat", "open", "openat", "openat2", "pread64",
    "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink",
    "readlinkat", "readv", "removexattr", "removexattrat", "rename", "renameat", "renameat2", "rmdir", "sendfile",
    "setxattr", "setxattrat", "splice", "stat",  "statx", "symlink", "symlinkat", "sync",
    "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink", "unlinkat", "utime",
    "utimensat", "utimes", "vmsplice", "write", "writev",  "cachestat",
    /* waiting and events */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd", "eventfd2", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
    "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4", "timerfd_create",
    "timerfd_gettime", "timerfd_settime", "pipe", "pipe2", "pause",
    /* memory */
    "brk", "madvise", "membarrier", "memfd_create", "memfd_secret", "mincore", "mlock", "mlock2",
    "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap",
    "pkey_alloc", "pkey_free", "pkey_mprotect", "process_madvise", "process_mrelease",
    "remap_file_pages", "map_shadow_stack", "get_mempolicy", "mbind", "set_mempolicy",
    "set_mempolicy_home_node",
    /* processes and threads */
    "arch_prctl", "capget", "capset", "clone", "clone3", "execve", "execveat", "exit", "exit_group",
    "fork", "futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "get_thread_area",
    "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrlimit", "getrusage", "getsid",
    "gettid", "ioprio_get", "ioprio_set", "kcmp", "kill", "pidfd_getfd", "pidfd_open",
    "pidfd_send_signal", "prctl", "process_vm_readv", "process_vm_writev", "ptrace",
    "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
    "sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list", "set_thread_area",
    "set_tid_address", "setpgid", "setpriority", "setsid", "sigaltstack", "tgkill",
    "time", "times", "tkill", "vfork", "wait4", "waitid", "seccomp", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "chroot",
    /* identity */
    "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid", "setfsgid",
    "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid",
    /* time and the machine */
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getcpu", "getitimer", "getrandom",
    "gettimeofday", "nanosleep", "setitimer", "sysinfo", "timer_create", "timer_delete",
    "timer_getoverrun", "timer_gettime", "timer_settime", "uname", "personality",
    /* sockets; socket() itself, ioctl, statfs and setting limits are below */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    "socketpair",
    /* System V and POSIX ipc, in the sandbox's own namespace */
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmdt", "shmget",
};

static const char *const refused[] = {
    "acct", "add_key", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "create_module",
    "delete_module", "fanotify_init", "fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "get_kernel_syms", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup",
    "ioperm", "iopl", "kexec_file_load", "kexec_load", "keyctl", "listmount", "lookup_dcookie", "lsm_set_self_attr",
    "migrate_pages", "modify_ldt", "mount", "mount_setattr", "move_mount", "move_pages", "nfsservctl",
    "open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open", "pivot_root", "query_module", "quotactl",
    "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname", "setns", "settimeofday",
    "statmount", "swapoff", "swapon", "sysfs", "syslog", "umount2", "unshare", "uselib", "userfaultfd",
    "ustat", "vhangup",
};

static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET};
/* clang-format on */

/* A name libseccomp does not know (an old library) is left out: it then answers
 * ENOSYS, which is what an old kernel would say. */
static int rule(scmp_filter_ctx c, uint32_t action, const char *name)
{
    int nr = seccomp_syscall_resolve_name(name);

    return nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(c, action, nr, 0);
}

/* Allows a call unless its argument is `value`. The kernel looks at 32 bits of
 * these, and "not equal" compares all 64: one bit set above them would pass. So:
 * allowed is what differs in one of the 32. */
static int allow_unless(scmp_filter_ctx c, int nr, unsigned arg, uint32_t value)
{
    int r = 0;

    for (unsigned bit = 0; bit < 32 && r == 0; bit++)
        r = seccomp_rule_add(
            c, SCMP_ACT_ALLOW, nr, 1,
            SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, 1ull << bit, ~(uint64_t)value & (1ull << bit)));
    return r;
}

/* A core_pattern that names a program starts it on the host, as root, whatever
 * RLIMIT_CORE says, but for the value 1 (core(5)): init sets that, and nobody
 * changes it. Who tries is told that it worked: sudo sets it on every call. */
static int rules_core(scmp_filter_ctx c)
{
    const struct scmp_arg_cmp old = SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, RLIMIT_CORE),
                              new = SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, RLIMIT_CORE);
    int r = allow_unless(c, SCMP_SYS(setrlimit), 0, RLIMIT_CORE);

    if (r == 0)
        r = seccomp_rule_add(c, SCMP_ACT_ERRNO(0), SCMP_SYS(setrlimit), 1, old);
    if (r == 0)
        r = allow_unless(c, SCMP_SYS(prlimit64), 1, RLIMIT_CORE);
    /* Both halves begin with the same test: libseccomp 2.5 silently loses the
     * second one if the first tests the third argument alone. */
    if (r == 0)
        r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, new,
                             SCMP_A2(SCMP_CMP_EQ, 0));
    if (r == 0)
        r = seccomp_rule_add(c, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 2, new,
                             SCMP_A2(SCMP_CMP_NE, 0));
    return r;
}

static int rules(scmp_filter_ctx c)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(allowed) && r == 0; i++)
        r = rule(c, SCMP_ACT_ALLOW, allowed[i]);
    for (size_t i = 0; i < ARRAY_LEN(refused) && r == 0; i++)
        r = rule(c, SCMP_ACT_ERRNO(EPERM), refused[i]);
    for (size_t i = 0; i < ARRAY_LEN(families) && r == 0; i++)
        r = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_EQ, (uint64_t)families[i]));
    /* Init answers these, so that `df` shows the sandbox's own disk. */
    if (r == 0)
        r = rule(c, SCMP_ACT_NOTIFY, "statfs");
    if (r == 0)
        r = rule(c, SCMP_ACT_NOTIFY, "fstatfs");
    /* TIOCSTI pushes characters into somebody else's input; it has no honest use. */
    if (r == 0)
        r = allow_unless(c, SCMP_SYS(ioctl), 1, TIOCSTI);
    return r == 0 ? rules_core(c) : r;
}

static int configure(scmp_filter_ctx c)
{
    int r = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));

    if (r == 0)
        r = seccomp_attr_set(c, SCMP_FLTATR_CTL_NNP, 0);
    /* A binary tree over the numbers: a dozen comparisons instead of hundreds. */
    if (r == 0)
        seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return r;
}

static int export(scmp_filter_ctx c, struct keeper *k, struct err *e)
{
    autofd int fd = memfd_create("cove-filter", MFD_CLOEXEC);
    struct stat st;
    int r = fd < 0 ? -errno : seccomp_export_bpf(c, fd);

    if (r < 0 || fstat(fd, &st) < 0)
        return err_set(e, ERR_INTERNAL, "export the filter: %s", strerror(r < 0 ? -r : errno));
    if ((size_t)st.st_size > BOOT_FILTER_MAX)
        return err_set(e, ERR_INTERNAL, "the filter has %lld bytes, too many",
                       (long long)st.st_size);
    k->filter_len = (size_t)st.st_size;
    k->filter = malloc(k->filter_len);
    if (k->filter == NULL || pread(fd, k->filter, k->filter_len, 0) != (ssize_t)k->filter_len)
        return err_sys(e, "read the filter");
    return 0;
}

int filter_compile(struct keeper *k, struct err *e)
{
    scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int r;

    if (c == NULL)
        return err_set(e, ERR_INTERNAL, "seccomp_init");
    r = configure(c);
    if (r == 0)
        r = rules(c);
    if (r < 0)
        err_set(e, ERR_INTERNAL, "compile the filter: %s", strerror(-r));
    else
        r = export(c, k, e);
    seccomp_release(c);
    return r < 0 ? -1 : 0;
}
