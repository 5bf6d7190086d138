#include "unit.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "keeper/host.h"

#define NOTIFY SECCOMP_RET_USER_NOTIF
#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(n) (SECCOMP_RET_ERRNO | (uint32_t)(n))
#define LENGTH_MAX 290u /* the kernel translates it for every sandbox */

/* The part of the machine that the kernel's own look at a filter knows: what uses
 * more of it makes every system call slower. */
static uint32_t run(const struct keeper *k, const struct seccomp_data *d)
{
    const struct sock_filter *f = (const void *)k->filter, *end = f + k->filter_len / sizeof(*f);
    uint32_t acc = 0;

    for (;; f++) {
        CHECK(f < end);
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            CHECK(f->k % 4 == 0 && f->k + 4 <= sizeof(*d));
            memcpy(&acc, (const char *)d + f->k, sizeof(acc));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            acc &= f->k;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        case BPF_JMP | BPF_JA:
            f += f->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            f += acc == f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            f += acc >= f->k ? f->jt : f->jf;
            break;
        default:
            fail_msg("instruction %#x", f->code);
        }
    }
}

static struct keeper compiled(void)
{
    struct keeper k = {0};
    struct err e;

    CHECK_INT(filter_compile(&k, &e), 0);
    return k;
}

static uint32_t ask(const struct keeper *k, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data d = {
        .nr = (int)nr, .arch = AUDIT_ARCH_X86_64, .args = {a0, a1, a2, 0, 0, 0}};

    return run(k, &d);
}

TEST(every_system_call_number_gets_its_verdict)
{
    static const struct {
        long nr;
        uint32_t want;
    } rows[] = {
        {SYS_read, ALLOW},
        {SYS_write, ALLOW},
        {SYS_clone3, ALLOW},
        {SYS_execve, ALLOW},
        {SYS_mount, ERRNO(EPERM)},
        {SYS_setns, ERRNO(EPERM)},
        {SYS_bpf, ERRNO(EPERM)},
        {SYS_unshare, ERRNO(EPERM)},
        {SYS_keyctl, ERRNO(EPERM)},
        {SYS_io_uring_setup, ERRNO(EPERM)},
        {SYS_ptrace, ALLOW},
        {SYS_io_setup, ERRNO(ENOSYS)},
        {1023, ERRNO(ENOSYS)},
        {1024, ERRNO(ENOSYS)},
        {100000, ERRNO(ENOSYS)},
        {SYS_statfs, NOTIFY},
        {SYS_fstatfs, NOTIFY},
        {SYS_sysinfo, NOTIFY},
        {SYS_sched_getaffinity, NOTIFY},
    };
    struct keeper k = compiled();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(ask(&k, rows[i].nr, 0, 0, 0), rows[i].want);
    CHECK(k.filter_len / sizeof(struct sock_filter) <= LENGTH_MAX);
    free(k.filter);
}

TEST(x32_and_i386_calls_are_refused)
{
    struct keeper k = compiled();
    struct seccomp_data d = {.nr = SYS_read, .arch = AUDIT_ARCH_I386};

    CHECK_INT(run(&k, &d), ERRNO(EPERM));
    CHECK_INT(ask(&k, 0x40000000 | SYS_read, 0, 0, 0), ERRNO(EPERM));
    CHECK_INT(ask(&k, -1, 0, 0, 0), ERRNO(EPERM));
    free(k.filter);
}

/* SOCK_PACKET is a type of AF_INET's that makes a packet socket. */
TEST(sockets_whose_memory_no_cgroup_counts_need_permission_of_init)
{
    const int flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK};
    struct keeper k = compiled();

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        uint64_t with = (uint64_t)flags[i];

        CHECK_INT(ask(&k, SYS_socket, AF_UNIX, SOCK_STREAM | with, 0), ALLOW);
        CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_STREAM | with, 0), ALLOW);
        CHECK_INT(ask(&k, SYS_socket, AF_INET6, SOCK_DGRAM | with, 0), ALLOW);
        CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_RAW | with, 0), NOTIFY);
        CHECK_INT(ask(&k, SYS_socket, AF_INET6, SOCK_RAW | with, 0), NOTIFY);
        CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_PACKET | with, 0), NOTIFY);
        CHECK_INT(ask(&k, SYS_socket, AF_PACKET, SOCK_DGRAM | with, 0), NOTIFY);
        CHECK_INT(ask(&k, SYS_socket, AF_NETLINK, SOCK_DGRAM | with, 0), NOTIFY);
    }
    free(k.filter);
}

