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
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/if_packet.h>
#include <linux/in6.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/id.h"
#include "keeper/host.h"

/* clang-format off */
/* Not here: io_setup and what belongs to it. All programs of the host share
 * one number of requests (fs.aio-max-nr), and one sandbox could use it up; programs that know
 * these calls work without them. */
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
    "pidfd_send_signal", "process_vm_readv", "process_vm_writev", "ptrace",
    "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
    "sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list", "set_thread_area",
    "set_tid_address", "setpgid", "setpriority", "setsid", "sigaltstack", "tgkill",
    "time", "times", "tkill", "vfork", "wait4", "waitid", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "chroot",
    /* identity */
    "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid", "setfsgid",
    "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid",
    /* time and the machine */
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getcpu", "getitimer", "getrandom",
    "gettimeofday", "nanosleep", "setitimer", "timer_create", "timer_delete",
    "timer_getoverrun", "timer_gettime", "timer_settime", "uname", "personality",
    /* sockets; socket() itself, socketpair, listen and setsockopt are below, with ioctl, statfs,
     * sysinfo, sched_getaffinity, prctl, seccomp and setting limits */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "shutdown",
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

/* Init makes some calls for a process inside, and the filter is on init too. A call of init's own
 * has a number in its sixth argument, which these calls do not use: chosen when the keeper
 * starts, sent in the boot message, readable nowhere inside. A tenant that guessed it could exceed
 * the bounds of init/syscalls/sockets.h, and no more. put() replaces the two words. */
#define PASS_LOW 0x70617373u
#define PASS_HIGH 0x68696768u

/* Data in a netlink, packet or raw socket is charged to no cgroup, so init is asked
 * whether there may be one more (init/syscalls/sockets.h). Of the internet's protocols only the
 * common ones: for the others the kernel would load modules. */
static const struct sock_filter on_socket[] = {LOW(0),
                                               WHEN(AF_UNIX, 22),
                                               WHEN(AF_NETLINK, 10),
                                               WHEN(AF_PACKET, 9),
                                               WHEN(AF_INET, 2),
                                               WHEN(AF_INET6, 1),
                                               RETURN(ERRNO(ENOSYS)),
                                               LOW(1),
                                               MASK(SOCK_TYPES),
                                               WHEN(SOCK_STREAM, 5),
                                               WHEN(SOCK_DGRAM, 4),
                                               WHEN(SOCK_RAW, 1),
                                               UNLESS(SOCK_PACKET, 1),
                                               RETURN(NOTIFY),
                                               RETURN(ERRNO(ESOCKTNOSUPPORT)),
                                               LOW(2),
                                               WHEN(0, 7),
                                               WHEN(IPPROTO_TCP, 6),
                                               WHEN(IPPROTO_UDP, 5),
                                               WHEN(IPPROTO_ICMP, 4),
                                               WHEN(IPPROTO_ICMPV6, 3),
                                               WHEN(IPPROTO_UDPLITE, 2),
                                               WHEN(IPPROTO_MPTCP, 1),
                                               RETURN(ERRNO(EPROTONOSUPPORT)),
                                               RETURN(ALLOW)};

/* socketpair() creates a socket of the family before it finds that most have no pairs. */
static const struct sock_filter on_socketpair[] = {LOW(0), WHEN(AF_UNIX, 1), RETURN(ERRNO(ENOSYS)),
                                                   RETURN(ALLOW)};

/* Connections that are not accepted yet are charged to no cgroup: sockets.h. */
static const struct sock_filter on_listen[] = {
    LOW(5), UNLESS(PASS_LOW, 3), HIGH(5), UNLESS(PASS_HIGH, 1), RETURN(ALLOW), RETURN(NOTIFY)};

#define OPTIONS_CODE 80u
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* Linux 5.16 */
#endif
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38 /* Linux 6.7 */
#endif

/* What setsockopt() is refused, or asked for; everything else is allowed. Rows of one level stand
 * together; on_setsockopt() makes the code. */
