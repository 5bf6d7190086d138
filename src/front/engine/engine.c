/* engine.c - starts and ends the engine; its counters. */
#include "front/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

#define ENGINE_POINTS_MAX (16u << 20)

static void on_died(void *arg, const struct keeper_died *m)
{
    struct engine *g = arg;
    struct box *b = box_find(g, m->id);
    struct life_news n = {.reason = m->reason};

    if (b != NULL)
        life_event(b, LIFE_DIED, &n);
}

static void on_lost(void *arg, const struct err *why)
{
    struct engine *g = arg;

    g->o.on_lost(g->o.arg, why);
}

static int engine_start(struct engine *g, struct err *e)
{
    struct keeper_link_opts k = {
        .loop = g->loop, .fd = g->o.keeper_fd, .on_died = on_died, .on_lost = on_lost, .arg = g};

    g->hub = talk_hub_new(g->loop, g->o.run_fd);
    if (flusher_new(g, &g->flusher, e) < 0)
        return -1;
    if (archives_new(g, e) < 0 || events_new(g, e) < 0 || keeper_link_new(&k, &g->keeper, e) < 0)
        return -1;
    return join_start(g, e);
}

void engine_on_leave(struct engine *g, void (*fn)(void *arg, const char *id), void *arg)
{
    g->on_leave = fn;
    g->on_leave_arg = arg;
}

int engine_new(const struct engine_opts *opts, struct engine **ret, struct err *e)
{
    struct engine *g = mem_zeroed(1, sizeof(*g));

    g->o = *opts;
    g->loop = opts->loop;
    ceilings_set(g);
    map_init(&g->boxes);
    map_init(&g->names);
    map_init(&g->owned);
    list_init(&g->asking);
    list_init(&g->waiting);
    list_init(&g->ending);
    list_init(&g->settling);
    list_init(&g->making);
    list_init(&g->answers);
    list_init(&g->imports);
    list_init(&g->snaps);
    list_init(&g->forks);
    list_init(&g->exports);
    list_init(&g->unsaved);
    list_init(&g->flush.link);
    list_init(&g->logbook.pending);
    list_init(&g->logbook.waiting);
    buf_init(&g->points, ENGINE_POINTS_MAX);
    buf_init(&g->graves, ENGINE_GRAVES_MAX);
    buf_init(&g->graves_flushed, ENGINE_GRAVES_MAX);
    list_init(&g->burying.link);
    if (engine_start(g, e) < 0) {
        engine_free(g);
        return -1;
    }
    *ret = g;
    return 0;
}

void engine_drop_waiters(struct list *l)
{
    struct waiter *w;

    LIST_EACH (l, w, struct waiter, link) {
        loop_undefer(&w->later);
        free(w);
    }
}

/* Conversations that planes still hold must be closed by them before this. */
void engine_free(struct engine *g)
{
    if (g == NULL)
        return;
    loop_timer_stop(g->loop, &g->bury);
    loop_timer_stop(g->loop, &g->meter);
    life_save_now(g);
    loop_timer_stop(g->loop, &g->save);
    loop_timer_stop(g->loop, &g->flush_soon);
    logbook_flush(g);
    keeper_link_free(g->keeper);
    creates_free(g);
    imports_free(g);
    exports_free(g);
    archives_free(g);
    while (g->norder > 0) {
        engine_drop_waiters(&g->order[g->norder - 1]->waiters);
        engine_drop_waiters(&g->order[g->norder - 1]->next);
        box_free(g->order[g->norder - 1]);
    }
    flusher_free(g->flusher);
    buf_free(&g->machine);
    engine_drop_waiters(&g->answers);
    forks_free(g);
    snapshots_free(g);
    templates_free(g);
    names_free(g);
    events_free(g);
    talk_hub_free(g->hub);
    map_free(&g->boxes);
    free(g->order);
    buf_free(&g->graves);
    buf_free(&g->graves_flushed);
    buf_free(&g->points);
    free(g);
}

bool engine_is_ready(const struct engine *g)
{
    return g->ready;
}

const struct config *engine_config(const struct engine *g)
{
    return g->o.config;
}

void engine_serving(struct engine *g)
{
    struct keeper_ready m = {0};

    keeper_tell(g->keeper, KEEPER_READY, &m);
}

/* ---- numbers ---- */

struct stat_call {
    struct engine *g;
    void (*cb)(void *arg, const struct engine_stats *s); /* NULL once called */
    void *arg;
};

static void stat_answer(struct stat_call *c, const struct keeper_stats *m)
{
    struct engine_stats s = c->g->stats;

    if (c->cb == NULL)
        return;
    for (size_t i = 0; i < c->g->norder; i++)
        s.by_state[c->g->order[i]->pub.state]++;
    s.init_connections = talk_hub_conns(c->g->hub);
    s.lacks = m != NULL ? m->lacks : "";
    s.failing = m != NULL ? m->failing : "";
    s.firewall = m != NULL ? m->firewall : "";
    if (m != NULL) {
        s.pooled = m->pooled;
        s.teardown = m->teardown;
        s.sandboxes_max = m->sandboxes_max;
        s.disk_total = m->disk_total;
        s.disk_free = m->disk_free;
        s.disk_allocated = m->disk_allocated;
        s.disk_used = m->disk_used;
        s.reserve_wanted = m->reserve_wanted;
        s.reserve = m->reserve;
        s.disk_low = m->disk_low;
        s.disk_backed = m->disk_backed;
        s.memory_total = m->memory_total;
        s.memory_left = m->memory_left;
        s.memory_low = m->memory_low;
        s.io_weights = m->io_weights;
        s.io_limits = m->io_limits;
        s.bandwidth = m->bandwidth;
        s.joined = true;
        s.proven = m->proven != 0;
        s.proofs = m->proofs;
    }
    take_ptr (&c->cb)(c->arg, &s);
}

static void on_stat(void *arg, const void *msg, const struct err *e)
{
    (void)e;
    stat_answer(arg, msg);
    free(arg);
}

static void on_stat_late(void *arg, const struct err *e)
{
    (void)e;
    stat_answer(arg, NULL);
}

static void ask_stats(struct engine *g, bool prove,
                      void (*cb)(void *arg, const struct engine_stats *s), void *arg)
{
    static const struct keeper_asker asker = {.last = on_stat, .late = on_stat_late, .drop = free};
    struct stat_call *c = mem_zeroed(1, sizeof(*c));
    struct keeper_stat ask = {.prove = prove};

    *c = (struct stat_call){.g = g, .cb = cb, .arg = arg};
    keeper_ask(g->keeper, KEEPER_STAT, &ask, &asker, c);
}

void engine_stat(struct engine *g, void (*cb)(void *arg, const struct engine_stats *s), void *arg)
{
    ask_stats(g, false, cb, arg);
}

void engine_prove(struct engine *g, void (*cb)(void *arg, const struct engine_stats *s), void *arg)
{
    ask_stats(g, true, cb, arg);
}
