/* metrics.c - see metrics.h: the points. */
#include "front/engine/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

static void on_tick(struct loop_timer *t);

static void again(struct engine *g)
{
    loop_timer_set(g->loop, &g->meter, g->o.config->metrics_every_ms, on_tick);
}

/* Since the last point; since its start for the first. A resume from stopped counts
 * anew, so it may be less than before. */
static uint64_t cpu_of(const struct box *b, uint64_t cpu_us, uint64_t now_ms)
{
    bool anew = b->metered_ms == 0 || cpu_us < b->metered_us;
    uint64_t since = anew ? b->pub.changed_ms : b->metered_ms;
    uint64_t used = anew ? cpu_us : cpu_us - b->metered_us;

    return now_ms <= since ? 0 : used / (now_ms - since);
}

static void keep_point(struct box *b, uint64_t cpu_us)
{
    const struct metric *m = &b->metric;
    struct store_point p = {.sandbox = b->seq,
                            .at_ms = m->at_ms,
                            .cpu_milli = m->cpu_milli,
                            .memory = m->memory,
                            .cache = m->cache,
                            .disk = m->disk,
                            .pids = m->pids,
                            .in_bytes = m->in_bytes,
                            .out_bytes = m->out_bytes};

    b->metered_us = cpu_us;
    b->metered_ms = m->at_ms;
    buf_add(&b->g->points, &p, sizeof(p));
}

/* NULL: it does not run any more. */
static struct box *take_point(struct engine *g, const struct keeper_point *m)
{
    struct box *b = box_find(g, m->id);
    uint64_t now = clock_real_ms();

    if (b == NULL || b->life != LIFE_RUNNING)
        return NULL;
    b->metric = (struct metric){.at_ms = now,
                                .cpu_milli = cpu_of(b, m->cpu_us, now),
                                .memory = m->memory,
                                .cache = m->cache,
                                .disk = m->disk,
                                .pids = m->pids,
                                .in_bytes = m->in_bytes,
                                .out_bytes = m->out_bytes};
    return b;
}

static void on_point(void *arg, const void *msg)
{
    const struct keeper_point *m = msg;
    struct box *b = take_point(arg, m);

    if (b != NULL)
        keep_point(b, m->cpu_us);
}

static int prune(struct engine *g, struct err *e)
{
    uint64_t now = clock_real_ms();

    if (now < g->points_pruned_ms + ENGINE_PRUNE_MS)
        return 0;
    g->points_pruned_ms = now;
    return store_points_prune(g->o.store, now - g->o.config->metrics_ms, g->o.config->metrics_max,
                              e);
}

