/* limits.c - see limits.h. */
#include "init/syscalls/limits.h"

#include <errno.h>
#include <linux/sysinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "init/limits/values.h"

#define MASK_MAX 1024u

/* The answer goes to the address in argument `arg`. Not to processes of ours whose memory init may
 * not open: cove-helper, and threads of init (with a sanitizer each asks when it ends). They
 * get the host's values. */
static int put(const struct caller *c, int arg, const void *from, size_t len)
{
    autofd int mem = caller_open_mem(c);

    if (mem < 0)
        return CALLER_CONTINUE;
    if (!caller_waits(c))
        return -ESRCH;
    return pwrite(mem, from, len, (off_t)c->q->data.args[arg]) == (ssize_t)len ? 0 : -EFAULT;
}

int limits_on_affinity(const struct caller *c)
{
    unsigned char mask[MASK_MAX] = {0}, all[MASK_MAX] = {0};
    int pid = (int)c->q->data.args[0], n;
    size_t len = (uint32_t)c->q->data.args[1];

    if (len > sizeof(mask))
        len = sizeof(mask);
    n = limits_affinity(c->limits, pid == 0 ? (int)c->q->pid : pid, mask, len);
    if (n < 0)
        return n;
    limits_affinity(c->limits, 0, all, sizeof(all));
    limits_first_bits(mask, (size_t)n,
                      limits_cpus(c->limits, limits_first_bits(all, sizeof(all), UINT32_MAX)));
    *c->value = n;
    return put(c, 2, mask, (size_t)n);
}

int limits_on_sysinfo(const struct caller *c)
{
    struct sysinfo si = {0};
    struct limits_memory m;
    struct limits_cpu cpu;

    limits_memory(c->limits, &m);
    limits_cpu(c->limits, c->load, &cpu);
    si.uptime = (__kernel_long_t)(cpu.up_ms / 1000);
    for (int i = 0; i < LIMITS_LOADS; i++)
        si.loads[i] = (__kernel_ulong_t)(cpu.load[i] * (1 << SI_LOAD_SHIFT));
    si.totalram = m.total;
    si.freeram = m.total - m.used;
    si.sharedram = m.shmem;
    si.procs = (uint16_t)(cpu.tasks > UINT16_MAX ? UINT16_MAX : cpu.tasks);
    si.mem_unit = 1;
    return put(c, 0, &si, sizeof(si));
}