/* The sixth argument shows that a call is init's own. */
static uint32_t ask6(const struct keeper *k, long nr, uint64_t a1, uint64_t a2, uint64_t a5)
{
    struct seccomp_data d = {
        .nr = (int)nr, .arch = AUDIT_ARCH_X86_64, .args = {3, a1, a2, 0, 4, a5}};

    return run(k, &d);
}

TEST(init_is_asked_to_listen_and_for_the_size_of_buffers_but_not_by_itself)
{
    struct keeper k = compiled(), other = compiled();
    uint64_t pass = k.filter_pass;

    CHECK(pass != 0 && pass != other.filter_pass);
    for (int i = 0; i < 66; i++) { /* every bit counts; 64 and 65: nothing, and all of them */
        uint64_t with = i < 64 ? pass ^ 1ull << i : i == 64 ? 0 : ~pass;

        CHECK_INT(ask6(&k, SYS_listen, 128, 0, with), NOTIFY);
        CHECK_INT(ask6(&k, SYS_setsockopt, SOL_SOCKET, SO_RCVBUF, with), NOTIFY);
        CHECK_INT(ask6(&k, SYS_setsockopt, SOL_SOCKET, SO_SNDBUF, with), NOTIFY);
    }
    CHECK_INT(ask6(&k, SYS_listen, 128, 0, pass), ALLOW);
    CHECK_INT(ask6(&k, SYS_setsockopt, SOL_SOCKET, SO_RCVBUF, pass), ALLOW);
    CHECK_INT(ask6(&k, SYS_setsockopt, SOL_SOCKET, SO_SNDBUF, pass), ALLOW);
    CHECK_INT(ask6(&k, SYS_setsockopt, SOL_SOCKET, SO_ATTACH_FILTER, pass), ERRNO(EPERM));
    CHECK_INT(ask6(&other, SYS_listen, 128, 0, pass), NOTIFY);
    free(k.filter);
    free(other.filter);
}

TEST(init_is_asked_for_multicast_groups_and_seccomp_filters)
{
    static const struct {
        long nr;
        uint64_t a0, a1, a2;
        uint32_t want;
    } rows[] = {
        {SYS_setsockopt, 3, IPPROTO_IP, IP_ADD_MEMBERSHIP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IP, MCAST_JOIN_GROUP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IP, IP_DROP_MEMBERSHIP, ALLOW},
        {SYS_setsockopt, 3, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IPV6, IPV6_JOIN_ANYCAST, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IPV6, MCAST_JOIN_GROUP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IPV6 | 1ull << 32, MCAST_JOIN_SOURCE_GROUP, NOTIFY},
        {SYS_setsockopt, 3, IPPROTO_IPV6, IPV6_V6ONLY, ALLOW},
        {SYS_setsockopt, 3, IPPROTO_TCP, TCP_NODELAY, ALLOW},
        {SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, NOTIFY},
        {SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 0, ALLOW},
        {SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, NOTIFY},
        {SYS_prctl, PR_SET_SECCOMP | 1ull << 32, SECCOMP_MODE_FILTER, 0, NOTIFY},
        {SYS_prctl, PR_SET_NAME, 0, 0, ALLOW},
    };
    struct keeper k = compiled();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(ask(&k, rows[i].nr, rows[i].a0, rows[i].a1, rows[i].a2), rows[i].want);
    free(k.filter);
}

TEST(families_protocols_and_pairs_that_are_refused)
{
    static const uint64_t loaded[] = {33, 115, 132, 256}; /* DCCP, L2TP, SCTP, SMC */
    struct keeper k = compiled();

    for (size_t i = 0; i < ARRAY_LEN(loaded); i++) {
        CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_STREAM, loaded[i]), ERRNO(EPROTONOSUPPORT));
        CHECK_INT(ask(&k, SYS_socket, AF_INET6, SOCK_DGRAM, loaded[i]), ERRNO(EPROTONOSUPPORT));
    }
    CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP), ALLOW);
    CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP), ALLOW);
    CHECK_INT(ask(&k, SYS_socket, AF_INET, SOCK_SEQPACKET, 0), ERRNO(ESOCKTNOSUPPORT));
    CHECK_INT(ask(&k, SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0), ALLOW);
    for (uint64_t family = 0; family < 50; family++)
        if (family != AF_UNIX)
            CHECK_INT(ask(&k, SYS_socketpair, family, SOCK_STREAM, 0), ERRNO(ENOSYS));
    free(k.filter);
}