/* clang-format off */
enum option_answer { OPTION_REFUSE, OPTION_NOTIFY, OPTION_NOT_INIT };
static const struct option {
    uint32_t level, name;
    enum option_answer answer;
} options[] = {
    /* sizes of buffers, which init sets for the caller (sockets.h) */
    {SOL_SOCKET,   SO_RCVBUF,                OPTION_NOT_INIT},
    {SOL_SOCKET,   SO_SNDBUF,                OPTION_NOT_INIT},
    {SOL_SOCKET,   SO_BUF_LOCK,              OPTION_REFUSE}, /* unlocks what init has set */
    /* The host has one room for all filters that the kernel compiles (bpf_jit_limit): when it is
     * full, no sandbox gets the filter that this file makes. */
    {SOL_SOCKET,   SO_ATTACH_FILTER,         OPTION_REFUSE},
    {SOL_SOCKET,   SO_ATTACH_REUSEPORT_CBPF, OPTION_REFUSE},
    {SOL_PACKET,   PACKET_FANOUT_DATA,       OPTION_REFUSE},
    /* charged to no cgroup: a ring of any size, any number of addresses */
    {SOL_PACKET,   PACKET_RX_RING,           OPTION_REFUSE},
    {SOL_PACKET,   PACKET_TX_RING,           OPTION_REFUSE},
    {SOL_PACKET,   PACKET_ADD_MEMBERSHIP,    OPTION_REFUSE},
    /* groups, which init counts (sockets.h) */
    {IPPROTO_IP,   IP_ADD_MEMBERSHIP,        OPTION_NOTIFY},
    {IPPROTO_IP,   IP_ADD_SOURCE_MEMBERSHIP, OPTION_NOTIFY},
    {IPPROTO_IP,   MCAST_JOIN_GROUP,         OPTION_NOTIFY},
    {IPPROTO_IP,   MCAST_JOIN_SOURCE_GROUP,  OPTION_NOTIFY},
    {IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP,      OPTION_NOTIFY},
    {IPPROTO_IPV6, IPV6_JOIN_ANYCAST,        OPTION_NOTIFY},
    {IPPROTO_IPV6, MCAST_JOIN_GROUP,         OPTION_NOTIFY},
    {IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP,  OPTION_NOTIFY},
    {IPPROTO_IPV6, IPV6_2292PKTOPTIONS,      OPTION_REFUSE}, /* 2 KiB each, charged to no cgroup */
    {IPPROTO_IPV6, IPV6_HOPOPTS,             OPTION_REFUSE},
    {IPPROTO_IPV6, IPV6_RTHDRDSTOPTS,        OPTION_REFUSE},
    {IPPROTO_IPV6, IPV6_RTHDR,               OPTION_REFUSE},
    {IPPROTO_IPV6, IPV6_DSTOPTS,             OPTION_REFUSE},
    /* of these the host has one number for all: flow labels, and closed connections that are not
     * over (tcp_max_orphans), which TCP_LINGER2 keeps for two minutes */
    {IPPROTO_IPV6, IPV6_FLOWLABEL_MGR,       OPTION_REFUSE},
    {IPPROTO_TCP,  TCP_LINGER2,              OPTION_REFUSE},
    /* up to 128 KiB for one socket, charged to no cgroup (optmem_max) */
    {IPPROTO_TCP,  TCP_MD5SIG,               OPTION_REFUSE},
    {IPPROTO_TCP,  TCP_MD5SIG_EXT,           OPTION_REFUSE},
    {IPPROTO_TCP,  TCP_AO_ADD_KEY,           OPTION_REFUSE},
};
/* clang-format on */

static const struct sock_filter option_answers[][6] = {
    [OPTION_REFUSE] = {RETURN(ERRNO(EPERM))},
    [OPTION_NOTIFY] = {RETURN(NOTIFY)},
    [OPTION_NOT_INIT] = {LOW(5), UNLESS(PASS_LOW, 3), HIGH(5), UNLESS(PASS_HIGH, 1), RETURN(ALLOW),
                         RETURN(NOTIFY)},
};
static const size_t option_lengths[] = {
    [OPTION_REFUSE] = 1, [OPTION_NOTIFY] = 1, [OPTION_NOT_INIT] = 6};

/* One level: its options, ALLOW, and then each kind of answer that it needs, once. */
static size_t option_level(const struct option *rows, size_t n, struct sock_filter *out)
{
    size_t at[ARRAY_LEN(option_lengths)] = {0}, len = n + 3;

    out[1] = (struct sock_filter)LOW(2);
    out[n + 2] = (struct sock_filter)RETURN(ALLOW);
    for (size_t i = 0; i < n; i++) {
        enum option_answer a = rows[i].answer;

        if (at[a] == 0) {
            at[a] = len;
            memcpy(&out[len], option_answers[a], option_lengths[a] * sizeof(*out));
            len += option_lengths[a];
        }
        out[2 + i] = (struct sock_filter)WHEN(rows[i].name, (unsigned char)(at[a] - i - 3));
    }
    out[0] = (struct sock_filter)UNLESS(rows[0].level, (unsigned char)(len - 1));
    return len;
}

static size_t on_setsockopt(struct sock_filter out[OPTIONS_CODE])
{
    size_t len = 0, next;

    out[len++] = (struct sock_filter)LOW(1);
    for (size_t i = 0; i < ARRAY_LEN(options); i = next) {
        for (next = i + 1; next < ARRAY_LEN(options) && options[next].level == options[i].level;)
            next++;
        len += option_level(&options[i], next - i, &out[len]);
    }
    out[len++] = (struct sock_filter)RETURN(ALLOW);
    return len;
}

