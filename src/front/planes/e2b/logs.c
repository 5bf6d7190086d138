/* logs.c - E2B's logs of a sandbox, in both generations: what happened to it. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/engine/metrics.h"
#include "front/planes/e2b/inside.h"
#include "json/read.h"
#include "json/write.h"

#define ENTRY_BYTES_MAX (64u << 10)
#define LOGS_BYTES_MAX (LOG_ENTRIES_MAX * ENTRY_BYTES_MAX)

static void put_entry(struct json_w *w, const struct log_entry *l)
{
    char text[CLOCK_TEXT_MAX];

    jw_open(w);
    jw_kstr(w, "timestamp", clock_text(l->at_ms, text));
    jw_kstr(w, "level", log_severity_name(l->level));
    jw_kstr(w, "message", l->message);
    jw_key(w, "fields");
    jw_raw(w, l->fields, strlen(l->fields));
    jw_close(w);
}

/* A line that clients parse again: level, message, and the fields beside them. */
static void put_line(struct json_w *w, const struct log_entry *l)
{
    autojson json_t *line = json_loads(l->fields, 0, NULL);
    char text[CLOCK_TEXT_MAX];
    autofree char *dump = NULL;

    if (line == NULL)
        line = json_object();
    json_object_set_new(line, "level", json_string(log_severity_name(l->level)));
    json_object_set_new(line, "logger", json_string("cove"));
    json_object_set_new(line, "message", json_string(l->message));
    dump = json_dumps(line, JSON_COMPACT);
    jw_open(w);
    jw_kstr(w, "timestamp", clock_text(l->at_ms, text));
    jw_kstr(w, "line", dump != NULL ? dump : "{}");
    jw_close(w);
}

static void begin(struct buf *out, struct json_w *w)
{
    if (out->len > 0)
        buf_addc(out, ',');
    jw_init(w, out);
}

struct both {
    struct buf lines, entries;
};

static void add_both(void *arg, const struct log_entry *l)
{
    struct both *b = arg;
    struct json_w w;

    begin(&b->lines, &w);
    put_line(&w, l);
    begin(&b->entries, &w);
    put_entry(&w, l);
}

static void add_entry(void *arg, const struct log_entry *l)
{
    struct json_w w;

    begin(arg, &w);
    put_entry(&w, l);
}

static void put_list(struct json_w *w, const char *name, const struct buf *rows)
{
    jw_key(w, name);
    jw_open_list(w);
    if (rows->len > 0)
        jw_raw(w, buf_data(rows), rows->len);
    jw_close_list(w);
}

/* ---- the first generation ---- */

struct v1_in {
    uint64_t start, limit;
};
/* clang-format off */
static const struct json_field v1_fields[] = {
    {"start", JSON_FIELD_U64, offsetof(struct v1_in, start), 0, INT64_MAX, false, ""},
    {"limit", JSON_FIELD_U64, offsetof(struct v1_in, limit), 0, 0, false, ""},
};
/* clang-format on */

static void v1_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct v1_in *)in)->limit = LOG_ENTRIES_MAX;
}

static const struct surface_input v1_input = {SURFACE_INPUT(v1_fields, struct v1_in),
                                              .defaults = v1_defaults};

static size_t bounded(uint64_t limit)
{
    return limit == 0 || limit > LOG_ENTRIES_MAX ? LOG_ENTRIES_MAX : (size_t)limit;
}

static void logs_v1(struct call *c, const void *arg)
{
    const struct v1_in *in = arg;
    const struct sandbox *s = e2b_named(c);
    autobuf struct buf body = BUF_INIT(2 * LOGS_BYTES_MAX);
    struct both b = {.lines = BUF_INIT(LOGS_BYTES_MAX), .entries = BUF_INIT(LOGS_BYTES_MAX)};
    struct log_opts o = {.key = c->key, .from_ms = in->start, .limit = bounded(in->limit)};
    struct json_w w;
    uint64_t next;
    struct err e;

    if (s == NULL)
        return;
    o.id = s->id;
    if (engine_logs(c->plane->engine, &o, add_both, &b, &next, &e) < 0) {
        call_fail(c, &e);
    } else {
        jw_init(&w, &body);
        jw_open(&w);
        put_list(&w, "logs", &b.lines);
        put_list(&w, "logEntries", &b.entries);
        jw_close(&w);
        call_reply(c, 200, "application/json", &body);
    }
    buf_free(&b.lines);
    buf_free(&b.entries);
}

/* ---- the second ---- */

struct v2_in {
    uint64_t cursor, limit;
    const char *direction, *level, *search;
};
/* clang-format off */
static const struct json_field v2_fields[] = {
    {"cursor", JSON_FIELD_U64, offsetof(struct v2_in, cursor), 0, INT64_MAX, false, ""},
    {"limit", JSON_FIELD_U64, offsetof(struct v2_in, limit), 0, 0, false, ""},
    {"direction", JSON_FIELD_STR, offsetof(struct v2_in, direction), 0, 0, false, ""},
    {"level", JSON_FIELD_STR, offsetof(struct v2_in, level), 0, 0, false, ""},
    {"search", JSON_FIELD_STR, offsetof(struct v2_in, search), 0, LOG_SEARCH_MAX, false, ""},
};
/* clang-format on */
static const struct surface_input v2_input = {SURFACE_INPUT(v2_fields, struct v2_in)};

static int decode(const struct v2_in *in, struct log_opts *o, struct err *e)
{
    int level = 0;

    if (in->direction != NULL && strcmp(in->direction, "forward") != 0 &&
        strcmp(in->direction, "backward") != 0)
        return err_set(e, ERR_INVALID, "direction: expected forward or backward");
    while (in->level != NULL && level < LOG_ENTRY_COUNT &&
           strcmp(in->level, log_severity_name((enum log_severity)level)) != 0)
        level++;
    if (level == LOG_ENTRY_COUNT)
        return err_set(e, ERR_INVALID, "level: expected debug, info, warn or error");
    o->backward = in->direction != NULL && strcmp(in->direction, "backward") == 0;
    o->from_ms = in->cursor;
    o->level = (enum log_severity)level;
    o->search = in->search != NULL && *in->search != '\0' ? in->search : NULL;
    o->limit = bounded(in->limit);
    return 0;
}

static void logs_v2(struct call *c, const void *in)
{
    const struct sandbox *s = e2b_named(c);
    autobuf struct buf rows = BUF_INIT(LOGS_BYTES_MAX), body = BUF_INIT(LOGS_BYTES_MAX + 64);
    struct log_opts o = {.key = c->key};
    struct json_w w;
    uint64_t next;
    struct err e;

    if (s == NULL)
        return;
    o.id = s->id;
    if (decode(in, &o, &e) < 0 ||
        engine_logs(c->plane->engine, &o, add_entry, &rows, &next, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    jw_init(&w, &body);
    jw_open(&w);
    put_list(&w, "logs", &rows);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

/* clang-format off */
const struct surface_row e2b_logs[] = {
    {{"GET", "/sandboxes/{id}/logs"}, SCOPE_READ, logs_v1, "sandboxLogs",
     "What happened to it, oldest first.", .query = &v1_input, .status = 200},
    {{"GET", "/v2/sandboxes/{id}/logs"}, SCOPE_READ, logs_v2, "sandboxLogsV2",
     "What happened to it, in either direction.", .query = &v2_input, .status = 200},
    {.op = NULL},
};
/* clang-format on */
