/* usage.c - metrics as E2B shows them: points of one sandbox, the last points of several, and, in the
 * data plane, current values. */
#include "front/engine/metrics.h"

#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/internal.h"
#include "json/write.h"

#define POINT_BYTES_MAX 512u
#define SANDBOXES_MAX 100u /* of one question */
#define SECONDS_MAX 253402300799ull
#define MEBIBYTE (1ull << 20)

/* A share of what it may use at most, whatever the number of cores. */
static double cpu_percent(const struct sandbox *s, const struct metric *m)
{
    uint64_t most = s->limits.cpu_milli > 0 ? s->limits.cpu_milli : 1000;
    uint64_t basis = m->cpu_milli * 10000 / most;

    return (double)(basis < 10000 ? basis : 10000) / 100;
}

static uint64_t cores(const struct sandbox *s)
{
    return (s->limits.cpu_milli + 999) / 1000;
}

/* The page cache does not count: the kernel frees it when memory is needed. */
static uint64_t used(const struct metric *m)
{
    return m->memory > m->cache ? m->memory - m->cache : 0;
}

/* ---- points ---- */

static void put_point(struct json_w *w, const struct sandbox *s, const struct metric *m)
{
    char text[CLOCK_TEXT_MAX];

    jw_open(w);
    jw_kstr(w, "timestamp", clock_text(m->at_ms, text));
    jw_ku64(w, "timestampUnix", m->at_ms / 1000);
    jw_ku64(w, "cpuCount", cores(s));
    jw_key(w, "cpuUsedPct");
    jw_num(w, cpu_percent(s, m));
    jw_ku64(w, "memUsed", used(m));
    jw_ku64(w, "memTotal", s->limits.memory);
    jw_ku64(w, "memCache", m->cache);
    jw_ku64(w, "diskUsed", m->disk);
    jw_ku64(w, "diskTotal", s->limits.disk);
    jw_close(w);
}

struct points_in {
    uint64_t start, end; /* seconds since 1970 */
};
/* clang-format off */
static const struct json_field points_fields[] = {
    {"start", JSON_FIELD_U64, offsetof(struct points_in, start), 0, SECONDS_MAX, false, ""},
    {"end", JSON_FIELD_U64, offsetof(struct points_in, end), 0, SECONDS_MAX, false, ""},
};
/* clang-format on */

static void points_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct points_in *)in)->end = SECONDS_MAX;
}

static const struct surface_input points_input = {SURFACE_INPUT(points_fields, struct points_in),
                                                  .defaults = points_defaults};

struct points {
    struct call *c;
    struct points_in in;
    const struct sandbox *s; /* while rows are written */
    struct buf rows;
};

static void points_drop(void *state)
{
    buf_free(&((struct points *)state)->rows);
}

static void add_point(void *arg, const struct metric *m)
{
    struct points *p = arg;
    struct json_w w;

    if (p->rows.len > 0)
        buf_addc(&p->rows, ',');
    jw_init(&w, &p->rows);
    put_point(&w, p->s, m);
}

static void points_reply(void *arg, const struct sandbox *s, const struct err *e)
{
    struct points *p = arg;
    struct call *c = p->c;
    struct err why;

    if (!call_told(c))
        return;
    p->s = s;
    if (s == NULL)
        call_fail(c, e);
    else if (engine_metrics(c->ref, p->in.start * 1000, p->in.end * 1000 + 999, METRIC_POINTS_MAX,
                            add_point, p, &why) < 0)
        call_fail(c, &why);
    else
        e2b_reply_list(c, c->row->status, &p->rows);
}

