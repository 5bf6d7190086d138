/* usage.c - E2B's metrics: what sandboxes used, on both planes. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/metrics.h"
#include "front/planes/e2b/inside.h"
#include "json/write.h"

#define POINT_BYTES_MAX 512u
#define POINTS_BYTES_MAX (METRIC_POINTS_MAX * POINT_BYTES_MAX)
#define IDS_MAX 100u
#define MIB (1ull << 20)

static uint64_t cores_of(const struct sandbox *s)
{
    return (s->limits.cpu_milli + 999) / 1000;
}

/* Of all it may use, as E2B counts. */
static double percent_of(const struct sandbox *s, const struct metric *m)
{
    return s->limits.cpu_milli == 0 ? 0
                                    : 100.0 * (double)m->cpu_milli / (double)s->limits.cpu_milli;
}

/* The engine counts what files are cached with as used. */
static uint64_t used_of(const struct metric *m)
{
    return m->memory > m->cache ? m->memory - m->cache : 0;
}

static void put_point(struct json_w *w, const struct sandbox *s, const struct metric *m)
{
    char text[CLOCK_TEXT_MAX];

    jw_open(w);
    jw_kstr(w, "timestamp", clock_text(m->at_ms, text));
    jw_ku64(w, "timestampUnix", m->at_ms / 1000);
    jw_ku64(w, "cpuCount", cores_of(s));
    jw_key(w, "cpuUsedPct");
    jw_num(w, percent_of(s, m));
    jw_ku64(w, "memUsed", used_of(m));
    jw_ku64(w, "memTotal", s->limits.memory);
    jw_ku64(w, "memCache", m->cache);
    jw_ku64(w, "diskUsed", m->disk);
    jw_ku64(w, "diskTotal", s->limits.disk);
    jw_close(w);
}

/* ---- of one ---- */

struct points_in {
    uint64_t start, end; /* seconds */
};
/* clang-format off */
static const struct json_field points_fields[] = {
    {"start", JSON_FIELD_U64, offsetof(struct points_in, start), 0, INT64_MAX / 1000, false, ""},
    {"end", JSON_FIELD_U64, offsetof(struct points_in, end), 0, INT64_MAX / 1000, false, ""},
};
/* clang-format on */

static void points_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct points_in *)in)->end = INT64_MAX / 1000;
}

static const struct surface_input points_input = {SURFACE_INPUT(points_fields, struct points_in),
                                                  .defaults = points_defaults};

struct points {
    const struct sandbox *s;
    struct buf rows;
};

static void add_point(void *arg, const struct metric *m)
{
    struct points *p = arg;
    struct json_w w;

    if (p->rows.len > 0)
        buf_addc(&p->rows, ',');
    jw_init(&w, &p->rows);
    put_point(&w, p->s, m);
}

/* Seconds mean all of them: a point within the last one counts. */
static void metrics_of(struct call *c, const void *arg)
{
    const struct points_in *in = arg;
    struct points p = {.s = e2b_named(c), .rows = BUF_INIT(POINTS_BYTES_MAX)};
    struct err e;

    if (p.s == NULL)
        return;
    if (engine_metrics(c->plane->engine, c->key, p.s->id, in->start * 1000, in->end * 1000 + 999,
                       METRIC_POINTS_MAX, add_point, &p, &e) < 0)
        call_fail(c, &e);
    else
        e2b_reply_list(c, 200, &p.rows);
    buf_free(&p.rows);
}

/* ---- the last ones of several ---- */

struct several_in {
    const char *ids;
};
static const struct json_field several_fields[] = {
    {"sandbox_ids", JSON_FIELD_STR, offsetof(struct several_in, ids), 0, 0, true, ""},
};
static const struct surface_input several_input = {
    SURFACE_INPUT(several_fields, struct several_in)};

static void put_last(struct json_w *w, struct call *c, const char *id)
{
    const struct sandbox *s = engine_get(c->plane->engine, c->key, id);
    const struct metric *m = engine_last_metric(c->plane->engine, c->key, id);

    if (s == NULL || m == NULL)
        return;
    jw_key(w, id);
    put_point(w, s, m);
}

static void metrics_of_several(struct call *c, const void *in)
{
    const char *ids = ((const struct several_in *)in)->ids;
    autobuf struct buf body = BUF_INIT(IDS_MAX * (POINT_BYTES_MAX + ENGINE_ID_MAX));
    struct json_w w;
    struct err e;

    jw_init(&w, &body);
    jw_open(&w);
    jw_key(&w, "sandboxes");
    jw_open(&w);
    for (size_t n, i = 0; *ids != '\0'; ids += n + (ids[n] == ','), i++) {
        char id[ENGINE_ID_MAX + 1] = "";

        n = strcspn(ids, ",");
        if (i == IDS_MAX) {
            err_set(&e, ERR_INVALID, "sandbox_ids: more than %u", IDS_MAX);
            call_fail(c, &e);
            return;
        }
        if (n <= ENGINE_ID_MAX)
            str_fmt(id, sizeof(id), "%.*s", (int)n, ids);
        put_last(&w, c, id);
    }
    jw_close(&w);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

/* ---- the data plane's own ---- */

static void metrics_inside(struct call *c, const void *in)
{
    autobuf struct buf body = BUF_INIT(2 * POINT_BYTES_MAX);
    const struct sandbox *s = engine_find(c->plane->engine, c->sandbox);
    const struct metric *m = engine_last_metric(c->plane->engine, c->key, c->sandbox);
    struct metric none = {.at_ms = clock_real_ms()};
    struct json_w w;

    (void)in;
    if (m == NULL)
        m = &none; /* it is not five seconds old */
    jw_init(&w, &body);
    jw_open(&w);
    jw_ku64(&w, "ts", m->at_ms / 1000);
    jw_ku64(&w, "cpu_count", cores_of(s));
    jw_key(&w, "cpu_used_pct");
    jw_num(&w, percent_of(s, m));
    jw_ku64(&w, "mem_total", s->limits.memory);
    jw_ku64(&w, "mem_used", used_of(m));
    jw_ku64(&w, "mem_cache", m->cache);
    jw_ku64(&w, "mem_total_mib", s->limits.memory / MIB);
    jw_ku64(&w, "mem_used_mib", used_of(m) / MIB);
    jw_ku64(&w, "disk_used", m->disk);
    jw_ku64(&w, "disk_total", s->limits.disk);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

/* clang-format off */
const struct surface_row e2b_usage[] = {
    {{"GET", "/sandboxes/metrics"}, SCOPE_READ, metrics_of_several, "sandboxesMetrics",
     "The last point of several sandboxes.", .query = &several_input, .status = 200},
    {{"GET", "/sandboxes/{id}/metrics"}, SCOPE_READ, metrics_of, "sandboxMetrics",
     "What it used, point by point.", .query = &points_input, .status = 200},
    {.op = NULL},
};
const struct surface_row e2b_inside_usage[] = {
    {{"GET", "/metrics"}, SCOPE_READ, metrics_inside, "metrics", "What it uses.", .status = 200},
    {.op = NULL},
};
/* clang-format on */
