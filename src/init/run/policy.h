/* policy.h - what differs between pid 1 of a sandbox and the same engine on a machine of its
 * own (`cove host`, docs/host-mode.md).
 *
 * Set once, before the first command; init has no other switch for it. A sandbox is closed by
 * its namespaces, and init holds root's power inside: so it opens only files of the root mount
 * and takes on the identity of each command. In host mode init has the power of its commands
 * and no more, so these walls would protect nothing, and would hide /home or a volume. */
#ifndef INIT_RUN_POLICY_H
#define INIT_RUN_POLICY_H

#include <stdbool.h>
#include <stdint.h>

struct policy {
    uint64_t mounts; /* for openat2: RESOLVE_NO_XDEV, or 0: files of every mount */
    bool identities; /* commands run as any user of /etc/passwd; else all as init's own */
};

extern struct policy init_policy;

#endif
