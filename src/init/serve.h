/* serve.h - init at work: takes the front's connections, runs what they ask for,
 * and buries the dead, until the sandbox ends. */
#ifndef INIT_SERVE_H
#define INIT_SERVE_H

#include <stdint.h>

#include "init/statfs.h"

struct serve_opts {
    int listen_fd;       /* listening AF_UNIX SOCK_STREAM; only the front can connect */
    int run_fd;          /* directory of the cgroup `run`, in which groups are made */
    int oom_fd;          /* file with the sandbox's `oom_kill N`; 0 or less: none */
    const char *boot_id; /* borrowed for ever */
    uint64_t booted_ms;
    int helper_fd;               /* cove-helper, to execute; -1: there is none */
    uint64_t nofile;             /* RLIMIT_NOFILE of every command; 0: as ours was */
    const char *session_root;    /* a directory for sessions; NULL: SESSION_ROOT */
    struct statfs_watch *statfs; /* NULL: nobody hands us statfs */
};

/* Commands inherit dispositions that ignore, so none does. Once, in whoever bears those
 * that serve: they inherit them too. */
void serve_default_signals(void);

/* Never returns, except -1 when it cannot begin; stderr then says why. Leaves no
 * fd open above 2 in any command, sets umask 022 and takes over all signals. */
int serve_run(const struct serve_opts *o);

#endif
