/* counters.h - limits that all programs of the host share, and that its defaults make too
 * small for many sandboxes. `cove serve` raises them; doctor tells what they are.
 *
 * Raising them costs nothing: what they count is charged to the memory of the sandbox
 * that has it (files, threads, sockets), or has a limit per sandbox (terminals). */
#ifndef KEEPER_COUNTERS_H
#define KEEPER_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

enum counter {
    COUNTER_PIDS,
    COUNTER_THREADS,
    COUNTER_PTYS,
    COUNTER_FILES,
    COUNTER_ORPHANS,
    COUNTER_COUNT
};

/* Its value now; `absent` if the kernel has none, or does not show it here. */
uint64_t counter_value(enum counter c, uint64_t absent);
/* What `cove serve` makes of it, unless it is more. */
uint64_t counter_wanted(enum counter c);
void counters_raise(void);
/* How many processes and threads the host can have: the smaller of its two numbers. */
uint64_t counter_tasks(void);

#endif
