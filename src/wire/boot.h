/* boot.h - the message with which the keeper starts an init.
 *
 * Sent once over a SOCK_SEQPACKET pair that init has from its start (fd BOOT_FD), with
 * the fds of enum boot_fd attached in that order. Init answers with one struct
 * boot_answer and the pair is closed: from then on keeper and init share no connection. Both
 * ends are always of one build (the keeper carries its init), so this is a plain
 * struct; only INIT_VERSION must agree. */
#ifndef WIRE_BOOT_H
#define WIRE_BOOT_H

#include <stdint.h>

#define BOOT_FD 3
/* The gateway of a sandbox with a network: no host has this address, since eth0 leads only
 * to the host's end of the veth (keeper/network/netlink.c).
 * Name servers are this address and the next; see keeper/network/firewall.c. */
#define BOOT_GATEWAY 0xa9fe0101u /* 169.254.1.1 */
#define BOOT_RESOLV_CONF "nameserver 169.254.1.1\nnameserver 169.254.1.2\n"
#define BOOT_FILTER_MAX (24u << 10) /* bytes of compiled seccomp filter */

enum boot_fd {
    BOOT_LISTEN, /* bound socket; init calls listen() on it, so that its peers see init */
    BOOT_ROOT,   /* detached mount: the root filesystem */
    BOOT_DEV,    /* detached mount: /dev */
    BOOT_USED,   /* file with one number: bytes used on the disk */
    BOOT_QUOTA,  /* likewise: bytes that may be used; both empty without a limit */
    BOOT_OOM,    /* file with a line `oom_kill N` about the whole sandbox */
    BOOT_RUN,    /* the cgroup in which init makes one per command, in a mount of its own */
    BOOT_HELPER, /* sealed memfd of cove-helper, to execute (INIT_START_HELPER) */
    BOOT_CLOCK,  /* init's own timens_offsets of /proc; another file if the kernel has none */
    BOOT_FD_COUNT
};

struct boot_message {
    uint32_t version; /* INIT_VERSION */
    uint32_t filter_len;
    uint64_t nofile;
    uint64_t shm_bytes;  /* size of /dev/shm */
    uint32_t cgroups_v1; /* bit per controller that a v1 hierarchy has: cpu, memory, pids */
    uint32_t ptys;       /* /dev/pts max= */
    uint32_t address;    /* of eth0, host byte order; 0: loopback only */
    uint64_t pass;       /* by which the filter knows init's own calls (keeper/stages/filter.c) */
    uint64_t bandwidth;  /* bytes per second that eth0 may send; 0: no limit */
    char boot_id[40];
    char hostname[64];
    uint8_t filter[BOOT_FILTER_MAX]; /* only filter_len bytes are sent */
};

struct boot_answer {
    uint32_t ok;
    uint32_t kind;   /* enum err_kind, when !ok */
    char error[500]; /* NUL-terminated, when !ok */
};

#endif