/* TIOCSTI pushes characters into the input of another process; no program needs it. Of btrfs only
 * cloning and deduplication, which other file systems have too: in a volume root inside could
 * make subvolumes, whose quota groups have no limit, and have the data of all sandboxes written out. */
static const struct sock_filter on_ioctl[] = {LOW(1),
                                              WHEN(FICLONE, 7),
                                              WHEN(FICLONERANGE, 6),
                                              WHEN(FIDEDUPERANGE, 5),
                                              WHEN(TIOCSTI, 3),
                                              MASK(0xff00),
                                              UNLESS(BTRFS_IOCTL_MAGIC << 8, 2),
                                              RETURN(ERRNO(ENOTTY)),
                                              RETURN(ERRNO(ENOSYS)),
                                              RETURN(ALLOW)};

/* A filter of a tenant's own takes from the same room as that of every sandbox, so init counts
 * them (init/syscalls/filters.h). */
static const struct sock_filter on_seccomp[] = {LOW(0), UNLESS(SECCOMP_SET_MODE_FILTER, 1),
                                                RETURN(NOTIFY), RETURN(ALLOW)};
static const struct sock_filter on_prctl[] = {LOW(0), UNLESS(PR_SET_SECCOMP, 1), RETURN(NOTIFY),
                                              RETURN(ALLOW)};

/* A core_pattern that names a program starts it on the host, as root, whatever
 * RLIMIT_CORE says, but for the value 1 (core(5)): init sets that, and no
 * process changes it. An attempt is answered with success: sudo sets it on every call. */
static const struct sock_filter on_setrlimit[] = {LOW(0), UNLESS(RLIMIT_CORE, 1), RETURN(ERRNO(0)),
                                                  RETURN(ALLOW)};
static const struct sock_filter on_prlimit[] = {
    LOW(1),     UNLESS(RLIMIT_CORE, 5), LOW(2),       UNLESS(0, 2), HIGH(2),
    WHEN(0, 1), RETURN(ERRNO(0)),       RETURN(ALLOW)};

/* Init answers these, so that `df` shows the sandbox's own disk. */
static const struct sock_filter on_statfs[] = {RETURN(NOTIFY)};

/* Likewise, with the sandbox's limits; it asks the kernel for the host's (init/syscalls/limits.h). */
static const struct sock_filter on_limits[] = {
    LOW(5), UNLESS(PASS_LOW, 3), HIGH(5), UNLESS(PASS_HIGH, 1), RETURN(ALLOW), RETURN(NOTIFY)};

/* Calls whose answer depends on what they ask for. */
static const struct special {
    const char *name;
    const struct sock_filter *code;
    size_t n;
} specials[] = {
    {"socket", on_socket, ARRAY_LEN(on_socket)},
    {"socketpair", on_socketpair, ARRAY_LEN(on_socketpair)},
    {"listen", on_listen, ARRAY_LEN(on_listen)},
    {"seccomp", on_seccomp, ARRAY_LEN(on_seccomp)},
    {"prctl", on_prctl, ARRAY_LEN(on_prctl)},
    {"ioctl", on_ioctl, ARRAY_LEN(on_ioctl)},
    {"setrlimit", on_setrlimit, ARRAY_LEN(on_setrlimit)},
    {"prlimit64", on_prlimit, ARRAY_LEN(on_prlimit)},
    {"sched_getaffinity", on_limits, ARRAY_LEN(on_limits)},
    {"sysinfo", on_limits, ARRAY_LEN(on_limits)},
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
    uint64_t pass;
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

static size_t find_runs(struct run table[NR_END], struct sock_filter setsockopt_code[OPTIONS_CODE])
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
    answer(table, "setsockopt", setsockopt_code, on_setsockopt(setsockopt_code));
    for (unsigned nr = 0; nr < NR_END; nr++)
        if (n == 0 || table[n - 1].code != table[nr].code)
            table[n++] = table[nr];
    return n;
}

static void put(struct program *p, struct sock_filter f)
{
    p->full = p->n == INSTRUCTIONS_MAX;
    if (BPF_CLASS(f.code) == BPF_JMP && f.k == PASS_LOW)
        f.k = (uint32_t)p->pass;
    if (BPF_CLASS(f.code) == BPF_JMP && f.k == PASS_HIGH)
        f.k = (uint32_t)(p->pass >> 32);
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
    struct sock_filter setsockopt_code[OPTIONS_CODE];
    struct run runs[NR_END];
    size_t n = find_runs(runs, setsockopt_code);

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

    id_bytes(&k->filter_pass, sizeof(k->filter_pass));
    p.pass = k->filter_pass;
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
