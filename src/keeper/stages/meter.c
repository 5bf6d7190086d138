/* meter.c - see meter.h. */
#include "keeper/meter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "keeper/cgroup.h"
#include "keeper/life.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "loop/job.h"

struct point {
    char id[32];
    struct keeper_point m;
};

struct meter {
    struct job job;
    struct keeper *k;
    uint32_t seq;
    uint64_t front; /* the front that asked */
    bool all;
    size_t n;
    struct point points[];
};

/* ---- in a thread ---- */

static int open_group(int parent, const char *id)
{
    return parent < 0 ? -1 : openat(parent, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int ctrl_group(const struct cgroups *g, enum controller c, const char *id)
{
    return open_group(g->v2_has[c] ? g->v2_fd : g->v1_fd[c], id);
}

static uint64_t number_in(int dir, const char *file)
{
    char text[64];

    return cgroup_get(dir, file, text, sizeof(text)) <= 0 ? 0 : strtoull(text, NULL, 10);
}

/* The number after `key` at the beginning of a line. */
static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strncmp(text, key + 1, strlen(key + 1)) == 0 ? text - 1 : strstr(text, key);

    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

static void measure(struct job *w)
{
    struct meter *m = CONTAINER_OF(w, struct meter, job);
    const struct cgroups *g = &m->k->cgroups;
    bool v2 = g->v2_has[CTRL_MEMORY];
    char text[8192];

    for (size_t i = 0; i < m->n; i++) {
        struct point *p = &m->points[i];
        /* The v2 hierarchy counts time also if v1 has the controller. */
        autofd int cpu = open_group(g->v2_fd, p->id), memory = ctrl_group(g, CTRL_MEMORY, p->id);
        autofd int pids = ctrl_group(g, CTRL_PIDS, p->id);

        if (cgroup_get(cpu, "cpu.stat", text, sizeof(text)) > 0)
            p->m.cpu_us = number_after(text, "\nusage_usec ");
        p->m.memory = number_in(memory, v2 ? "memory.current" : "memory.usage_in_bytes");
        if (cgroup_get(memory, "memory.stat", text, sizeof(text)) > 0)
            p->m.cache = number_after(text, v2 ? "\nfile " : "\ntotal_cache ");
        p->m.pids = number_in(pids, "pids.current");
        p->m.disk = m->k->disk.way->used(m->k, p->id);
    }
}

/* ---- on the loop ---- */

static void measured(struct job *w)
{
    struct meter *m = CONTAINER_OF(w, struct meter, job);
    struct keeper_end end = {.count = m->n};

    if (m->all)
        m->k->metering = false;
    for (size_t i = 0; i < m->n && m->front == m->k->nfronts; i++) {
        m->points[i].m.id = m->points[i].id;
        link_send(m->k, KEEPER_POINT, m->seq, &m->points[i].m);
    }
    if (m->front == m->k->nfronts)
        link_send(m->k, KEEPER_END, m->seq, &end);
    free(m);
}

static void add_traffic(void *arg, const struct keeper_count *c)
{
    struct meter *m = arg;

    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->points[i].id, c->id) == 0) {
            m->points[i].m.in_bytes = c->in_bytes;
            m->points[i].m.out_bytes = c->out_bytes;
            return;
        }
}

int meter_sample(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    bool all = *id == '\0';
    struct sandbox *sb;
    struct meter *m;

    if (all && k->metering)
        return err_set(e, ERR_UNAVAILABLE, "the last sample is still being taken; try again");
    m = calloc(1, sizeof(*m) + k->counts[COUNT_GIVEN] * sizeof(m->points[0]));
    if (m == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    m->k = k;
    m->all = all;
    m->seq = seq;
    m->front = k->nfronts;
    m->job.lane = JOB_DISK;
    SANDBOX_EACH(k, sb)
    if (sb->state == STATE_RUNNING && (all || strcmp(id, sb->rec.id) == 0))
        str_fmt(m->points[m->n++].id, sizeof(m->points[0].id), "%s", sb->rec.id);
    if (network_counts(k, add_traffic, m, e) < 0) {
        free(m);
        return -1;
    }
    k->metering = k->metering || all;
    job_start(k->loop, &m->job, measure, measured);
    return 0;
}
