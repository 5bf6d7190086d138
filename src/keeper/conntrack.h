/* conntrack.h - deletes the connections of a deleted sandbox from the host's tracking table.
 *
 * For NAT, the kernel remembers each connection for minutes after the last packet, some for days.
 * The next sandbox with that address would receive packets for the last one, and connections that
 * the last one left open would count as its own. So an address is free only when the kernel has no
 * connection of it.
 *
 * The kernel has no list by address: the whole table is walked, 20 ms on a large host even when it
 * is empty. So a thread does it, one walk serves all sandboxes that wait when it begins, and walks
 * are CONNTRACK_EVERY_MS apart: deleting sandboxes must not keep a core busy. */
#ifndef KEEPER_CONNTRACK_H
#define KEEPER_CONNTRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/job.h"

struct sandbox;

#define CONNTRACK_EVERY_MS 250u
#define NETWORK_RANGES 3840u /* id ranges, and so addresses; see idrange.c */

struct conntrack { /* in struct keeper; begins as zeros */
    struct job job;
    struct loop_timer again;
    uint32_t first;               /* the address of range 0 */
    bool waiting[NETWORK_RANGES]; /* addresses for the next walk */
    bool walked[NETWORK_RANGES];  /* of the running walk; the thread's */
    uint64_t begun,
        ended;      /* numbers of walks: the last that began, the last that saw the whole table */
    bool walking;   /* a walk is running */
    bool failed;    /* the running walk failed; the thread's */
    unsigned fails; /* consecutive failed walks */
    uint64_t begun_ms; /* start of the last walk */
};

/* Called when the sandbox can send nothing any more. 0: its connections are deleted; 1: not yet,
 * call again. */
int conntrack_forget(struct sandbox *sb);

#endif
