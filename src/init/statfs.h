/* statfs.h - so that `df` shows the sandbox's disk, not the host's.
 *
 * btrfs answers statfs with the size of the whole filesystem whatever a
 * subvolume's quota is. The system call filter therefore hands statfs and fstatfs
 * of everybody inside to init, which answers for the root filesystem from the
 * quota's own counters and lets the kernel answer for everything else.
 *
 * Init itself must never call statfs: it would wait for itself. What sockets.h is asked
 * comes the same way, and is answered here. */
#ifndef INIT_STATFS_H
#define INIT_STATFS_H

#include "base/err.h"
#include "loop/loop.h"

struct statfs_watch {
    int listener;          /* from loading the filter */
    int used_fd, quota_fd; /* files with one number each, in bytes */
    uint64_t root_mount;   /* id of the mount that is / */
    struct loop_io io;
    struct loop *loop;
};

int statfs_start(struct statfs_watch *w, struct loop *loop, struct err *e);

#endif
