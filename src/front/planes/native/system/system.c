/* system.c - the server itself: health, readiness, settings, metrics. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/engine/metrics.h"
#include "front/planes/native/internal.h"

/* ---- /health ---- */

struct health_view {
    bool ok;
};
static const struct shape_field health_fields[] = {
    {"ok", SHAPE_BOOL, offsetof(struct health_view, ok), "True if the server answers requests."},
};
static SHAPE(health_shape, "Health", "The server is running.", health_fields);

static void health(struct call *c, const void *in)
{
    (void)in;
    call_reply_shape(c, &health_shape, &(struct health_view){true});
}

/* ---- /ready ---- */

struct ready_view {
    bool ok;
    const char *reason, *lacks, *stage, *reserve, *firewall;
};
/* clang-format off */
static const struct shape_field ready_fields[] = {
    {"ok", SHAPE_BOOL, offsetof(struct ready_view, ok), "True if the server accepts creates."},
    {"reason", SHAPE_STR, offsetof(struct ready_view, reason), "Why not: `starting`; `full`, and `lacks` says of what; `failing`, and `stage` says where.", SHAPE_OMITTED},
    {"lacks", SHAPE_STR, offsetof(struct ready_view, lacks), "What a full host has too little of: `sandboxes` (the maximum is reached), `memory`, `disk`, or `deletes` (many are not finished).", SHAPE_OMITTED},
    {"stage", SHAPE_STR, offsetof(struct ready_view, stage), "The stage that no new sandbox gets past: `template`, `cgroup`, `ids`, `birth`, `disk`, `root`, `network` or `init`. The log has the error.", SHAPE_OMITTED},
    {"reserve", SHAPE_STR, offsetof(struct ready_view, reserve),
     "Disk space allocated ahead: `enough`; `short` of what is wanted; `low`, and creates are refused; `unbacked`: writes can be lost if the host's disk fills up; `none` is kept.", SHAPE_OMITTED},
    {"firewall", SHAPE_STR, offsetof(struct ready_view, firewall), "The rule of another firewall of the host that keeps sandboxes from their network, and what to do. Creates work.", SHAPE_OMITTED},
};
/* clang-format on */
static SHAPE(
    ready_shape, "Ready",
    "Whether sandboxes can be created: whether the last one that was made for the pool went "
    "through every stage. Without sizes, since no key is required.",
    ready_fields);

static const char *reserve_word(const struct engine_stats *s)
{
    if (s->disk_low)
        return "low";
    if (s->reserve_wanted == 0)
        return "none";
    if (!s->disk_backed)
        return "unbacked";
    return s->reserve >= s->reserve_wanted || s->disk_allocated == s->disk_total ? "enough"
                                                                                 : "short";
}

static void ready_told(void *arg, const struct engine_stats *s)
{
    struct call *c = arg;
    bool full = *s->lacks != '\0', failing = *s->failing != '\0';
    struct ready_view v = {.ok = s->joined && s->proven && !full && !failing,
                           .lacks = s->lacks,
                           .stage = full ? "" : s->failing,
                           .reserve = s->joined ? reserve_word(s) : "",
                           .firewall = s->firewall};

    if (!call_told(c))
        return;
    v.reason = full ? "full" : failing ? "failing" : v.ok ? "" : "starting";
    call_reply_shape_as(c, v.ok ? 200 : 503, &ready_shape, &v);
}

