/* spawn.h - from a request to a running program, as cheaply as posix_spawn.
 *
 * The child shares our memory until its exec (no page table is copied) and is born in its
 * cgroup. Until then it does nothing that the tenant could make it wait for; if it is stopped
 * or frozen, it is killed after SPAWN_STALL_MS, so that init does not wait for it. */
#ifndef INIT_RUN_SPAWN_H
#define INIT_RUN_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "init/run/user.h"
#include "wire/init.h"
#include "wire/wire.h"

#define SPAWN_STALL_MS 2000
#define SPAWN_STACK (64u << 10)

struct spawner {
    char *stack;     /* of the child until its exec; one at a time */
    uint64_t nofile; /* RLIMIT_NOFILE of every command, soft and hard */
    int helper_fd;   /* cove-helper; not below 4; -1: none. Borrowed */
};

struct spawn_opts { /* all borrowed for the call */
    const struct wire_strv *argv, *env;
    const char *cwd; /* "" means "/" */
    const struct user *user;
    int stdio[3];  /* become 0, 1 and 2; none of them below 3 */
    int cgroup_fd; /* a directory fd; -1: none, it is found by its mark */
    uint64_t mark; /* mark.h; 0: none */
    int extra;     /* its fd 3, or -1; not below 4 */
    bool tty;      /* stdio[0] becomes its controlling terminal */
    bool helper;   /* execute the spawner's helper_fd: argv[0] is only a title */
};

int spawner_init(struct spawner *s, uint64_t nofile, struct err *e);

/* 0 once the program runs: its exec has succeeded. Else ERR_CANNOT_START with a text for the
 * client; *ret is not set, and the child is reaped like an orphan. */
int spawn(struct spawner *s, const struct spawn_opts *o, pid_t *ret, struct err *e);

#endif
