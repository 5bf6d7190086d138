/* boot.h - from a process in empty namespaces to pid 1 of a sandbox.
 *
 * Takes the keeper's one message (wire/boot.h), builds the root, mounts and network that
 * everything inside will see, and gives up every power that would let the tenant change them.
 * After boot_run() nothing of the host can be reached any more. */
#ifndef INIT_BOOT_BOOT_H
#define INIT_BOOT_BOOT_H

#include "base/err.h"
#include "init/limits/files.h"
#include "wire/boot.h"

struct boot {
    struct boot_message msg;
    int fds[BOOT_FD_COUNT];
    struct limits_files limits;
    int diag_fd;  /* to count listeners with (syscalls/sockets.h); -1 if there is none */
    int listener; /* of the filter: callers of statfs wait for us (syscalls/statfs.h) */
};

/* Waits for the message on BOOT_FD. */
int boot_receive(struct boot *b, struct err *e);
int boot_run(struct boot *b, struct err *e);
/* Answers the keeper and closes BOOT_FD. `why` NULL: ready. */
void boot_answer(const struct err *why);

#endif
