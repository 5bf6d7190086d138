/* charge.c - what sandboxes count to the quotas of their key, and the ceilings of their limits.
 *
 * What a sandbox is charged with follows from its state alone: after every event box_charge() makes
 * the charge what the state says. So no path can forget to give something back. */
#include <sys/sysinfo.h>
#include <unistd.h>

#include "front/engine/internal.h"

static struct quotas cost(const struct limits *l, bool memory, bool cpu)
{
    struct quotas q = {{[QUOTA_sandboxes] = 1, [QUOTA_disk] = l->disk}};

    if (memory)
        q.of[QUOTA_memory] = l->memory;
    if (cpu)
        q.of[QUOTA_cpu] = l->cpu_milli;
    return q;
}

struct quotas charge_of_new(const struct limits *l)
{
    return cost(l, true, true);
}

/* A paused sandbox keeps its memory, but no processor. Of a damaged one it is not known. */
static bool has_memory(const struct box *b)
{
    return b->pub.state != SANDBOX_STOPPED || b->life == LIFE_BOOTING;
}

static bool has_cpu(const struct box *b)
{
    return b->pub.state == SANDBOX_RUNNING || b->pub.state == SANDBOX_DAMAGED ||
           b->life == LIFE_BOOTING || b->life == LIFE_THAWING;
}

void box_charge(struct box *b)
{
    quota_drop(b->user, &b->charged);
    b->charged = cost(&b->pub.limits, has_memory(b), has_cpu(b));
    quota_add(b->user, &b->charged);
}

void box_uncharge(struct box *b)
{
    quota_drop(b->user, &b->charged);
    quota_drop(b->user, &(struct quotas){{[QUOTA_logs] = b->log_bytes}});
    b->charged = (struct quotas){0};
    b->log_bytes = 0;
}

static struct quotas above(const struct box *b, struct quotas will)
{
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        will.of[i] = will.of[i] > b->charged.of[i] ? will.of[i] - b->charged.of[i] : 0;
    return will;
}

int box_may_run(const struct box *b, struct err *e)
{
    struct quotas more = above(b, cost(&b->pub.limits, true, true));

    return quota_check(b->user, &more, e) < 0 ? err_wrap(e, "sandbox %s", b->pub.id) : 0;
}

struct quotas box_more(const struct box *b, const struct limits *l)
{
    return above(b, cost(l, has_memory(b), has_cpu(b)));
}

/* ---- ceilings ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void ceilings_set(struct engine *g)
{
    const struct config *c = g->o.config;
    struct limits *l = &g->ceilings;
    struct sysinfo host;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

#define CEILING(l, c, member, ...) (l)->member = (c)->member##_max;
    LIMITS(CEILING, l, c)
#undef CEILING
    if (l->memory == 0 && sysinfo(&host) == 0)
        l->memory = larger(c->memory, (uint64_t)host.totalram * host.mem_unit);
    if (l->cpu_milli == 0 && cores > 0)
        l->cpu_milli = larger(c->cpu_milli, (uint64_t)cores * 1000u);
}

void ceilings_apply(const struct engine *g, struct limits *l)
{
    /* 0 is no limit here, for those that may have none */
    LIMITS_DEFAULT(l, &g->ceilings);
}

int ceilings_check(const struct engine *g, const struct limits *l, struct err *e)
{
    const struct limits *most = &g->ceilings;

#define CHECK(l, most, member, name, ...)                                                          \
    if ((most)->member != 0 && (l)->member > (most)->member)                                       \
        return err_set(e, ERR_INVALID,                                                             \
                       "limits: " #member ": %llu is more than this server allows one sandbox "    \
                       "(%llu, the setting " name "-max)",                                         \
                       (unsigned long long)(l)->member, (unsigned long long)(most)->member);
    LIMITS(CHECK, l, most)
#undef CHECK
    return 0;
}
