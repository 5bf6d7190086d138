/* logs.c - logs of a sandbox as E2B shows them: entries (v2), and lines of JSON (v1), which E2B's CLI
 * parses. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/engine/metrics.h"
#include "front/planes/e2b/internal.h"
#include "json/write.h"

#define LOGS_BYTES_MAX (32u << 20)
#define LINE_BYTES_MAX (32u << 10) /* every byte of a line may be a control character */
#define WORD_MAX 32u
#define NUMBER_MAX 32

struct logs_in {
    uint64_t from_ms, limit;
    const char *direction, *level, *search;
};

/* clang-format off */
static const struct json_field old_fields[] = {
    {"start", JSON_FIELD_U64, offsetof(struct logs_in, from_ms), 0, INT64_MAX, false, ""},
    {"limit", JSON_FIELD_U64, offsetof(struct logs_in, limit), 0, 0, false, ""},
};
static const struct json_field new_fields[] = {
    {"cursor", JSON_FIELD_U64, offsetof(struct logs_in, from_ms), 0, INT64_MAX, false, ""},
    {"limit", JSON_FIELD_U64, offsetof(struct logs_in, limit), 0, 0, false, ""},
    {"direction", JSON_FIELD_STR, offsetof(struct logs_in, direction), 1, WORD_MAX, false, ""},
    {"level", JSON_FIELD_STR, offsetof(struct logs_in, level), 1, WORD_MAX, false, ""},
    {"search", JSON_FIELD_STR, offsetof(struct logs_in, search), 0, LOG_SEARCH_MAX, false, ""},
};
/* clang-format on */

static const struct surface_input old_input = {SURFACE_INPUT(old_fields, struct logs_in)};
static const struct surface_input new_input = {SURFACE_INPUT(new_fields, struct logs_in)};

static int decode(const struct logs_in *in, struct log_opts *o, struct err *e)
{
    const char *direction = in->direction != NULL ? in->direction : "forward";
    const char *level = in->level != NULL ? in->level : log_severity_name(LOG_ENTRY_DEBUG);
    int l = 0;

    while (l < LOG_ENTRY_COUNT && strcmp(level, log_severity_name((enum log_severity)l)) != 0)
        l++;
    if (l == LOG_ENTRY_COUNT)
        return err_set(e, ERR_INVALID, "level: expected debug, info, warn or error");
    o->backward = strcmp(direction, "backward") == 0;
    if (!o->backward && strcmp(direction, "forward") != 0)
        return err_set(e, ERR_INVALID, "direction: expected forward or backward");
    o->level = (enum log_severity)l;
    o->from_ms = in->from_ms;
    o->search = in->search != NULL && *in->search != '\0' ? in->search : NULL;
    o->limit = in->limit == 0 || in->limit > LOG_ENTRIES_MAX ? LOG_ENTRIES_MAX : (size_t)in->limit;
    return 0;
}

/* ---- one entry ---- */

/* Here all fields are text. */
static void put_field(struct json_w *w, const char *name, const json_t *value)
{
    char number[NUMBER_MAX];

    if (json_is_string(value)) {
        jw_kstr(w, name, json_string_value(value));
    } else if (json_is_integer(value)) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
        jw_kstr(w, name, number);
    } else if (json_is_boolean(value)) {
        jw_kstr(w, name, json_is_true(value) ? "true" : "false");
    }
}

static void put_fields(struct json_w *w, json_t *fields)
{
    const char *name;
    json_t *value;

    json_object_foreach(fields, name, value) put_field(w, name, value);
}

/* "sandbox" of "sandbox.created": the logger. */
static void put_logger(struct json_w *w, const json_t *fields)
{
    const char *event = json_string_value(json_object_get(fields, "event"));

    jw_key(w, "logger");
    jw_strn(w, event != NULL ? event : "", event != NULL ? strcspn(event, ".") : 0);
}

