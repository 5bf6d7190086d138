/* host.h - init's engine on a machine of its own, without a sandbox around it.
 *
 * No root is mounted, no namespace made, no capability dropped: what isolation there is was set up
 * by `cove host` before this program began (host/isolate.c). */
#ifndef INIT_BOOT_HOST_H
#define INIT_BOOT_HOST_H

#include "base/err.h"
#include "wire/host.h"

struct host_boot {
    struct host_message msg;
    int fds[HOST_FD_COUNT];
};

/* Waits for the message on BOOT_FD, and sets the policy (run/policy.h). */
int host_boot(struct host_boot *b, struct err *e);

#endif