/* The first point is taken on request. */
static void points_get(struct call *c, const void *in)
{
    const struct sandbox *s = e2b_named(c);
    struct points *p = s == NULL ? NULL : call_state(c, sizeof(*p), points_drop);
    struct err e;

    if (p == NULL)
        return;
    p->c = c;
    p->in = *(const struct points_in *)in;
    buf_init(&p->rows, METRIC_POINTS_MAX * POINT_BYTES_MAX);
    if (p->in.start > p->in.end) {
        err_set(&e, ERR_INVALID, "start time cannot be after end time");
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    if (engine_last_metric(c->ref) == NULL)
        engine_measure(c->ref, points_reply, p);
    else
        points_reply(p, s, NULL);
}

/* ---- the last point of several ---- */

struct last_in {
    const char *ids;
};
static const struct json_field last_fields[] = {
    {"sandbox_ids", JSON_FIELD_STR, offsetof(struct last_in, ids), 0, 0, true, ""},
};
static const struct surface_input last_input = {SURFACE_INPUT(last_fields, struct last_in)};

/* Those that are not there, or have no point yet, are left out. */
static void put_last(struct call *c, struct json_w *w, const char *id)
{
    const struct sandbox *s = engine_get(ref_with(c->ref, id));
    const struct metric *m = s == NULL ? NULL : engine_last_metric(ref_with(c->ref, id));

    if (m == NULL)
        return;
    jw_key(w, s->id);
    put_point(w, s, m);
}

static int put_each(struct call *c, struct json_w *w, const char *ids, struct err *e)
{
    char id[ENGINE_ID_MAX + 1];
    size_t n, count = 0;

    for (const char *at = ids; *at != '\0'; at += n + (at[n] == ',')) {
        n = strcspn(at, ",");
        if (n == 0)
            continue;
        if (++count > SANDBOXES_MAX)
            return err_set(e, ERR_INVALID, "sandbox_ids: at most %u", SANDBOXES_MAX);
        if (n > ENGINE_ID_MAX)
            continue;
        str_fmt(id, sizeof(id), "%.*s", (int)n, at);
        put_last(c, w, id);
    }
    return 0;
}

static void last_get(struct call *c, const void *in)
{
    autobuf struct buf body = BUF_INIT(SANDBOXES_MAX * POINT_BYTES_MAX);
    struct json_w w;
    struct err e;

    jw_init(&w, &body);
    jw_open(&w);
    jw_key(&w, "sandboxes");
    jw_open(&w);
    if (put_each(c, &w, ((const struct last_in *)in)->ids, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    jw_close(&w);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

/* ---- the data plane's ---- */

static void usage_reply(void *arg, const struct sandbox *s, const struct err *e)
{
    struct call *c = arg;
    autobuf struct buf body = BUF_INIT(POINT_BYTES_MAX);
    const struct metric *m;
    struct json_w w;
    struct err none;

    if (!call_told(c))
        return;
    m = s == NULL ? NULL : engine_last_metric(c->ref);
    if (s == NULL || m == NULL) {
        err_set(&none, ERR_UNAVAILABLE, "no metrics were taken yet; try again");
        call_fail(c, s == NULL ? e : &none);
        return;
    }
    jw_init(&w, &body);
    jw_open(&w);
    jw_ku64(&w, "ts", m->at_ms / 1000);
    jw_ku64(&w, "cpu_count", cores(s));
    jw_key(&w, "cpu_used_pct");
    jw_num(&w, cpu_percent(s, m));
    jw_ku64(&w, "mem_total", s->limits.memory);
    jw_ku64(&w, "mem_used", used(m));
    jw_ku64(&w, "mem_cache", m->cache);
    jw_ku64(&w, "mem_total_mib", s->limits.memory / MEBIBYTE);
    jw_ku64(&w, "mem_used_mib", used(m) / MEBIBYTE);
    jw_ku64(&w, "disk_used", m->disk);
    jw_ku64(&w, "disk_total", s->limits.disk);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

static void usage_get(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_measure(c->ref, usage_reply, c);
}

/* clang-format off */
const struct surface_row e2b_usage[] = {
    {{"GET", "/sandboxes/metrics"}, SCOPE_READ, last_get, "lastMetrics",
     "The last point of several sandboxes.", .query = &last_input, .status = 200},
    {{"GET", "/sandboxes/{id}/metrics"}, SCOPE_READ, points_get, "getMetrics",
     "What it used, point by point.", .query = &points_input, .status = 200},
    {.op = NULL},
};

const struct surface_row e2b_inside_usage[] = {
    {{"GET", "/metrics"}, SCOPE_RUN, usage_get, "usage", "What it uses now.", .status = 200},
    {.op = NULL},
};
/* clang-format on */