static void ready(struct call *c, const void *in)
{
    (void)in;
    if (!engine_is_ready(c->plane->engine)) {
        call_reply_shape_as(
            c, 503, &ready_shape,
            &(struct ready_view){
                .reason = "starting", .lacks = "", .stage = "", .reserve = "", .firewall = ""});
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_prove(c->plane->engine, ready_told, c);
}

/* ---- /v1/config ---- */

struct setting_view {
    const char *name, *value, *def, *doc;
};
struct settings_view {
    struct shape_bytes settings;
};
/* clang-format off */
static const struct shape_field setting_fields[] = {
    {"name", SHAPE_STR, offsetof(struct setting_view, name), "Name, as on the command line without dashes."},
    {"value", SHAPE_STR, offsetof(struct setting_view, value), "Value, as in the configuration file."},
    {"default", SHAPE_STR, offsetof(struct setting_view, def), "Default value."},
    {"doc", SHAPE_STR, offsetof(struct setting_view, doc), "Description."},
};
static SHAPE(setting_shape, "Setting", "One setting of the server.", setting_fields);
static const struct shape_field settings_fields[] = {
    {"settings", SHAPE_LIST, offsetof(struct settings_view, settings), "All settings; none is secret.", SHAPE_ALWAYS, &setting_shape},
};
static SHAPE(settings_shape, "Config", "The settings of the server.", settings_fields);
/* clang-format on */

static void config_get(struct call *c, const void *in)
{
    autobuf struct buf rows = BUF_INIT(256u << 10);

    (void)in;
    for (size_t i = 0; i < config_nkeys; i++) {
        const struct config_key *k = &config_keys[i];
        char value[CONFIG_TEXT_MAX];

        config_value(c->plane->config, k, value);
        shape_append(&rows, &setting_shape, &(struct setting_view){k->name, value, k->def, k->doc});
    }
    call_reply_shape(c, &settings_shape, &(struct settings_view){shape_list(&rows)});
}

/* ---- /metrics ---- */

#define METRICS_MAX (4u << 20)

/* clang-format off */
static const struct {
    const char *name, *type, *help;
    size_t offset; /* in struct engine_stats */
} metrics[] = {
#define ROW(member, type, name, help) {"cove_" name, type, help, offsetof(struct engine_stats, member)}
    ROW(creates,          "counter", "sandbox_creates_total",         "Sandboxes made."),
    ROW(create_failures,  "counter", "sandbox_create_failures_total", "Sandboxes that could not be made."),
    ROW(deletes,          "counter", "sandbox_deletes_total",         "Sandboxes deleted."),
    ROW(execs,            "counter", "execs_total",                   "Commands run by exec."),
    ROW(processes,        "counter", "processes_total",               "Processes started."),
    ROW(init_connections, "gauge",   "init_connections",              "Connections to sandboxes' inits."),
    ROW(pooled,           "gauge",   "sandboxes_pooled",              "Sandboxes made in advance."),
    ROW(proofs,           "counter", "sandbox_proofs_total",          "Sandboxes made only to know whether that works (/ready)."),
    ROW(teardown,         "gauge",   "teardown_queue",                "Sandboxes whose remains are being removed."),
    ROW(sandboxes_max,    "gauge",   "sandboxes_max",                 "Maximum number of sandboxes of this host."),
    ROW(disk_total,       "gauge",   "disk_bytes",                    "Size of the pool that sandboxes' disks may grow to together."),
    ROW(disk_free,        "gauge",   "disk_free_bytes",               "What can still be written: the reserve, and what the host can give."),
    ROW(disk_allocated,   "gauge",   "disk_allocated_bytes",          "What the disks have on the host now, used or reserved."),
    ROW(disk_used,        "gauge",   "disk_used_bytes",               "What sandboxes, snapshots and templates use of it."),
    ROW(reserve_wanted,   "gauge",   "disk_reserve_wanted_bytes",     "Free space that should be allocated ahead (disk-reserve)."),
    ROW(reserve,          "gauge",   "disk_reserve_bytes",            "Free space that is allocated ahead."),
    ROW(disk_low,         "gauge",   "disk_low",                      "1: too little space is left, and creates are refused with 507."),
    ROW(disk_backed,      "gauge",   "disk_backed",                   "1: all that tenants are promised is allocated on the host."),
    ROW(memory_total,     "gauge",   "memory_bytes",                  "Memory of the host that sandboxes may have together; 0: it is not limited."),
    ROW(memory_left,      "gauge",   "memory_left_bytes",             "What is left of it, or of the host's memory if that is less."),
    ROW(memory_low,       "gauge",   "memory_low",                    "1: too little is left, and creates are refused with 503."),
    ROW(io_weights,       "gauge",   "disk_io_weights",               "1: a busy disk is shared by weight (cgroup v2 io)."),
    ROW(io_limits,        "gauge",   "disk_io_limits",                "1: the limit disk_io can be had."),
    ROW(bandwidth,        "gauge",   "bandwidth_limits",              "1: the limit bandwidth can be had."),
#undef ROW
};
/* clang-format on */

static void metric_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric(struct buf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    metric_head(out, name, type, help);
    buf_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void put_engine(struct buf *out, const struct engine_stats *s)
{
    metric_head(out, "cove_sandboxes", "gauge", "Sandboxes by state.");
    for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
        buf_addf(out, "cove_sandboxes{state=\"%s\"} %llu\n",
                 sandbox_state_name((enum sandbox_state)i), (unsigned long long)s->by_state[i]);
    for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
        uint64_t v;

        memcpy(&v, (const char *)s + metrics[i].offset, sizeof(v));
        metric(out, metrics[i].name, metrics[i].type, metrics[i].help, v);
    }
}

static void put_requests(struct buf *out, const struct plane *n)
{
    static const char *const classes[PLANE_CLASSES] = {"gone", "1xx", "2xx", "3xx", "4xx", "5xx"};
    static const struct route none = {"-", "-"};

    metric_head(out, "cove_http_requests_total", "counter",
                "Answers by route and class of status; gone: the client left first.");
    for (size_t i = 0; i <= n->nrows; i++) {
        const struct route *r = i < n->nrows ? &n->rows[i].route : &none;

        for (int k = 0; k < PLANE_CLASSES; k++)
            if (n->counts[i].by_class[k] > 0)
                buf_addf(
                    out, "cove_http_requests_total{method=\"%s\",route=\"%s\",code=\"%s\"} %llu\n",
                    r->method, r->path, classes[k], (unsigned long long)n->counts[i].by_class[k]);
    }
}

static void put_histogram(struct buf *out, const char *name, const char *labels,
                          const struct histogram *h)
{
    const char *comma = *labels != '\0' ? "," : "", *open = *labels != '\0' ? "{" : "",
               *close = *labels != '\0' ? "}" : "";
    unsigned long long sum = 0;

    for (size_t i = 0; i < HISTOGRAM_CLASSES; i++) {
        sum += h->of[i];
        buf_addf(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, labels, comma,
                 (double)histogram_bounds_us[i] / 1e6, sum);
    }
    buf_addf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
             (unsigned long long)h->n);
    buf_addf(out, "%s_sum%s%s%s %.6f\n%s_count%s%s%s %llu\n", name, open, labels, close,
             (double)h->sum_us / 1e6, name, open, labels, close, (unsigned long long)h->n);
}