static int put_points(struct engine *g, struct err *e)
{
    const struct store_point *all = (const void *)buf_data(&g->points);
    size_t n = g->points.len / sizeof(*all);

    if (store_begin_light(g->o.store, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (store_point_add(g->o.store, &all[i], e) < 0)
            return -1;
    return prune(g, e) < 0 ? -1 : store_commit(g->o.store, e);
}

/* In one turn of the loop, without waiting for the disk: on a busy disk a flush takes seconds, in
 * which the loop would serve no client. */
static void write_points(struct engine *g)
{
    struct err e;

    if (put_points(g, &e) < 0) {
        store_rollback(g->o.store);
        log_warn("metrics: %s", e.msg);
    }
    buf_clear(&g->points);
}

static void on_sampled(void *arg, const void *msg, const struct err *why)
{
    struct engine *g = arg;

    (void)msg;
    if (why != NULL)
        log_warn("metrics: %s", why->msg);
    write_points(g);
    again(g);
}

static void on_tick(struct loop_timer *t)
{
    static const struct keeper_asker asker = {.each = on_point, .last = on_sampled};
    struct engine *g = CONTAINER_OF(t, struct engine, meter);
    struct keeper_sample ask = {.id = ""};
    bool any = false;

    for (size_t i = 0; i < g->norder && !any; i++)
        any = g->order[i]->life == LIFE_RUNNING;
    if (any)
        keeper_ask(g->keeper, KEEPER_SAMPLE, &ask, &asker, g);
    else
        again(g);
}

void metrics_start(struct engine *g)
{
    if (g->o.config->metrics_ms > 0 && g->o.config->metrics_max > 0)
        again(g);
}

/* ---- one of them, now ---- */

struct measuring {
    struct engine *g;
    struct waiter *w;
    char id[KEEPER_ID_MAX + 1];
};

/* The first point of a sandbox is stored, so a client that saw it sees it again; the others are
 * taken at fixed intervals. */
static void on_measured(void *arg, const void *msg)
{
    const struct keeper_point *m = msg;
    struct measuring *q = arg;
    struct box *b = take_point(q->g, m);

    if (b == NULL || b->metered_ms != 0 || q->g->o.config->metrics_ms == 0)
        return;
    keep_point(b, m->cpu_us);
    write_points(q->g);
}

static void on_measure_late(void *arg, const struct err *e)
{
    struct measuring *q = arg;

    waiter_answer(take_ptr(&q->w), q->id, e);
}

static void on_measure_end(void *arg, const void *msg, const struct err *e)
{
    (void)msg;
    on_measure_late(arg, e);
    free(arg);
}

static void measuring_drop(void *arg)
{
    struct measuring *q = arg;

    free(q->w);
    free(q);
}

void engine_measure(struct ref ref, engine_sandbox_cb *done, void *arg)
{
    static const struct keeper_asker asker = {.each = on_measured,
                                              .last = on_measure_end,
                                              .late = on_measure_late,
                                              .drop = measuring_drop};
    struct box *b = box_of(ref);
    struct waiter *w = waiter_new(ref.engine, NULL, done, arg);
    struct keeper_sample ask = {.id = ref.id};
    struct measuring *q;

    if (b == NULL) {
        waiter_fail(w, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
        return;
    }
    if (b->life != LIFE_RUNNING || clock_real_ms() < b->metric.at_ms + METRIC_FRESH_MS) {
        waiter_answer(w, ref.id, NULL);
        return;
    }
    q = mem_zeroed(1, sizeof(*q));
    q->g = ref.engine;
    q->w = w;
    str_fmt(q->id, sizeof(q->id), "%s", b->pub.id);
    keeper_ask(ref.engine->keeper, KEEPER_SAMPLE, &ask, &asker, q);
}

void engine_measure_all(struct engine *g, engine_done_cb *done, void *arg)
{
    static const struct keeper_asker asker = {.each = on_measured,
                                              .last = on_measure_end,
                                              .late = on_measure_late,
                                              .drop = measuring_drop};
    struct waiter *w = waiter_new(g, done, NULL, arg);
    struct keeper_sample ask = {.id = ""};
    uint64_t now = clock_mono_ms();
    struct measuring *q;

    if (g->measured_ms != 0 && now < g->measured_ms + METRIC_FRESH_MS) {
        waiter_answer(w, "", NULL);
        return;
    }
    q = mem_zeroed(1, sizeof(*q));
    g->measured_ms = now;
    q->g = g;
    q->w = w;
    keeper_ask(g->keeper, KEEPER_SAMPLE, &ask, &asker, q);
}

/* ---- reading ---- */

struct reading {
    void (*each)(void *arg, const struct metric *m);
    void *arg;
};

static void on_row(void *arg, const struct store_point *p)
{
    const struct reading *r = arg;
    struct metric m = {.at_ms = p->at_ms,
                       .cpu_milli = p->cpu_milli,
                       .memory = p->memory,
                       .cache = p->cache,
                       .disk = p->disk,
                       .pids = p->pids,
                       .in_bytes = p->in_bytes,
                       .out_bytes = p->out_bytes};

    r->each(r->arg, &m);
}

int engine_metrics(struct ref ref, uint64_t since_ms, uint64_t until_ms, size_t limit,
                   void (*each)(void *arg, const struct metric *m), void *arg, struct err *e)
{
    struct box *b = box_of(ref);
    struct reading r = {each, arg};
    struct store_span span = {.since_ms = since_ms, .until_ms = until_ms, .limit = limit};

    if (b == NULL)
        return err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    if (span.limit > METRIC_POINTS_MAX)
        span.limit = METRIC_POINTS_MAX;
    span.sandbox = b->seq;
    return store_point_each(ref.engine->o.store, &span, on_row, &r, e);
}

const struct metric *engine_last_metric(struct ref ref)
{
    struct box *b = box_of(ref);

    return b == NULL || b->metric.at_ms == 0 ? NULL : &b->metric;
}

void engine_last_metrics(struct engine *g, const char *key,
                         void (*each)(void *arg, const char *id, const struct metric *m), void *arg)
{
    for (size_t i = 0; i < g->norder; i++) {
        const struct box *b = g->order[i];

        if (b->metric.at_ms != 0 && b->life == LIFE_RUNNING &&
            (key == NULL || strcmp(b->pub.key, key) == 0))
            each(arg, b->pub.id, &b->metric);
    }
}
