/* limits.h - sched_getaffinity and sysinfo, answered with the sandbox's own limits.
 *
 * `nproc`, `make -j$(nproc)`, Java, Go and Node ask the first how many processors there are, and
 * know nothing of a quota; qsort, sort and Java ask the second how much memory. */
#ifndef INIT_SYSCALLS_LIMITS_H
#define INIT_SYSCALLS_LIMITS_H

#include "init/syscalls/caller.h"

/* As many processors as the limit is worth, rounded up: the first of those that the task may run
 * on. */
int limits_on_affinity(const struct caller *c);
int limits_on_sysinfo(const struct caller *c);

#endif
