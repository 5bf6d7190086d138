/* metrics.c - resource usage and logs of a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/metrics.h"
#include "front/planes/native/internal.h"

#define METRICS_LIMIT 500u
#define POINT_BYTES_MAX 512u
#define LOGS_LIMIT 100u
#define ENTRY_BYTES_MAX (32u << 10)
#define WORD_MAX 32u

/* ---- metrics ---- */

/* clang-format off */
static const struct shape_field point_fields[] = {
    {"at", SHAPE_TIME, offsetof(struct metric, at_ms), "When."},
    {"cpu_milli", SHAPE_U64, offsetof(struct metric, cpu_milli), "Thousandths of a core, on average since the previous point."},
    {"memory", SHAPE_U64, offsetof(struct metric, memory), "Bytes of memory, including the page cache."},
    {"cache", SHAPE_U64, offsetof(struct metric, cache), "Bytes of the page cache."},
    {"disk", SHAPE_U64, offsetof(struct metric, disk), "Bytes used on its disk."},
    {"pids", SHAPE_U64, offsetof(struct metric, pids), "Number of processes and threads."},
    {"in_bytes", SHAPE_U64, offsetof(struct metric, in_bytes), "Bytes received over its network since its boot."},
    {"out_bytes", SHAPE_U64, offsetof(struct metric, out_bytes), "Bytes sent over its network since its boot."},
};
static SHAPE(point_shape, "MetricPoint", "Resource usage of a sandbox at one moment.", point_fields);

struct points_view {
    struct shape_bytes points;
};
static const struct shape_field points_fields[] = {
    {"points", SHAPE_LIST, offsetof(struct points_view, points), "Points, oldest first; by default one every five seconds while it runs.", SHAPE_ALWAYS, &point_shape},
};
static SHAPE(points_shape, "Metrics", "Resource usage of a sandbox.", points_fields);

struct metrics_in {
    uint64_t since, until, limit;
};
static const struct json_field metrics_fields[] = {
    {"since", JSON_FIELD_U64, offsetof(struct metrics_in, since), 0, INT64_MAX, false, "Start of the period, in ms since 1970."},
    {"until", JSON_FIELD_U64, offsetof(struct metrics_in, until), 0, INT64_MAX, false, "End of the period, in ms since 1970."},
    {"limit", JSON_FIELD_U64, offsetof(struct metrics_in, limit), 1, METRIC_POINTS_MAX, false, "Maximum number of points; the newest are kept. Default: 500."},
};
/* clang-format on */

static void metrics_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct metrics_in *)in = (struct metrics_in){.until = INT64_MAX, .limit = METRICS_LIMIT};
}

static const struct surface_input metrics_input = {SURFACE_INPUT(metrics_fields, struct metrics_in),
                                                   .defaults = metrics_defaults};

static void add_point(void *arg, const struct metric *m)
{
    shape_append(arg, &point_shape, m);
}

static void metrics_get(struct call *c, const void *in)
{
    const struct metrics_in *m = in;
    autobuf struct buf points = BUF_INIT(METRIC_POINTS_MAX * POINT_BYTES_MAX);
    struct err e;

    if (engine_metrics(c->ref, m->since, m->until, (size_t)m->limit, add_point, &points, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_shape(c, &points_shape, &(struct points_view){shape_list(&points)});
}

/* ---- logs ---- */

struct entry_view {
    uint64_t at_ms;
    const char *level, *message, *fields, *cursor;
};
/* clang-format off */
static const struct shape_field entry_fields[] = {
    {"at", SHAPE_TIME, offsetof(struct entry_view, at_ms), "When."},
    {"level", SHAPE_STR, offsetof(struct entry_view, level), "debug, info, warn or error."},
    {"message", SHAPE_STR, offsetof(struct entry_view, message), "Message."},
    {"fields", SHAPE_ANY, offsetof(struct entry_view, fields), "Structured fields; for a line of output the command and the stream."},
    {"cursor", SHAPE_STR, offsetof(struct entry_view, cursor), "Pass it as `cursor` to continue after this entry, in either direction."},
};
static SHAPE(entry_shape, "LogEntry", "An event of a sandbox, or a line of output of a command.", entry_fields);

struct log_view {
    struct shape_bytes entries;
    const char *next;
};
static const struct shape_field log_fields[] = {
    {"entries", SHAPE_LIST, offsetof(struct log_view, entries), "Entries in the requested direction.", SHAPE_ALWAYS, &entry_shape},
    {"next_cursor", SHAPE_STR, offsetof(struct log_view, next), "Pass it as `cursor` to continue; null: no more entries. Forward, more may follow later.", SHAPE_NULLABLE},
};
static SHAPE(log_shape, "Log", "Log of a sandbox.", log_fields);

struct log_in {
    const char *cursor, *direction, *level, *search;
    uint64_t limit;
};
static const struct json_field log_in_fields[] = {
    {"cursor", JSON_FIELD_STR, offsetof(struct log_in, cursor), 0, WORD_MAX, false, "next_cursor of the previous answer."},
    {"direction", JSON_FIELD_STR, offsetof(struct log_in, direction), 1, WORD_MAX, false, "backward (default: newest first) or forward."},
    {"level", JSON_FIELD_STR, offsetof(struct log_in, level), 1, WORD_MAX, false, "Minimum level: debug, info, warn or error."},
    {"search", JSON_FIELD_STR, offsetof(struct log_in, search), 1, LOG_SEARCH_MAX, false, "Only entries whose message contains this text, ignoring case."},
    {"limit", JSON_FIELD_U64, offsetof(struct log_in, limit), 1, LOG_ENTRIES_MAX, false, "Maximum number of entries. Default: 100. One call scans at most 20000 entries, so an answer with fewer entries may still have a cursor."},
};
/* clang-format on */

static void log_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct log_in *)in)->limit = LOGS_LIMIT;
}

