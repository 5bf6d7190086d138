/* memory.c - see memory.h. */
#include "keeper/memory.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/cgroup.h"

#define SCORE "/proc/self/oom_score_adj"
#define LOOK_MS 100 /* between two looks: some creates more do not matter */
#define MiB(n) ((unsigned long long)(n) >> 20)

/* The files of both layouts. */
static const struct {
    const char *limit, *used, *inactive, *active;
} files[] = {
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
     "total_active_file "},
    {"memory.max", "memory.current", "inactive_file ", "active_file "},
};

static uint64_t within(uint64_t n, uint64_t min, uint64_t max)
{
    return n < min ? min : n > max ? max : n;
}

uint64_t memory_reserve(uint64_t setting, uint64_t host)
{
    uint64_t part = within(host / 16, MEMORY_RESERVE_MIN, MEMORY_RESERVE_MAX);

    return setting != 0 ? setting : part < host / 4 ? part : host / 4;
}

uint64_t memory_low(uint64_t limit)
{
    return within(limit / 32, MEMORY_LOW_MIN, MEMORY_LOW_MAX);
}

uint64_t memory_of_host(void)
{
    struct sysinfo s;

    return sysinfo(&s) < 0 ? 0 : (uint64_t)s.totalram * s.mem_unit;
}

/* The number after a word that begins a line; 0 without one. */
static uint64_t number_after(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)) != NULL; p += n)
        if (p == text || p[-1] == '\n')
            return strtoull(p + n, NULL, 10);
    return 0;
}

static int group_of(const struct keeper *k)
{
    return k->cgroups.v2_has[CTRL_MEMORY] ? k->cgroups.v2_fd : k->cgroups.v1_fd[CTRL_MEMORY];
}

/* Without files that are only cached, which the kernel drops when memory is needed. */
static uint64_t used_by_all(const struct keeper *k, uint64_t enough)
{
    int dir = group_of(k), v2 = k->cgroups.v2_has[CTRL_MEMORY];
    char text[8192];
    uint64_t used, cached;

    cgroup_get(dir, files[v2].used, text, sizeof(text));
    used = strtoull(text, NULL, 10);
    if (used <= enough) /* the next file takes the kernel longer */
        return used;
    cgroup_get(dir, "memory.stat", text, sizeof(text));
    cached = number_after(text, files[v2].inactive) + number_after(text, files[v2].active);
    return used > cached ? used - cached : 0;
}

static uint64_t available(void)
{
    char text[2048];

    return cgroup_get(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0
               ? UINT64_MAX
               : number_after(text, "MemAvailable:") << 10;
}

bool memory_can_protect(void)
{
    return prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1;
}

/* An operator may have given us less than we would. */
int memory_protect(struct keeper *k, struct err *e)
{
    char now[32], want[32];
    bool ours = memory_can_protect();

    str_fmt(k->memory.score, sizeof(k->memory.score), "%d", ours ? 0 : MEMORY_SCORE_SANDBOX);
    cgroup_get(AT_FDCWD, SCORE, now, sizeof(now));
    str_fmt(want, sizeof(want), "%d", MEMORY_SCORE_OURS);
    return ours && atoi(now) > MEMORY_SCORE_OURS ? cgroup_put(AT_FDCWD, SCORE, want, e) : 0;
}

/* Sandboxes of an earlier daemon run on: a limit below what they use would end processes in them. */
int memory_open(struct keeper *k, struct err *e)
{
    struct memory_reserve *m = &k->memory;
    uint64_t host = memory_of_host(), reserve = memory_reserve(k->config.memory_reserve, host),
             used;
    char text[32];

    if (group_of(k) < 0 || host == 0)
        return 0; /* accepted: no-memory-limit */
    if (reserve + MEMORY_LEAST > host)
        return err_set(e, ERR_INVALID,
                       "the setting memory-reserve: %llu MiB of the host's %llu leave sandboxes "
                       "less than %llu MiB",
                       MiB(reserve), MiB(host), MiB(MEMORY_LEAST));
    used = used_by_all(k, 0);
    m->limit = host - reserve;
    if (used > m->limit) {
        log_warn("sandboxes use %llu MiB of memory already, more than memory-reserve leaves them",
                 MiB(used));
        m->limit = used;
    }
    m->low = memory_low(m->limit);
    str_fmt(text, sizeof(text), "%llu", (unsigned long long)m->limit);
    if (cgroup_put(group_of(k), files[k->cgroups.v2_has[CTRL_MEMORY]].limit, text, e) < 0)
        return err_wrap(e, "limit the memory of all sandboxes");
    m->on = true;
    return 0;
}

int memory_check(struct keeper *k, struct err *e)
{
    struct memory_reserve *m = &k->memory;
    uint64_t now = clock_mono_ms(), used, free_now;

    if (!m->on)
        return 0;
    if (m->seen_ms == 0 || now >= m->seen_ms + LOOK_MS) {
        used = used_by_all(k, m->limit - m->low);
        free_now = available();
        m->left = used < m->limit ? m->limit - used : 0;
        m->left = free_now < m->left ? free_now : m->left;
        m->seen_ms = now;
    }
    if (m->left >= m->low)
        return 0;
    return err_set(e, ERR_UNAVAILABLE,
                   "not enough memory for another sandbox: the rest is kept for running sandboxes "
                   "and the host; stop or delete sandboxes, or try again later");
}