static void put_durations(struct buf *out, const struct plane *n)
{
    static const char name[] = "cove_http_request_seconds";
    char labels[256];

    metric_head(out, name, "histogram",
                "From the head of a request to the head of its answer, by route.");
    for (size_t i = 0; i < n->nrows; i++) {
        if (n->counts[i].took.n == 0)
            continue;
        snprintf(labels, sizeof(labels), "method=\"%s\",route=\"%s\"", n->rows[i].route.method,
                 n->rows[i].route.path);
        put_histogram(out, name, labels, &n->counts[i].took);
    }
}

static void put_loop(struct buf *out, const struct loop_times *t)
{
    metric_head(out, "cove_loop_turn_seconds", "histogram",
                "Processor time of the front's event loop between two waits.");
    put_histogram(out, "cove_loop_turn_seconds", "", &t->turns);
    metric_head(
        out, "cove_loop_hold_seconds", "histogram",
        "Processor time of one callback of the loop: what one request keeps others waiting.");
    put_histogram(out, "cove_loop_hold_seconds", "", &t->holds);
    metric_head(out, "cove_loop_hold_longest_seconds", "gauge",
                "The longest since the front started.");
    buf_addf(out, "cove_loop_hold_longest_seconds %.6f\n", (double)t->longest_hold_us / 1e6);
}

