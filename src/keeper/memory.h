/* memory.h - the host's memory: the part that sandboxes never get, and who is killed when there is none.
 *
 * A sandbox's limit bounds one sandbox; their sum may be far more than the host has. So all of them
 * together have a limit too, the host's memory without the reserve: what goes beyond it ends a
 * process in a sandbox, and never one of the host. Before that, when little is left, no sandbox is
 * made or booted. */
#ifndef KEEPER_MEMORY_H
#define KEEPER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct keeper;

/* `memory-reserve` 0: a sixteenth of the host's memory, within these bounds, and at most a quarter. */
#define MEMORY_RESERVE_MIN (256ull << 20)
#define MEMORY_RESERVE_MAX (4ull << 30)
#define MEMORY_LEAST (128ull << 20) /* what a reserve must leave to the sandboxes */

/* With less than a thirty-second of the sandboxes' memory left, within these bounds, none is made:
 * a sandbox that boots needs some ten MiB, and those that run shall have the rest. */
#define MEMORY_LOW_MIN (32ull << 20)
#define MEMORY_LOW_MAX (512ull << 20)

/* The front and the keeper are the last to be killed when the host has no memory: oom_score_adj. Without
 * CAP_SYS_RESOURCE they cannot get that, and sandboxes get more instead. */
#define MEMORY_SCORE_OURS (-900)
#define MEMORY_SCORE_SANDBOX 500

struct memory_reserve {
    bool on;             /* there is a group with a limit */
    char score[8];       /* oom_score_adj of sandboxes (stages/nursery.c) */
    uint64_t limit, low; /* bytes */
    uint64_t left;       /* at the last look, at seen_ms */
    uint64_t seen_ms;
};

uint64_t memory_reserve(uint64_t setting, uint64_t host);
uint64_t memory_low(uint64_t limit);

bool memory_can_protect(void);
/* Before anything is started, which would inherit it. */
int memory_protect(struct keeper *k, struct err *e);
/* After the groups. */
int memory_open(struct keeper *k, struct err *e);
/* Fails while too little is left for another sandbox. */
int memory_check(struct keeper *k, struct err *e);
/* Of the host, as `cove doctor` says it; 0 if it cannot be read. */
uint64_t memory_of_host(void);

#endif
