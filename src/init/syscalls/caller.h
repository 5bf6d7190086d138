/* caller.h - the process inside whose system call waits for init's answer.
 *
 * The call's numbers are fixed, but what they refer to is the tenant's to change at any time:
 * memory, and which file an fd is. So what was looked at must also be what is used: init reads a
 * value once, takes its own copy of an fd, and makes the call itself. Only where nothing depends
 * on that may the kernel go on with the call (CALLER_CONTINUE). */
#ifndef INIT_SYSCALLS_CALLER_H
#define INIT_SYSCALLS_CALLER_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#define CALLER_CONTINUE 1 /* of a handler: the kernel makes the call. Else 0, or -errno */

struct limits_source;
struct limits_load;

struct caller {
    int listener; /* of the filter */
    const struct seccomp_notif *q;
    uint64_t pass;   /* by which the filter knows init's own calls */
    uint64_t memory; /* that the sandbox may have, in bytes */
    const struct limits_source *limits;
    struct limits_load *load;
    int64_t *value; /* that the call returns if the answer is 0 */
    int diag_fd;    /* NETLINK_SOCK_DIAG, made before there was a filter; or -1 */
};

/* The caller's memory; -1: it is gone. By an fd: if the caller dies and its pid is used again,
 * this still refers to the old process. */
int caller_open_mem(const struct caller *c);
/* False: the caller was killed, and its pid may be another's. */
int caller_waits(const struct caller *c);
/* A copy of the caller's fd, which belongs to us. -errno if there is none. */
int caller_take_fd(const struct caller *c, int fd);

#endif
