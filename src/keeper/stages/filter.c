/* filter.c - the system calls a sandbox may make, compiled once at start.
 *
 * An allow-list. A number it does not know answers ENOSYS, so that programs fall
 * back as on an older kernel; a known dangerous one answers EPERM, so that they
 * say why. What root inside may do with an allowed call is bounded by its
 * capabilities and namespaces, not here.
 *
 * The program is a binary search over runs of numbers that are answered alike:
 * a fifth of what libseccomp makes of the same list, and the kernel translates it
 * anew for every sandbox (0.2 ms). On the way to a number only loads, jumps and returns:
 * those the kernel follows when it looks for calls that are always allowed, which then cost
 * nothing (seccomp_is_const_allow). libseccomp knows the numbers of the names. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

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
    /* sockets; socket() itself, setsockopt, ioctl, statfs and setting limits are below */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "shutdown",
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

/* clang-format on */

#define NR_END 1024u       /* numbers from here on are unknown; the kernel has half of them */
#define X32_BIT 0x40000000 /* a second set of numbers for the same calls */
#define INSTRUCTIONS_MAX (BOOT_FILTER_MAX / sizeof(struct sock_filter))
#define JUMP_MAX 255u /* a conditional jump has eight bits */

#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(n) (SECCOMP_RET_ERRNO | (uint32_t)(n))
#define NOTIFY SECCOMP_RET_USER_NOTIF

#define RETURN(x) BPF_STMT(BPF_RET | BPF_K, (x))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The kernel looks at 32 bits of what we test here, and a test of all 64 would let
 * one pass that differs above them: the lower half, unless a pointer is meant. */
#define LOW(arg) LOAD(args[arg])
#define HIGH(arg) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[arg]) + 4)
#define MASK(bits) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (bits))
#define SOCK_TYPES 0xf /* above are SOCK_CLOEXEC and SOCK_NONBLOCK */
#define UNLESS(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, (skip))
#define WHEN(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (skip), 0)

/* What lies in a netlink, packet or raw socket counts to nobody's memory, so init is asked
 * whether there may be one more (init/syscalls/sockets.h). */
static const struct sock_filter on_socket[] = {
    LOW(0),           WHEN(AF_UNIX, 10),    WHEN(AF_NETLINK, 8),   WHEN(AF_PACKET, 7),
    WHEN(AF_INET, 2), WHEN(AF_INET6, 1),    RETURN(ERRNO(ENOSYS)), LOW(1),
    MASK(SOCK_TYPES), WHEN(SOCK_STREAM, 2), WHEN(SOCK_DGRAM, 1),   RETURN(NOTIFY),
    RETURN(ALLOW)};

/* The ring of a packet socket is as large as one likes, and nobody's memory either. For
 * filters that the kernel compiles the host has one room for everybody (bpf_jit_limit): when
 * it is full, no sandbox gets the filter that this file makes. */
static const struct sock_filter on_setsockopt[] = {LOW(1),
                                                   WHEN(SOL_PACKET, 5),
                                                   UNLESS(SOL_SOCKET, 9),
                                                   LOW(2),
                                                   WHEN(SO_ATTACH_FILTER, 6),
                                                   WHEN(SO_ATTACH_REUSEPORT_CBPF, 5),
                                                   RETURN(ALLOW),
                                                   LOW(2),
                                                   WHEN(PACKET_FANOUT_DATA, 2),
                                                   WHEN(PACKET_RX_RING, 1),
                                                   UNLESS(PACKET_TX_RING, 1),
                                                   RETURN(ERRNO(EPERM)),
                                                   RETURN(ALLOW)};

/* TIOCSTI pushes characters into somebody else's input; it has no honest use. */
static const struct sock_filter on_ioctl[] = {LOW(1), UNLESS(TIOCSTI, 1), RETURN(ERRNO(ENOSYS)),
                                              RETURN(ALLOW)};

/* A core_pattern that names a program starts it on the host, as root, whatever
 * RLIMIT_CORE says, but for the value 1 (core(5)): init sets that, and nobody
 * changes it. Who tries is told that it worked: sudo sets it on every call. */
static const struct sock_filter on_setrlimit[] = {LOW(0), UNLESS(RLIMIT_CORE, 1), RETURN(ERRNO(0)),
                                                  RETURN(ALLOW)};
static const struct sock_filter on_prlimit[] = {
    LOW(1),     UNLESS(RLIMIT_CORE, 5), LOW(2),       UNLESS(0, 2), HIGH(2),
    WHEN(0, 1), RETURN(ERRNO(0)),       RETURN(ALLOW)};

