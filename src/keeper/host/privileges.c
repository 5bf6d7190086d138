/* privileges.c - the keeper runs as root with a part of root's capabilities. */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "keeper/host.h"

static const int kept[] = {
    CAP_SYS_ADMIN,       /* namespaces, mounts, quotas */
    CAP_SETUID,          /* id maps; acting as a range's first id */
    CAP_SETGID,          /* likewise */
    CAP_SETPCAP,         /* taking capabilities from the front */
    CAP_CHOWN,           /* cgroups, sockets, the files of a template */
    CAP_FOWNER,          /* likewise */
    CAP_FSETID,          /* setgid programs of a template */
    CAP_DAC_OVERRIDE,    /* removing files that a tenant made unreadable */
    CAP_DAC_READ_SEARCH, /* likewise */
    CAP_SETFCAP,      /* an overlay acts with the rights of its maker: setcap inside needs this */
    CAP_MKNOD,        /* /dev */
    CAP_KILL,         /* ending the front */
    CAP_SYS_PTRACE,   /* opening the namespaces of an init */
    CAP_SYS_RESOURCE, /* the hard limit of open files */
    CAP_SYS_CHROOT,   /* entering the mount namespace of a sandbox, if the operator offers mounts */
    CAP_NET_ADMIN,    /* veths, routes, the firewall's table, forwarding */
    CAP_NET_RAW,      /* the older iptables opens a raw socket to change a rule (beside.h) */
};

int privileges_drop_one(int cap, struct err *e)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2];

    if (syscall(SYS_capget, &h, d) < 0)
        return err_sys(e, "read our capabilities");
    d[cap / 32].permitted &= ~(1u << (cap % 32));
    d[cap / 32].effective &= ~(1u << (cap % 32));
    if (prctl(PR_CAPBSET_DROP, cap) < 0 || syscall(SYS_capset, &h, d) < 0)
        return err_sys(e, "drop capability %d", cap);
    return 0;
}

int privileges_drop(struct keeper *k, struct err *e)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct have[2], want[2] = {{0}};

    (void)k;
    if (syscall(SYS_capget, &h, have) < 0)
        return err_sys(e, "read our capabilities");
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        want[kept[i] / 32].permitted |= have[kept[i] / 32].permitted & (1u << (kept[i] % 32));
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        if ((want[cap / 32].permitted & (1u << (cap % 32))) == 0 && prctl(PR_CAPBSET_DROP, cap) < 0)
            return err_sys(e, "drop capability %d", cap);
    for (int i = 0; i < 2; i++)
        want[i].effective = want[i].permitted;
    return syscall(SYS_capset, &h, want) < 0 ? err_sys(e, "drop capabilities") : 0;
}
