/* serve.h - init at work: takes the front's connections, serves their requests, and reaps
 * processes, until the sandbox ends. */
#ifndef INIT_SERVE_SERVE_H
#define INIT_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "init/syscalls/statfs.h"

struct serve_opts {
    int listen_fd;       /* listening AF_UNIX SOCK_STREAM; only the front can connect */
    int run_fd;          /* directory of the cgroup `run`, in which groups are made */
    int oom_fd;          /* file with the sandbox's `oom_kill N`; 0 or less: none */
    const char *boot_id; /* borrowed, never freed */
    uint64_t booted_ms;
    int helper_fd;               /* cove-helper, to execute; -1: there is none */
    uint64_t nofile;             /* RLIMIT_NOFILE of every command; 0: the same as ours */
    const char *session_root;    /* a directory for sessions; NULL: SESSION_ROOT */
    bool ends;                   /* SIGTERM kills all it started and ends it */
    struct statfs_watch *statfs; /* NULL: no filter hands us system calls */
};

/* Resets ignored signals to SIG_DFL: commands would inherit them. Once, in the nursery: the
 * inits inherit the result. */
void serve_default_signals(void);

/* Returns only if it cannot start: -1, and stderr says why. Commands inherit no fd above 2 and
 * umask 022; all signals come to its loop. */
int serve_run(const struct serve_opts *o);

#endif