static const struct surface_input log_input = {SURFACE_INPUT(log_in_fields, struct log_in),
                                               .defaults = log_defaults};

static int decode_level(const char *word, enum log_severity *ret, struct err *e)
{
    for (int i = 0; i < LOG_ENTRY_COUNT; i++)
        if (strcmp(word, log_severity_name((enum log_severity)i)) == 0) {
            *ret = (enum log_severity)i;
            return 0;
        }
    return err_set(e, ERR_INVALID, "level: expected one of debug, info, warn, error");
}

static int decode_log(const struct log_in *in, struct log_opts *o, struct err *e)
{
    const char *direction = in->direction != NULL ? in->direction : "backward";

    o->backward = strcmp(direction, "forward") != 0;
    if (o->backward && strcmp(direction, "backward") != 0)
        return err_set(e, ERR_INVALID, "direction: expected one of forward, backward");
    if (in->level != NULL && decode_level(in->level, &o->level, e) < 0)
        return -1;
    if (in->cursor != NULL &&
        (in->cursor[0] != 'l' || str_u64(in->cursor + 1, INT64_MAX, &o->from) < 0))
        return err_set(e, ERR_INVALID, "cursor: expected next_cursor of the previous page");
    o->search = in->search;
    o->limit = (size_t)in->limit;
    return 0;
}

static const char *cursor_text(char out[WORD_MAX], uint64_t n)
{
    snprintf(out, WORD_MAX, "l%llu", (unsigned long long)n);
    return out;
}

static void add_entry(void *arg, const struct log_entry *l)
{
    char cursor[WORD_MAX];
    struct entry_view v = {l->at_ms, log_severity_name(l->level), l->message, l->fields,
                           cursor_text(cursor, l->n)};

    shape_append(arg, &entry_shape, &v);
}

static void log_get(struct call *c, const void *in)
{
    autobuf struct buf entries = BUF_INIT(LOG_ENTRIES_MAX * ENTRY_BYTES_MAX);
    struct log_opts o = {.ref = c->ref};
    char cursor[WORD_MAX];
    uint64_t next;
    struct err e;

    if (decode_log(in, &o, &e) < 0 || engine_logs(&o, add_entry, &entries, &next, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_reply_shape(
        c, &log_shape,
        &(struct log_view){shape_list(&entries), next != 0 ? cursor_text(cursor, next) : NULL});
}

/* clang-format off */
const struct surface_row surface_metrics[] = {
    {{"GET", "/v1/sandboxes/{id}/metrics"}, SCOPE_READ, metrics_get, "getSandboxMetrics",
     "Shows the resource usage of a sandbox over time.",
     .query = &metrics_input, .status = 200, .answers = {&points_shape}, .flags = SURFACE_ADMIN},
    {{"GET", "/v1/sandboxes/{id}/logs"}, SCOPE_READ, log_get, "getSandboxLogs",
     "Shows the log of a sandbox: events of the sandbox and its processes and, with log_output, their output.",
     .query = &log_input, .status = 200, .answers = {&log_shape}, .flags = SURFACE_ADMIN | SURFACE_AUDIT},
    {.op = NULL},
};
/* clang-format on */
