/* files.h - /proc/meminfo and the like, with the sandbox's own values.
 *
 * Each is covered with a regular file of a tmpfs, on which init holds a lease: an open by a
 * program inside waits until init has written the present values and given the lease up. So reads
 * are new, and nothing is done while no program reads. While a file stays open no lease can be had
 * on it: it is rewritten, after 10 ms and then up to a second apart.
 *
 * WHY NOT FUSE: a read of a frozen file system cannot be interrupted. An open that waits for a lease
 * can, and is begun again after the thaw.
 *
 * Init must not open one of these files by its path: it would wait for itself. */
#ifndef INIT_LIMITS_FILES_H
#define INIT_LIMITS_FILES_H

#include "base/err.h"
#include "init/limits/values.h"
#include "loop/loop.h"

enum {
    LIMITS_MEMINFO,
    LIMITS_CPUINFO,
    LIMITS_STAT,
    LIMITS_LOADAVG,
    LIMITS_UPTIME,
    LIMITS_ONLINE,
    LIMITS_FILE_COUNT
};

struct limits_files {
    int fds[LIMITS_FILE_COUNT]; /* -1: it is not covered */
    int cpuinfo_fd;             /* the kernel's */
    bool leased[LIMITS_FILE_COUNT];
    const struct limits_source *source;
    struct limits_load *load;
    struct loop *loop;
    struct loop_timer timer;
    unsigned wait_ms; /* of the timer, longer each time */
};

/* A step of the boot, as root inside with its mounts in place: covers the files. `dir` is on a tmpfs
 * that only we write. */
int limits_files_cover(struct limits_files *f, const char *dir, struct err *e);
/* `source` and `load` are borrowed for good. */
int limits_files_start(struct limits_files *f, struct loop *loop,
                       const struct limits_source *source, struct limits_load *load, struct err *e);

#endif