TEST(only_clones_and_deduplication_of_btrfs_pass_the_filter)
{
    struct keeper k = compiled();

    CHECK_INT(ask(&k, SYS_ioctl, 3, FICLONE, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_ioctl, 3, FICLONERANGE, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_ioctl, 3, FIDEDUPERANGE, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_ioctl, 3, FS_IOC_GETFLAGS, 0), ALLOW);
    for (uint64_t nr = 0; nr < 256; nr++)
        for (uint64_t dir = 0; dir < 4; dir++) {
            uint64_t cmd = dir << 30 | 4096u << 16 | BTRFS_IOCTL_MAGIC << 8 | nr;

            CHECK_INT(ask(&k, SYS_ioctl, 3, cmd, 0), ERRNO(ENOTTY));
            CHECK_INT(ask(&k, SYS_ioctl, 3, cmd | 1ull << 32, 0), ERRNO(ENOTTY));
        }
    free(k.filter);
}

TEST(forbidden_socket_options_are_refused)
{
    struct keeper k = compiled();

    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_SOCKET, SO_ATTACH_FILTER), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_SOCKET, SO_DETACH_FILTER), ALLOW);
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_SOCKET, SO_REUSEADDR), ALLOW);
    CHECK_INT(ask(&k, SYS_setsockopt, 0, IPPROTO_TCP, SO_ATTACH_FILTER), ALLOW);
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_FANOUT_DATA), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_RX_RING), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_ADD_MEMBERSHIP), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, IPPROTO_TCP, TCP_LINGER2), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, IPPROTO_TCP, TCP_MD5SIG), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, IPPROTO_IPV6, IPV6_HOPOPTS), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_SOCKET, 72 /* SO_BUF_LOCK */), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_TX_RING | 1ull << 32), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_STATISTICS), ALLOW);
    CHECK_INT(ask(&k, SYS_setsockopt, 0, IPPROTO_UDP, TCP_LINGER2), ALLOW);
    free(k.filter);
}

/* The kernel takes an int: the upper 32 bits must not hide anything. */
TEST(arguments_are_compared_in_the_32_bits_that_the_kernel_uses)
{
    const uint64_t above = 1ull << 32;
    struct keeper k = compiled();

    CHECK_INT(ask(&k, SYS_socket, AF_INET6, SOCK_STREAM, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_socket, AF_VSOCK, 0, 0), ERRNO(ENOSYS));
    CHECK_INT(ask(&k, SYS_socket, AF_VSOCK | above, 0, 0), ERRNO(ENOSYS));
    CHECK_INT(ask(&k, SYS_ioctl, 0, TCGETS, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_ioctl, 0, TIOCSTI, 0), ERRNO(ENOSYS));
    CHECK_INT(ask(&k, SYS_ioctl, 0, TIOCSTI | above, 0), ERRNO(ENOSYS));
    CHECK_INT(ask(&k, SYS_setrlimit, RLIMIT_NOFILE, 0, 0), ALLOW);
    CHECK_INT(ask(&k, SYS_setrlimit, RLIMIT_CORE, 0, 0), ERRNO(0));
    CHECK_INT(ask(&k, SYS_setrlimit, RLIMIT_CORE | above, 0, 0), ERRNO(0));
    CHECK_INT(ask(&k, SYS_prlimit64, 0, RLIMIT_CORE, 0), ALLOW); /* only asks */
    CHECK_INT(ask(&k, SYS_prlimit64, 0, RLIMIT_CORE, 4096), ERRNO(0));
    CHECK_INT(ask(&k, SYS_prlimit64, 0, RLIMIT_CORE | above, above), ERRNO(0));
    CHECK_INT(ask(&k, SYS_prlimit64, 0, RLIMIT_NOFILE, 4096), ALLOW);
    free(k.filter);
}
