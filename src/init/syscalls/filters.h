/* filters.h - a limit for the seccomp filters that tenants install.
 *
 * The host has one room for all filters that the kernel compiles (net.core.bpf_jit_limit). One
 * of 4,096 instructions takes up to 80 KiB of it, a process may have eight, and nothing counts to
 * a sandbox: two sandboxes could fill the room, and then no sandbox can be made. So the filter
 * hands the installing calls to init, which counts what the threads of its sandbox have. */
#ifndef INIT_SYSCALLS_FILTERS_H
#define INIT_SYSCALLS_FILTERS_H

#include "init/syscalls/caller.h"

/* Of all threads of a sandbox; one that is shared by many counts for each. Then ENOMEM. */
#define FILTERS_MAX 64u

int filters_on_install(const struct caller *c);
/* How many a text like /proc/PID/status says, beyond the sandbox's own. */
unsigned filters_in(const char *status);

#endif
