/* conntrack.h - the host forgets the connections of a sandbox that is gone.
 *
 * It remembers each, for NAT, for minutes after the last packet and some for days. The
 * next sandbox with that address would be sent what is said to the last one, and
 * what that one left open would count as its own. So an address is free only when
 * nothing is remembered of it.
 *
 * The kernel has no list by address: all it knows is walked, 20 ms on a large host even
 * when that is nothing. So a thread does it, one walk is for all who wait when it begins, and
 * one follows another only after a while: deleting sandboxes must not keep a core busy. */
#ifndef KEEPER_CONNTRACK_H
#define KEEPER_CONNTRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "keeper/worker.h"
#include "loop/loop.h"

struct sandbox;

#define CONNTRACK_EVERY_MS 250u
#define NETWORK_RANGES 3840u /* id ranges, and so addresses; see idrange.c */

struct conntrack { /* the keeper's, zeroed */
    struct work work;
    struct loop_timer again;
    uint32_t first;               /* the address of range 0 */
    bool waiting[NETWORK_RANGES]; /* for the next walk */
    bool walked[NETWORK_RANGES];  /* the thread's while there is one */
    uint64_t begun, ended;        /* walks; the last that began, the last that saw all */
    bool walking;                 /* one is under way */
    bool failed;                  /* the thread's, likewise */
    unsigned fails;               /* walks that failed, in a row */
    uint64_t begun_ms;            /* when the last one did */
};

/* Once nothing comes from it any more. 0: forgotten; 1: not yet, call again. */
int conntrack_forget(struct sandbox *sb);

#endif
