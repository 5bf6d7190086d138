/* statfs.h - the system calls that the seccomp filter hands to init: statfs, and others.
 *
 * `df` must show the sandbox's disk, not the host's. btrfs answers statfs with the size of the
 * whole filesystem, whatever a subvolume's quota is. So the filter hands statfs and fstatfs of
 * all processes inside to init, which answers for the root filesystem from the quota's
 * counters, and lets the kernel answer for everything else. Other calls come the same way: see
 * sockets.h, filters.h and limits.h.
 *
 * Init itself must never make one of these calls: it would wait for itself. */
#ifndef INIT_SYSCALLS_STATFS_H
#define INIT_SYSCALLS_STATFS_H

#include "base/err.h"
#include "init/limits/files.h"
#include "loop/loop.h"

struct statfs_watch {
    int listener;          /* from loading the filter */
    int used_fd, quota_fd; /* files with one number each, in bytes */
    uint64_t root_mount;   /* id of the mount that is / */
    uint64_t pass, memory; /* caller.h has these three */
    struct limits_source limits;
    struct limits_load load;
    struct limits_files *files;
    int diag_fd;
    struct loop_io io;
    struct loop *loop;
};

int statfs_start(struct statfs_watch *w, struct loop *loop, struct err *e);

#endif
