/* logbook.c - see metrics.h: what happened, in words.
 *
 * Every event of a sandbox becomes an entry. They are written a second later,
 * together: an exec must not wait for the disk because somebody may want to read of
 * it. Whoever reads writes them first. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/inside.h"
#include "json/read.h"

#define LOGBOOK_FLUSH_MS 1000
#define LOGBOOK_PENDING_MAX 4096u /* entries; what comes on top is lost, and said so */
#define LOGBOOK_MESSAGE_MAX 4096u /* bytes */

struct pending {
    struct list link;
    struct store_log row;
    char text[];
};

const char *log_severity_name(enum log_severity l)
{
    static const char *const names[LOG_ENTRY_COUNT] = {"debug", "info", "warn", "error"};

    return names[l];
}

/* ---- writing ---- */

static int prune(struct engine *g, struct err *e)
{
    uint64_t now = clock_real_ms();

    if (now < g->logbook.pruned_ms + ENGINE_PRUNE_MS)
        return 0;
    g->logbook.pruned_ms = now;
    return store_logs_prune(g->o.store, now - g->o.config->logs_ms, g->o.config->logs_max, e);
}

void logbook_flush(struct engine *g)
{
    struct pending *p;
    struct err e;
    int r;

    loop_timer_stop(g->loop, &g->logbook.timer);
    if (list_empty(&g->logbook.pending))
        return;
    r = store_begin_light(g->o.store, &e);
    LIST_EACH (&g->logbook.pending, p, struct pending, link) {
        if (r == 0)
            r = store_log_add(g->o.store, &p->row, &e);
        list_del(&p->link);
        free(p);
    }
    g->logbook.n = 0;
    if (r == 0)
        r = prune(g, &e);
    if (r == 0)
        r = store_commit(g->o.store, &e);
    if (r < 0) {
        store_rollback(g->o.store);
        log_warn("logs: %s", e.msg);
    }
}

static void on_flush(struct loop_timer *t)
{
    struct logbook *l = CONTAINER_OF(t, struct logbook, timer);
    struct engine *g = CONTAINER_OF(l, struct engine, logbook);

    if (l->lost > 0)
        log_warn("logs: %zu entries of sandboxes are lost: too many at once", l->lost);
    l->lost = 0;
    logbook_flush(g);
}

void logbook_add(const struct box *b, enum log_severity level, const char *message,
                 const char *fields)
{
    struct engine *g = b->g;
    size_t len = strnlen(message, LOGBOOK_MESSAGE_MAX), room = len + strlen(fields) + 2;
    struct pending *p;

    if (g->o.config->logs_ms == 0 || g->o.config->logs_max == 0)
        return;
    if (g->logbook.n >= LOGBOOK_PENDING_MAX || (p = calloc(1, sizeof(*p) + room)) == NULL) {
        g->logbook.lost++;
        return;
    }
    memcpy(p->text, message, len);
    strcpy(p->text + len + 1, fields);
    p->row = (struct store_log){.sandbox = b->seq,
                                .at_ms = clock_real_ms(),
                                .level = level,
                                .message = p->text,
                                .fields = p->text + len + 1};
    list_add_tail(&g->logbook.pending, &p->link);
    g->logbook.n++;
    if (g->logbook.timer.slot == 0)
        loop_timer_set(g->loop, &g->logbook.timer, LOGBOOK_FLUSH_MS, on_flush);
}

/* ---- from events ---- */

/* A sandbox that stops by itself, a process that fails: somebody may look for these. */
static enum log_severity severity_of(const char *kind, const json_t *data)
{
    if (strcmp(kind, "sandbox.stopped") == 0)
        return LOG_ENTRY_WARN;
    if (strcmp(kind, "process.exited") == 0 &&
        (json_integer_value(json_object_get(data, "exit_code")) != 0 ||
         json_integer_value(json_object_get(data, "signal")) != 0 ||
         json_is_true(json_object_get(data, "timed_out"))))
        return LOG_ENTRY_WARN;
    return LOG_ENTRY_INFO;
}

/* "process exited: process=p1 pid=7 exit_code=0" */
static void sentence(struct buf *out, const char *kind, json_t *data)
{
    const char *name, *between = ": ";
    json_t *value;

    for (const char *c = kind; *c != '\0'; c++)
        buf_addc(out, *c == '.' ? ' ' : *c);
    json_object_foreach(data, name, value)
    {
        if (json_is_string(value))
            buf_addf(out, "%s%s=%s", between, name, json_string_value(value));
        else if (json_is_integer(value))
            buf_addf(out, "%s%s=%lld", between, name, (long long)json_integer_value(value));
        else if (json_is_true(value))
            buf_addf(out, "%s%s", between, name);
        else
            continue;
        between = " ";
    }
}

void logbook_event(const struct box *b, const char *kind, const char *text)
{
    autobuf struct buf message = BUF_INIT(LOGBOOK_MESSAGE_MAX);
    autobuf struct buf fields = BUF_INIT(LOGBOOK_MESSAGE_MAX);
    autojson json_t *data = NULL;
    struct err e;

    if (b->g->o.config->logs_ms == 0 || json_parse(text, strlen(text), &data, &e) < 0)
        return;
    sentence(&message, kind, data);
    buf_addf(&fields, "{\"event\":\"%s\"%s%s", kind, text[1] == '}' ? "" : ",", text + 1);
    logbook_add(b, severity_of(kind, data), buf_cstr(&message),
                fields.failed ? "{}" : buf_cstr(&fields));
}

/* ---- reading ---- */

struct reading {
    const struct log_opts *o;
    void (*each)(void *arg, const struct log_entry *l);
    void *arg;
    size_t looked, told;
    uint64_t last; /* entry that was looked at */
};

static bool on_row(void *arg, const struct store_log *row)
{
    struct reading *r = arg;
    struct log_entry l = {.n = row->n,
                          .at_ms = row->at_ms,
                          .level = row->level < LOG_ENTRY_COUNT ? (enum log_severity)row->level
                                                                : LOG_ENTRY_ERROR,
                          .message = row->message,
                          .fields = row->fields};

    r->looked++;
    r->last = l.n;
    if (l.level < r->o->level ||
        (r->o->search != NULL && strcasestr(l.message, r->o->search) == NULL))
        return true;
    r->each(r->arg, &l);
    return ++r->told < r->o->limit;
}

int engine_logs(struct engine *g, const struct log_opts *o,
                void (*each)(void *arg, const struct log_entry *l), void *arg, uint64_t *ret_next,
                struct err *e)
{
    struct box *b = box_of(g, o->key, o->id);
    struct reading r = {.o = o, .each = each, .arg = arg};
    struct store_log_span span = {.backward = o->backward, .limit = LOG_SCAN_MAX};

    *ret_next = 0;
    if (b == NULL)
        return err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", o->id);
    span.sandbox = b->seq;
    span.from = o->from == 0 && o->backward ? UINT64_MAX : o->from;
    span.from_ms = o->from_ms == 0 && o->backward ? UINT64_MAX : o->from_ms;
    logbook_flush(g);
    if (store_log_each(g->o.store, &span, on_row, &r, e) < 0)
        return -1;
    /* Forward there may always come more; backward the beginning is the end. */
    if (!o->backward)
        *ret_next = r.last != 0 ? r.last : o->from;
    else if (r.told == o->limit || r.looked == LOG_SCAN_MAX)
        *ret_next = r.last;
    return 0;
}
