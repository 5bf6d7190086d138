/* cgroups.h - the sandbox's own cgroups at /sys/fs/cgroup, read-only.
 *
 * Language runtimes read their limits there. Init is in the sandbox's groups and has a cgroup
 * namespace, so what it mounts begins at them: no path leads to another sandbox's. Nothing can be
 * written, and no process inside can mount. What belongs to the sandbox's root is covered (boot.c),
 * the groups of commands and cgroup.procs: an owner can take a lease on a file, also on one that is
 * read-only for him, and init or the keeper would wait for 45 s when they open it. */
#ifndef INIT_BOOT_CGROUPS_H
#define INIT_BOOT_CGROUPS_H

#include "init/boot/boot.h"

/* A step of boot.c, before the pivot. A host whose hierarchies cannot be mounted gives an empty
 * directory. */
int cgroups_mount(struct boot *b, struct err *e);

#endif
