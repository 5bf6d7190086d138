/* text.c - see text.h. */
#include "init/limits/text.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/own.h"

#define TICK_US 10000 /* USER_HZ is 100 */

static uint64_t files_of(const struct limits_memory *m)
{
    return m->active_file + m->inactive_file;
}

void limits_meminfo(const struct limits_memory *m, struct buf *out)
{
    uint64_t left = m->total - m->used, available = left + files_of(m) + m->reclaimable;
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {
        {"MemTotal", m->total},
        {"MemFree", left},
        {"MemAvailable", available < m->total ? available : m->total},
        {"Buffers", 0},
        {"Cached", m->file},
        {"SwapCached", 0},
        {"Active", m->active_anon + m->active_file},
        {"Inactive", m->inactive_anon + m->inactive_file},
        {"Active(anon)", m->active_anon},
        {"Inactive(anon)", m->inactive_anon},
        {"Active(file)", m->active_file},
        {"Inactive(file)", m->inactive_file},
        {"Unevictable", m->unevictable},
        {"Mlocked", 0},
        {"SwapTotal", 0},
        {"SwapFree", 0},
        {"Dirty", m->dirty},
        {"Writeback", m->writeback},
        {"AnonPages", m->anon},
        {"Mapped", m->mapped},
        {"Shmem", m->shmem},
        {"KReclaimable", m->reclaimable},
        {"Slab", m->reclaimable + m->unreclaimable},
        {"SReclaimable", m->reclaimable},
        {"SUnreclaim", m->unreclaimable},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[32];

        snprintf(name, sizeof(name), "%s:", rows[i].name);
        buf_addf(out, "%-15s %8" PRIu64 " kB\n", name, rows[i].bytes / 1024);
    }
}

static uint64_t idle_us(const struct limits_cpu *c)
{
    uint64_t all = c->up_ms * 1000 * c->count, used = c->user_us + c->sys_us;

    return all > used ? all - used : 0;
}

/* How much each processor did is not counted: they share evenly. */
static void stat_line(const struct limits_cpu *c, const char *name, unsigned share, struct buf *out)
{
    buf_addf(out, "%s %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 0 0 0 0\n", name,
             c->user_us / share / TICK_US, c->sys_us / share / TICK_US,
             idle_us(c) / share / TICK_US);
}

static unsigned running(const struct limits_cpu *c)
{
    return c->busy > 1 ? (unsigned)(c->busy + 0.5) : 1; /* the reader */
}

void limits_stat(const struct limits_cpu *c, uint64_t booted_s, struct buf *out)
{
    stat_line(c, "cpu ", 1, out);
    for (unsigned i = 0; i < c->count; i++) {
        char name[16];

        snprintf(name, sizeof(name), "cpu%u", i);
        stat_line(c, name, c->count, out);
    }
    buf_addf(out,
             "intr 0\nctxt 0\nbtime %" PRIu64 "\nprocesses %" PRIu64
             "\nprocs_running %u\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
             booted_s, c->tasks, running(c));
}

void limits_loadavg(const struct limits_cpu *c, uint64_t last_pid, struct buf *out)
{
    buf_addf(out, "%.2f %.2f %.2f %u/%" PRIu64 " %" PRIu64 "\n", c->load[0], c->load[1], c->load[2],
             running(c), c->tasks, last_pid);
}

void limits_uptime(const struct limits_cpu *c, struct buf *out)
{
    uint64_t idle = idle_us(c) / TICK_US;

    buf_addf(out, "%" PRIu64 ".%02u %" PRIu64 ".%02u\n", c->up_ms / 1000,
             (unsigned)(c->up_ms % 1000 / 10), idle / 100, (unsigned)(idle % 100));
}

void limits_online(unsigned cpus, struct buf *out)
{
    if (cpus <= 1)
        buf_adds(out, "0\n");
    else
        buf_addf(out, "0-%u\n", cpus - 1);
}

size_t limits_paragraphs(const char *text, size_t len, unsigned cpus, unsigned *seen, char *last)
{
    size_t i = 0;

    for (; i < len && *seen < cpus; i++) {
        *seen += text[i] == '\n' && *last == '\n';
        *last = text[i];
    }
    return i;
}