static uint64_t resident_bytes(void)
{
    autofd int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char text[128] = "";
    unsigned long long pages = 0;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%*u %llu", &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (d == NULL)
        return 0;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

static void put_process(struct buf *out, const struct plane *n)
{
    if (n->server != NULL)
        metric(out, "cove_http_connections", "gauge", "HTTP connections.",
               http_server_conns(n->server));
    if (n->server != NULL)
        metric(out, "cove_http_evictions_total", "counter",
               "Idle HTTP connections that were closed to make room for others.",
               http_server_evicted(n->server));
    metric(out, "cove_front_resident_bytes", "gauge", "Memory of the front.", resident_bytes());
    metric(out, "cove_front_open_fds", "gauge", "Open file descriptors of the front.", open_fds());
    metric(out, "cove_front_uptime_seconds", "gauge", "Since the front started.",
           (clock_mono_ms() - n->started_ms) / 1000);
}

/* Grouped by metric family, as Prometheus requires, from answers that come per sandbox. */
enum { IN_BYTES, OUT_BYTES, IN_PACKETS, OUT_PACKETS, TRAFFIC_COUNT };
static const struct {
    const char *name, *help;
} traffic[TRAFFIC_COUNT] = {
    [IN_BYTES] = {"cove_sandbox_network_in_bytes_total",
                  "Bytes a sandbox received, since its boot."},
    [OUT_BYTES] = {"cove_sandbox_network_out_bytes_total", "Bytes a sandbox sent, since its boot."},
    [IN_PACKETS] = {"cove_sandbox_network_in_packets_total", "Packets a sandbox received."},
    [OUT_PACKETS] = {"cove_sandbox_network_out_packets_total", "Packets a sandbox sent."},
};

struct metrics_call {
    struct call *c;
    const char *key; /* NULL: all */
    struct buf out, traffic[TRAFFIC_COUNT];
};

static void metrics_drop(void *state)
{
    struct metrics_call *m = state;

    buf_free(&m->out);
    for (int i = 0; i < TRAFFIC_COUNT; i++)
        buf_free(&m->traffic[i]);
}

static void metrics_traffic(void *arg, const struct sandbox_traffic *t)
{
    struct metrics_call *m = arg;
    const uint64_t values[TRAFFIC_COUNT] = {[IN_BYTES] = t->in_bytes,
                                            [OUT_BYTES] = t->out_bytes,
                                            [IN_PACKETS] = t->in_packets,
                                            [OUT_PACKETS] = t->out_packets};

    for (int i = 0; i < TRAFFIC_COUNT; i++)
        buf_addf(&m->traffic[i], "%s{sandbox=\"%s\"} %llu\n", traffic[i].name, t->id,
                 (unsigned long long)values[i]);
}

static void metrics_complete(void *arg, const struct err *e)
{
    struct metrics_call *m = arg;
    struct call *c = m->c;

    (void)e; /* without the keeper there is no traffic to tell of, but all the rest */
    if (!call_told(c))
        return;
    for (int i = 0; i < TRAFFIC_COUNT; i++) {
        metric_head(&m->out, traffic[i].name, "counter", traffic[i].help);
        buf_add(&m->out, buf_data(&m->traffic[i]), m->traffic[i].len);
    }
    put_requests(&m->out, c->plane);
    put_durations(&m->out, c->plane);
    put_loop(&m->out, loop_times(c->loop));
    put_process(&m->out, c->plane);
    call_reply(c, 200, "text/plain; version=0.0.4", &m->out);
}

/* What each sandbox used when it was last looked at. */
static const struct {
    const char *name, *help;
    size_t offset;
} usage[] = {
    {"cove_sandbox_cpu_milli", "Thousandths of a core.", offsetof(struct metric, cpu_milli)},
    {"cove_sandbox_memory_bytes", "Memory, cached files included.",
     offsetof(struct metric, memory)},
    {"cove_sandbox_cache_bytes", "Cached files.", offsetof(struct metric, cache)},
    {"cove_sandbox_disk_bytes", "Bytes on its disk.", offsetof(struct metric, disk)},
    {"cove_sandbox_processes", "Number of processes and threads.", offsetof(struct metric, pids)},
};

struct usage_line {
    struct buf *out;
    size_t i;
};

static void put_usage(void *arg, const char *id, const struct metric *m)
{
    const struct usage_line *l = arg;
    uint64_t value;

    memcpy(&value, (const char *)m + usage[l->i].offset, sizeof(value));
    buf_addf(l->out, "%s{sandbox=\"%s\"} %llu\n", usage[l->i].name, id, (unsigned long long)value);
}

static void metrics_told(void *arg, const struct engine_stats *s)
{
    struct metrics_call *m = arg;
    struct call *c = m->c;

    if (!call_told(c))
        return;
    put_engine(&m->out, s);
    for (struct usage_line l = {.out = &m->out}; l.i < ARRAY_LEN(usage); l.i++) {
        metric_head(&m->out, usage[l.i].name, "gauge", usage[l.i].help);
        engine_last_metrics(c->ref.engine, m->key, put_usage, &l);
    }
    call_expect(c, &call_pending, NULL);
    engine_traffic(c->ref.engine, m->key, metrics_traffic, metrics_complete, m);
}

struct prometheus_in {
    bool all_keys;
};
static const struct json_field prometheus_fields[] = {
    {"all_keys", JSON_FIELD_BOOL, offsetof(struct prometheus_in, all_keys), 0, 0, false,
     "Also gauges of the sandboxes of all keys; for admin keys only."},
};
static const struct surface_input prometheus_input = {
    SURFACE_INPUT(prometheus_fields, struct prometheus_in)};

static void metrics_get(struct call *c, const void *in)
{
    struct metrics_call *m = call_state(c, sizeof(*m), metrics_drop);
    struct err e;

    m->c = c;
    buf_init(&m->out, METRICS_MAX);
    for (int i = 0; i < TRAFFIC_COUNT; i++)
        buf_init(&m->traffic[i], METRICS_MAX / 4);
    if (native_all_keys(c, ((const struct prometheus_in *)in)->all_keys, &m->key, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_stat(c->plane->engine, metrics_told, m);
}

/* clang-format off */
const struct surface_row surface_system[] = {
    {{"GET", "/health"}, SCOPE_PUBLIC, health, "getHealth",
     "Answers if the server is running; no key required.",
     .status = 200, .answers = {&health_shape}, .flags = SURFACE_EARLY},
    {{"GET", "/ready"}, SCOPE_PUBLIC, ready, "getReady",
     "Whether sandboxes can be created: 503 with the reason if not; no key required.",
     .status = 200, .answers = {&ready_shape}, .flags = SURFACE_EARLY},
    {{"GET", "/metrics"}, SCOPE_READ, metrics_get, "getMetrics",
     "Metrics in Prometheus format.",
     .query = &prometheus_input, .status = 200, .flags = SURFACE_TEXT},
    {{"GET", "/v1/config"}, SCOPE_ADMIN, config_get, "getConfig",
     "The settings of the server.",
     .status = 200, .answers = {&settings_shape}, .flags = SURFACE_EARLY},
    {.op = NULL},
};
/* clang-format on */
