#include "unit.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "keeper/host.h"

#define NOTIFY SECCOMP_RET_USER_NOTIF
#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(n) (SECCOMP_RET_ERRNO | (uint32_t)(n))
#define LENGTH_MAX 200u /* the kernel translates it for every sandbox */

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
        {SYS_read, ALLOW},          {SYS_write, ALLOW},
        {SYS_clone3, ALLOW},        {SYS_execve, ALLOW},
        {SYS_mount, ERRNO(EPERM)},  {SYS_setns, ERRNO(EPERM)},
        {SYS_bpf, ERRNO(EPERM)},    {SYS_unshare, ERRNO(EPERM)},
        {SYS_keyctl, ERRNO(EPERM)}, {SYS_io_uring_setup, ERRNO(EPERM)},
        {SYS_ptrace, ALLOW},        {SYS_io_setup, ERRNO(ENOSYS)},
        {1023, ERRNO(ENOSYS)},      {1024, ERRNO(ENOSYS)},
        {100000, ERRNO(ENOSYS)},    {SYS_statfs, NOTIFY},
        {SYS_fstatfs, NOTIFY},
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
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_TX_RING | 1ull << 32), ERRNO(EPERM));
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_PACKET, PACKET_STATISTICS), ALLOW);
    CHECK_INT(ask(&k, SYS_setsockopt, 0, SOL_SOCKET, PACKET_RX_RING), ALLOW);
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
