/* pool.c - the sandboxes kept ready. The pool is the operator's and keeps itself full,
 * so that priming and emptying it have nothing to do. */
#include "front/planes/cloudflare/internal.h"

struct config_view {
    uint64_t target, refresh, max, batch;
};
struct stats_view {
    uint64_t warm, assigned, total, max;
    const struct config_view *config;
};
/* clang-format off */
static const struct shape_field config_fields[] = {
    {"warmTarget", SHAPE_U64, offsetof(struct config_view, target), "Number of sandboxes kept ready."},
    {"refreshInterval", SHAPE_U64, offsetof(struct config_view, refresh), "Always 0: the pool is refilled at once."},
    {"maxInstances", SHAPE_U64, offsetof(struct config_view, max), "Maximum number of sandboxes of this host."},
    {"scaleBatchSize", SHAPE_U64, offsetof(struct config_view, batch), "Number of sandboxes created at a time."},
};
static SHAPE(config_shape, "CloudflarePoolConfig", "Settings of the pool.", config_fields);
static const struct shape_field stats_fields[] = {
    {"warm", SHAPE_U64, offsetof(struct stats_view, warm), "Ready and unassigned."},
    {"assigned", SHAPE_U64, offsetof(struct stats_view, assigned), "Assigned, in any state."},
    {"total", SHAPE_U64, offsetof(struct stats_view, total), "Sum of both."},
    {"config", SHAPE_OBJECT, offsetof(struct stats_view, config), "Settings of the pool.", SHAPE_ALWAYS, &config_shape},
    {"maxInstances", SHAPE_U64, offsetof(struct stats_view, max), "Maximum number of sandboxes of this host."},
};
static SHAPE(stats_shape, "CloudflarePoolStats", "The sandboxes kept ready.", stats_fields);
/* clang-format on */

static void stats_told(void *arg, const struct engine_stats *s)
{
    struct call *c = arg;
    struct config_view config = {c->plane->config->pool, 0, s->sandboxes_max, 1};
    struct stats_view v = {.warm = s->pooled, .config = &config, .max = s->sandboxes_max};

    if (!call_told(c))
        return;
    for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
        v.assigned += s->by_state[i];
    v.total = v.warm + v.assigned;
    call_reply_shape(c, &stats_shape, &v);
}

static void pool_stats(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_stat(c->plane->engine, stats_told, c);
}

static void pool_leave(struct call *c, const void *in)
{
    (void)in;
    cloudflare_reply_ok(c);
}

/* clang-format off */
const struct surface_row cloudflare_pool[] = {
    {{"GET", CLOUDFLARE_POOL "stats"}, SCOPE_READ, pool_stats, "getPoolStats",
     "Shows the state of the pool.",
     .status = 200, .answers = {&stats_shape}},
    {{"POST", CLOUDFLARE_POOL "prime"}, SCOPE_READ, pool_leave, "primePool",
     "Does nothing: the pool refills itself.",
     .status = 200, .answers = {&cloudflare_ok_shape}, .flags = SURFACE_RAW_BODY},
    {{"POST", CLOUDFLARE_POOL "shutdown-prewarmed"}, SCOPE_READ, pool_leave, "shutdownPrewarmed",
     "Does nothing: the operator sets the size of the pool.",
     .status = 200, .answers = {&cloudflare_ok_shape}, .flags = SURFACE_RAW_BODY},
    {.op = NULL},
};
/* clang-format on */
