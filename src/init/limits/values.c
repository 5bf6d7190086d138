/* values.c - see values.h. */
#include "init/limits/values.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sysinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define ROOT "/sys/fs/cgroup"
#define MASK_MAX 1024u /* bytes: 8,192 processors, the most of any kernel for x86-64 */

enum { CPU, MEMORY, PIDS };
const char *const limits_controllers[LIMITS_CONTROLLERS] = {
    [CPU] = "cpu", [MEMORY] = "memory", [PIDS] = "pids"};

static bool is_v1(const struct limits_source *s, int controller)
{
    return (s->v1 & 1u << controller) != 0;
}

static const char *v2_dir(const struct limits_source *s)
{
    return s->v1 != 0 ? ROOT "/unified" : ROOT;
}

static bool read_in(const char *dir, const char *sub, const char *file, char *out, size_t room)
{
    char path[96];
    autofd int fd = -1;
    ssize_t n;

    str_fmt(path, sizeof(path), "%s/%s%s", dir, sub, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, out, room - 1);
    out[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* A file of a controller, which has another name with v1. */
static bool read_of(const struct limits_source *s, int c, const char *v1, const char *v2, char *out,
                    size_t room)
{
    char sub[16];

    str_fmt(sub, sizeof(sub), "/%s/", limits_controllers[c]);
    return is_v1(s, c) ? read_in(ROOT, sub, v1, out, room) : read_in(v2_dir(s), "/", v2, out, room);
}

uint64_t limits_number(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = text; (at = strstr(at, key)) != NULL; at += n)
        if ((at == text || at[-1] == '\n') && at[n] == ' ')
            return strtoull(at + n, NULL, 10);
    return 0;
}

/* ---- memory ---- */

/* clang-format off */
static const struct {
    size_t at;
    const char *v1, *v2; /* NULL: it is not told */
} stats[] = {
    {offsetof(struct limits_memory, file),          "total_cache",         "file"},
    {offsetof(struct limits_memory, anon),          "total_rss",           "anon"},
    {offsetof(struct limits_memory, shmem),         "total_shmem",         "shmem"},
    {offsetof(struct limits_memory, mapped),        "total_mapped_file",   "file_mapped"},
    {offsetof(struct limits_memory, dirty),         "total_dirty",         "file_dirty"},
    {offsetof(struct limits_memory, writeback),     "total_writeback",     "file_writeback"},
    {offsetof(struct limits_memory, active_anon),   "total_active_anon",   "active_anon"},
    {offsetof(struct limits_memory, inactive_anon), "total_inactive_anon", "inactive_anon"},
    {offsetof(struct limits_memory, active_file),   "total_active_file",   "active_file"},
    {offsetof(struct limits_memory, inactive_file), "total_inactive_file", "inactive_file"},
    {offsetof(struct limits_memory, unevictable),   "total_unevictable",   "unevictable"},
    {offsetof(struct limits_memory, reclaimable),   NULL,                  "slab_reclaimable"},
    {offsetof(struct limits_memory, unreclaimable), NULL,                  "slab_unreclaimable"},
};
/* clang-format on */

void limits_memory(const struct limits_source *s, struct limits_memory *ret)
{
    struct sysinfo host = {0};
    char text[4096];
    uint64_t limit = 0;

    *ret = (struct limits_memory){0};
    syscall(SYS_sysinfo, &host, 0, 0, 0, 0, s->pass);
    ret->total = (uint64_t)host.totalram * host.mem_unit;
    if (read_of(s, MEMORY, "memory.limit_in_bytes", "memory.max", text, sizeof(text)))
        limit = strtoull(text, NULL, 10); /* "max": 0 */
    if (limit != 0 && limit < ret->total)
        ret->total = limit;
    ret->used = ret->total - (uint64_t)host.freeram * host.mem_unit;
    if (read_of(s, MEMORY, "memory.usage_in_bytes", "memory.current", text, sizeof(text)))
        ret->used = strtoull(text, NULL, 10);
    if (ret->used > ret->total)
        ret->used = ret->total;
    if (!read_of(s, MEMORY, "memory.stat", "memory.stat", text, sizeof(text)))
        return;
    for (size_t i = 0; i < ARRAY_LEN(stats); i++) {
        const char *key = is_v1(s, MEMORY) ? stats[i].v1 : stats[i].v2;
        uint64_t *to = (uint64_t *)(void *)((char *)ret + stats[i].at);

        *to = key == NULL ? 0 : limits_number(text, key);
    }
}

/* ---- processors ---- */

int limits_affinity(const struct limits_source *s, int pid, void *mask, size_t len)
{
    long n = syscall(SYS_sched_getaffinity, pid, len, mask, 0, 0, s->pass);

    return n < 0 ? -errno : (int)n;
}

unsigned limits_first_bits(unsigned char *mask, size_t len, unsigned n)
{
    unsigned seen = 0;

    for (size_t bit = 0; bit < len * 8; bit++) {
        unsigned char one = (unsigned char)(1u << (bit % 8));

        if ((mask[bit / 8] & one) != 0 && seen++ >= n)
            mask[bit / 8] &= (unsigned char)~one;
    }
    return seen;
}

unsigned limits_cpu_max(const char *text)
{
    char *end;
    uint64_t quota = strtoull(text, &end, 10), period = strtoull(end, NULL, 10);

    return end == text || quota == 0 || period == 0 ? 0 : (unsigned)((quota + period - 1) / period);
}

/* Both of v1 in the form of v2; -1, no limit, is no number. */
static bool cpu_max(const struct limits_source *s, char out[64])
{
    char quota[32], period[32];

    if (!is_v1(s, CPU))
        return read_in(v2_dir(s), "/", "cpu.max", out, 64);
    if (!read_in(ROOT, "/cpu/", "cpu.cfs_quota_us", quota, sizeof(quota)) || *quota == '-' ||
        !read_in(ROOT, "/cpu/", "cpu.cfs_period_us", period, sizeof(period)))
        return false;
    str_fmt(out, 64, "%.20s %.20s", quota, period);
    return true;
}

unsigned limits_cpus(const struct limits_source *s, unsigned host)
{
    char text[64];
    unsigned n = cpu_max(s, text) ? limits_cpu_max(text) : 0;

    return n == 0 || n > host ? host : n;
}

static void decay(struct limits_load *last, uint64_t ms, double busy)
{
    static const double over_ms[LIMITS_LOADS] = {60e3, 300e3, 900e3};

    for (int i = 0; i < LIMITS_LOADS; i++) {
        double x = (double)ms / over_ms[i], keep = 1 / (1 + x + x * x / 2); /* nearly exp(-x) */

        last->load[i] = last->load[i] * keep + busy * (1 - keep);
    }
}

void limits_cpu(const struct limits_source *s, struct limits_load *last, struct limits_cpu *ret)
{
    unsigned char mask[MASK_MAX] = {0};
    struct timespec up;
    uint64_t used, ms;
    char text[2048];

    clock_gettime(CLOCK_BOOTTIME, &up);
    limits_affinity(s, 0, mask, sizeof(mask));
    *ret = (struct limits_cpu){
        .count = limits_cpus(s, limits_first_bits(mask, sizeof(mask), UINT32_MAX)),
        .up_ms = (uint64_t)up.tv_sec * 1000 + (uint64_t)up.tv_nsec / 1000000};
    if (read_in(v2_dir(s), "/", "cpu.stat", text, sizeof(text))) {
        ret->user_us = limits_number(text, "user_usec");
        ret->sys_us = limits_number(text, "system_usec");
    }
    if (read_of(s, PIDS, "pids.current", "pids.current", text, sizeof(text)))
        ret->tasks = strtoull(text, NULL, 10);
    used = ret->user_us + ret->sys_us;
    ms = ret->up_ms - last->at_ms;
    if (ms > 0 && used >= last->used_us) {
        ret->busy = (double)(used - last->used_us) / 1000 / (double)ms;
        decay(last, ms, ret->busy);
    }
    last->at_ms = ret->up_ms;
    last->used_us = used;
    memcpy(ret->load, last->load, sizeof(ret->load));
}