/* Init answers these, so that `df` shows the sandbox's own disk. */
static const struct sock_filter on_statfs[] = {RETURN(NOTIFY)};

/* Calls whose answer depends on what they ask for. */
static const struct special {
    const char *name;
    const struct sock_filter *code;
    size_t n;
} specials[] = {
    {"socket", on_socket, ARRAY_LEN(on_socket)},
    {"setsockopt", on_setsockopt, ARRAY_LEN(on_setsockopt)},
    {"ioctl", on_ioctl, ARRAY_LEN(on_ioctl)},
    {"setrlimit", on_setrlimit, ARRAY_LEN(on_setrlimit)},
    {"prlimit64", on_prlimit, ARRAY_LEN(on_prlimit)},
    {"statfs", on_statfs, ARRAY_LEN(on_statfs)},
    {"fstatfs", on_statfs, ARRAY_LEN(on_statfs)},
};

static const struct sock_filter unknown = RETURN(ERRNO(ENOSYS)), known = RETURN(ALLOW),
                                dangerous = RETURN(ERRNO(EPERM));

/* What answers for the numbers from `first` up to the next run's. */
struct run {
    unsigned first;
    const struct sock_filter *code;
    size_t n;
};

struct program {
    struct sock_filter code[INSTRUCTIONS_MAX];
    size_t n;
    bool full;
};

/* A name libseccomp does not know (an old library) is left out: it then answers
 * ENOSYS, which is what an old kernel would say. */
static void answer(struct run table[NR_END], const char *name, const struct sock_filter *code,
                   size_t n)
{
    int nr = seccomp_syscall_resolve_name(name);

    if (nr >= 0 && (unsigned)nr < NR_END)
        table[nr] = (struct run){(unsigned)nr, code, n};
}

static size_t find_runs(struct run table[NR_END])
{
    size_t n = 0;

    for (unsigned nr = 0; nr < NR_END; nr++)
        table[nr] = (struct run){nr, &unknown, 1};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        answer(table, allowed[i], &known, 1);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        answer(table, refused[i], &dangerous, 1);
    for (size_t i = 0; i < ARRAY_LEN(specials); i++)
        answer(table, specials[i].name, specials[i].code, specials[i].n);
    for (unsigned nr = 0; nr < NR_END; nr++)
        if (n == 0 || table[n - 1].code != table[nr].code)
            table[n++] = table[nr];
    return n;
}

static void put(struct program *p, struct sock_filter f)
{
    p->full = p->n == INSTRUCTIONS_MAX;
    if (!p->full)
        p->code[p->n++] = f;
}

/* Below the first number of the right half comes the left one, which is next. */
static void search(struct program *p, const struct run *runs, size_t n)
{
    size_t jump = p->n, half = n / 2, left;

    if (n == 1) {
        for (size_t i = 0; i < runs->n; i++)
            put(p, runs->code[i]);
        return;
    }
    put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, runs[half].first, 0, 1));
    put(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0)); /* to the right half */
    search(p, runs, half);
    left = p->n - jump - 2;
    if (left <= JUMP_MAX && !p->full) { /* nearly always: then one jump is enough */
        memmove(&p->code[jump + 1], &p->code[jump + 2], left * sizeof(p->code[0]));
        p->n--;
        p->code[jump].jt = (unsigned char)left;
        p->code[jump].jf = 0;
    } else if (!p->full) {
        p->code[jump + 1].k = (uint32_t)left;
    }
    search(p, runs + half, n - half);
}

static void write_program(struct program *p)
{
    struct run runs[NR_END];
    size_t n = find_runs(runs);

    put(p, (struct sock_filter)LOAD(arch));
    put(p, (struct sock_filter)WHEN(AUDIT_ARCH_X86_64, 1));
    put(p, dangerous);
    put(p, (struct sock_filter)LOAD(nr));
    put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    put(p, dangerous);
    search(p, runs, n);
}

int filter_compile(struct keeper *k, struct err *e)
{
    struct program p = {.n = 0};

    write_program(&p);
    if (p.full)
        return err_set(e, ERR_INTERNAL, "the filter has more than %zu instructions",
                       INSTRUCTIONS_MAX);
    k->filter_len = p.n * sizeof(p.code[0]);
    k->filter = malloc(k->filter_len);
    if (k->filter == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    memcpy(k->filter, p.code, k->filter_len);
    return 0;
}
