/* values.h - what the sandbox may have and what it uses, from its cgroups.
 *
 * Read when asked for, by the paths that programs inside use (boot/cgroups.h), so a change of
 * limits needs no message. Without a limit, or where a file cannot be read, the host's value. */
#ifndef INIT_LIMITS_VALUES_H
#define INIT_LIMITS_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITS_CONTROLLERS 3
/* In the order of the bits of boot_message.cgroups_v1. */
extern const char *const limits_controllers[LIMITS_CONTROLLERS];

struct limits_source {
    uint32_t v1;   /* boot_message.cgroups_v1 */
    uint64_t pass; /* syscalls/caller.h */
};

struct limits_memory { /* bytes */
    uint64_t total, used;
    uint64_t file, anon, shmem, mapped, dirty, writeback;
    uint64_t active_anon, inactive_anon, active_file, inactive_file, unevictable;
    uint64_t reclaimable, unreclaimable; /* slab */
};

#define LIMITS_LOADS 3

struct limits_cpu {
    unsigned count;           /* processors that the limit is worth, rounded up */
    uint64_t user_us, sys_us; /* used since the boot */
    uint64_t up_ms;
    uint64_t tasks;
    double busy;               /* processors in use, on average since the last look */
    double load[LIMITS_LOADS]; /* over 1, 5 and 15 minutes */
};

/* The loads are mean numbers of processors in use, which cost nothing between two looks. */
struct limits_load {
    uint64_t at_ms, used_us;
    double load[LIMITS_LOADS];
};

void limits_memory(const struct limits_source *s, struct limits_memory *ret);
/* How many processors; at most `host`. */
unsigned limits_cpus(const struct limits_source *s, unsigned host);
/* `last` is from the last look; zero at first. */
void limits_cpu(const struct limits_source *s, struct limits_load *last, struct limits_cpu *ret);
/* The host's processors that a task may run on, as sched_getaffinity says: the length or -errno. */
int limits_affinity(const struct limits_source *s, int pid, void *mask, size_t len);
/* Clears all bits after the first `n` that are set. Returns how many were set. */
unsigned limits_first_bits(unsigned char *mask, size_t len, unsigned n);

/* Of texts: the number after `key` at the beginning of a line; 0: none. */
uint64_t limits_number(const char *text, const char *key);
/* Of cpu.max: processors, rounded up; 0: no limit. */
unsigned limits_cpu_max(const char *text);

#endif