static void put_time(struct json_w *w, const struct log_entry *l)
{
    char text[CLOCK_TEXT_MAX];

    jw_kstr(w, "timestamp", clock_text(l->at_ms, text));
}

static void put_line(struct json_w *w, const struct log_entry *l, json_t *fields)
{
    autobuf struct buf line = BUF_INIT(LINE_BYTES_MAX);
    struct json_w in;

    jw_init(&in, &line);
    jw_open(&in);
    jw_kstr(&in, "level", log_severity_name(l->level));
    put_logger(&in, fields);
    jw_kstr(&in, "message", l->message);
    put_fields(&in, fields);
    jw_close(&in);
    jw_open(w);
    put_time(w, l);
    jw_kstr(w, "line",
            line.failed ? "{\"level\":\"error\",\"message\":\"too long\"}" : buf_cstr(&line));
    jw_close(w);
}

/* ---- all of them ---- */

struct logs {
    struct buf entries, lines;
    struct json_w we, wl;
};

static void add_entry(void *arg, const struct log_entry *l)
{
    struct logs *all = arg;
    autojson json_t *fields = NULL;
    struct err e;

    if (json_parse(l->fields, strlen(l->fields), &fields, &e) < 0)
        fields = NULL; /* no fields, then */
    jw_open(&all->we);
    put_time(&all->we, l);
    jw_kstr(&all->we, "level", log_severity_name(l->level));
    jw_kstr(&all->we, "message", l->message);
    jw_key(&all->we, "fields");
    jw_open(&all->we);
    put_logger(&all->we, fields);
    put_fields(&all->we, fields);
    jw_close(&all->we);
    jw_close(&all->we);
    put_line(&all->wl, l, fields);
}

static void reply(struct call *c, const struct logs *all, bool old)
{
    autobuf struct buf body = BUF_INIT(2 * LOGS_BYTES_MAX + 64);

    buf_adds(&body, "{\"logs\":");
    if (old) {
        buf_add(&body, buf_data(&all->lines), all->lines.len);
        buf_adds(&body, ",\"logEntries\":");
    }
    buf_add(&body, buf_data(&all->entries), all->entries.len);
    buf_addc(&body, '}');
    body.failed = body.failed || all->entries.failed || all->lines.failed;
    call_reply(c, 200, "application/json", &body);
}

static void answer(struct call *c, const struct logs_in *in, bool old)
{
    const struct sandbox *s = e2b_named(c);
    struct log_opts o = {.ref = c->ref};
    struct logs all = {.entries = BUF_INIT(LOGS_BYTES_MAX), .lines = BUF_INIT(LOGS_BYTES_MAX)};
    uint64_t next;
    struct err e;

    if (s == NULL)
        return;
    jw_init(&all.we, &all.entries);
    jw_init(&all.wl, &all.lines);
    jw_open_list(&all.we);
    jw_open_list(&all.wl);
    if (decode(in, &o, &e) < 0 || engine_logs(&o, add_entry, &all, &next, &e) < 0) {
        call_fail(c, &e);
    } else {
        jw_close_list(&all.we);
        jw_close_list(&all.wl);
        reply(c, &all, old);
    }
    buf_free(&all.entries);
    buf_free(&all.lines);
}

static void lines_get(struct call *c, const void *in)
{
    answer(c, in, true);
}

static void entries_get(struct call *c, const void *in)
{
    answer(c, in, false);
}

/* clang-format off */
const struct surface_row e2b_logs[] = {
    {{"GET", "/sandboxes/{id}/logs"}, SCOPE_READ, lines_get, "getLogs",
     "What happened to it, as lines.", .query = &old_input, .status = 200},
    {{"GET", "/v2/sandboxes/{id}/logs"}, SCOPE_READ, entries_get, "getLogsV2",
     "What happened to it, in either direction.", .query = &new_input, .status = 200},
    {.op = NULL},
};
/* clang-format on */
