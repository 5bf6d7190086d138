/* logbook.c - see metrics.h: logs of sandboxes, with their events and the output of commands.
 *
 * Every event of a sandbox becomes an entry. Entries are written together, a second later: an exec
 * must not wait for the disk because of its log. A reader flushes them first. Lines of output
 * (journal.c) are ordered by time: the last output of a process before its exit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"
#include "json/read.h"
#include "json/write.h"

#define LOGBOOK_FLUSH_MS 1000
#define LOGBOOK_MORE_MS 5
#define LOGBOOK_BATCH 256u        /* entries written in one turn of the loop */
#define LOGBOOK_PENDING_MAX 4096u /* entries; what comes on top is lost, and said so */
#define LOGBOOK_KEY_MAX 2048u     /* of them entries of one key */
#define LOGBOOK_TRIM 256u         /* entries deleted at once where a key has too many */
#define LOGBOOK_LOOK_US 4000u     /* after which a reader gets what was found */
#define LOGBOOK_LINES_MAX 1024u   /* of them lines; then no more are read */
#define LOGBOOK_FRESH_MAX 1000u   /* lines of a sandbox between two looks at how many there are */
#define LOGBOOK_PRUNE_MORE_MS 200
#define LINE_FIELDS_MAX 1024u
#define LOGBOOK_MESSAGE_MAX (3u * INIT_LINE_MAX) /* bytes: a line of what is no text */

struct pending {
    struct list link;
    struct store_log row;
    struct quota_user *user;
    uint64_t next;    /* of a line: the number of the next one */
    const char *boot; /* ...in that boot; NULL: no line */
    const char *kind; /* of an event, formatted when it is written; a static string */
    char text[];
};

const char *log_severity_name(enum log_severity l)
{
    static const char *const names[LOG_ENTRY_COUNT] = {"debug", "info", "warn", "error"};

    return names[l];
}

/* ---- events in words ---- */

/* Events that are warnings: a sandbox that stops by itself, a process that fails. */
static enum log_severity severity_of(const char *kind, const json_t *data)
{
    if (strcmp(kind, "sandbox.stopped") == 0 || strcmp(kind, "sandbox.writes_lost") == 0)
        return LOG_ENTRY_WARN;
    if (strcmp(kind, "process.exited") == 0 &&
        (json_integer_value(json_object_get(data, "exit_code")) != 0 ||
         json_integer_value(json_object_get(data, "signal")) != 0 ||
         json_is_true(json_object_get(data, "timed_out"))))
        return LOG_ENTRY_WARN;
    return LOG_ENTRY_INFO;
}

/* Processes in the words of a shell: "user started p1 (pid 7): make -j2", "p1 (pid 7) exited with
 * status 2: make -j2", "... was killed by signal 9: the sandbox reached its memory limit". False for
 * other events. */
static bool process_sentence(struct buf *out, const char *kind, const json_t *data)
{
    const char *id = json_string_value(json_object_get(data, "process"));
    const char *command = json_string_value(json_object_get(data, "command"));
    const char *user = json_string_value(json_object_get(data, "user"));
    long long pid = json_integer_value(json_object_get(data, "pid"));
    long long sig = json_integer_value(json_object_get(data, "signal"));

    if (id == NULL || command == NULL)
        return false;
    if (strcmp(kind, "process.started") == 0) {
        buf_addf(out, "%s started %s (pid %lld): %s", user != NULL && *user != '\0' ? user : "user",
                 id, pid, command);
        return true;
    }
    if (strcmp(kind, "process.exited") != 0)
        return false;
    buf_addf(out, "%s (pid %lld) ", id, pid);
    if (json_is_true(json_object_get(data, "timed_out")))
        buf_adds(out, "was killed: its time limit passed");
    else if (json_is_true(json_object_get(data, "oom")))
        buf_adds(out, "was killed: the sandbox reached its memory limit");
    else if (sig != 0)
        buf_addf(out, "was killed by signal %lld (%s)", sig, sigdescr_np((int)sig) ?: "unknown");
    else
        buf_addf(out, "exited with status %lld",
                 (long long)json_integer_value(json_object_get(data, "exit_code")));
    if (json_is_true(json_object_get(data, "oom_meanwhile")))
        buf_adds(out, " after another process was killed: the sandbox reached its memory limit");
    buf_addf(out, ": %s", command);
    return true;
}

/* "session ended: session=s1 pid=7 exit_code=0" */
static void sentence(struct buf *out, const char *kind, json_t *data)
{
    const char *name, *between = ": ";
    json_t *value;

    if (process_sentence(out, kind, data))
        return;
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

/* ---- the quota of each key ---- */

static struct box *box_numbered(struct engine *g, uint64_t seq)
{
    size_t at = box_after(g, seq - 1);
    struct box *b = at < g->norder ? g->order[at] : NULL;

    return b != NULL && b->seq == seq ? b : NULL;
}

static void count_bytes(void *arg, uint64_t sandbox, uint64_t bytes)
{
    struct box *b = box_numbered(arg, sandbox);

    if (b == NULL)
        return;
    b->log_bytes += bytes;
    quota_add(b->user, &(struct quotas){{[QUOTA_logs] = bytes}});
}

static void uncount_bytes(void *arg, uint64_t sandbox, uint64_t bytes)
{
    struct box *b = box_numbered(arg, sandbox);

    if (b == NULL)
        return;
    bytes = bytes < b->log_bytes ? bytes : b->log_bytes;
    b->log_bytes -= bytes;
    quota_drop(b->user, &(struct quotas){{[QUOTA_logs] = bytes}});
}

void logbook_start(struct engine *g)
{
    struct err e;

    store_on_log_gone(g->o.store, uncount_bytes, g);
    for (size_t i = 0; i < g->norder; i++)
        uncount_bytes(g, g->order[i]->seq, UINT64_MAX);
    if (store_log_sizes(g->o.store, count_bytes, g, &e) < 0)
        log_warn("logs: %s", e.msg);
}

/* Above the quota the sandbox of that key with the longest log loses its oldest entries. */
static int trim(struct engine *g, const struct quota_user *u, struct err *e)
{
    struct box *most = NULL;

    if (u == NULL || u->most.of[QUOTA_logs] == 0 ||
        u->used.of[QUOTA_logs] <= u->most.of[QUOTA_logs])
        return 0;
    for (size_t i = 0; i < g->norder; i++)
        if (g->order[i]->user == u && (most == NULL || g->order[i]->log_bytes > most->log_bytes))
            most = g->order[i];
    return most == NULL ? 0 : store_log_trim(g->o.store, most->seq, LOGBOOK_TRIM, e);
}

static int add_row(struct engine *g, const struct store_log *row, struct err *e)
{
    struct box *b = box_numbered(g, row->sandbox);

    if (store_log_add(g->o.store, row, e) < 0)
        return -1;
    count_bytes(g, row->sandbox, store_log_size(row));
    return b == NULL ? 0 : trim(g, b->user, e);
}

static int write_event(struct engine *g, const struct pending *p, struct err *e)
{
    autobuf struct buf message = BUF_INIT(LOGBOOK_MESSAGE_MAX);
    autobuf struct buf fields = BUF_INIT(LOGBOOK_MESSAGE_MAX);
    autojson json_t *data = NULL;
    const char *text = p->row.fields;
    struct store_log row = p->row;

    if (json_parse(text, strlen(text), &data, e) < 0) {
        log_warn("logs: %s: %s", p->kind, e->msg);
        return 0; /* the others are not to blame */
    }
    sentence(&message, p->kind, data);
    buf_addf(&fields, "{\"event\":\"%s\"%s%s", p->kind, text[1] == '}' ? "" : ",", text + 1);
    row.level = severity_of(p->kind, data);
    row.message = buf_cstr(&message);
    row.fields = fields.failed ? "{}" : buf_cstr(&fields);
    return add_row(g, &row, e);
}

/* ---- writing ---- */

static void prune(struct engine *g)
{
    uint64_t now = clock_real_ms();
    bool more = false;
    struct err e;

    if (now < g->logbook.pruned_ms + ENGINE_PRUNE_MS)
        return;
    g->logbook.pruned_ms = now;
    if (store_begin_light(g->o.store, &e) < 0 ||
        store_logs_prune(g->o.store, now - g->o.config->logs_ms, g->o.config->logs_max, &more, &e) <
            0 ||
        store_commit(g->o.store, &e) < 0) {
        store_rollback(g->o.store);
        log_warn("logs: %s", e.msg);
    }
    if (more)
        g->logbook.pruned_ms -= ENGINE_PRUNE_MS - LOGBOOK_PRUNE_MORE_MS;
}

/* How far its lines are written; and now and then, that there are not too many. */
static int mark(struct engine *g, const struct pending *p, uint64_t lines, struct err *e)
{
    struct box *b = box_numbered(g, p->row.sandbox);
    uint64_t most = g->o.config->logs_output_max;

    if (b == NULL)
        return 0;
    b->journal.fresh += lines;
    if (b->journal.fresh >= (most < LOGBOOK_FRESH_MAX ? most : LOGBOOK_FRESH_MAX)) {
        b->journal.fresh = 0;
        if (store_output_prune(g->o.store, b->seq, most, e) < 0)
            return -1;
    }
    return store_log_mark(g->o.store, b->seq, p->boot, p->next, e);
}

static int write_some(struct engine *g, size_t most, struct err *e)
{
    struct pending *p, *last = NULL;
    uint64_t lines = 0;

    LIST_EACH (&g->logbook.pending, p, struct pending, link) {
        if (most-- == 0)
            break;
        if ((p->kind != NULL ? write_event(g, p, e) : add_row(g, &p->row, e)) < 0)
            return -1;
        if (p->boot == NULL)
            continue;
        if (last != NULL && last->row.sandbox != p->row.sandbox) {
            if (mark(g, last, lines, e) < 0)
                return -1;
            lines = 0;
        }
        last = p;
        lines++;
    }
    return last == NULL ? 0 : mark(g, last, lines, e);
}

static void drop_some(struct logbook *l, size_t most)
{
    struct pending *p;

    while (most-- > 0 && (p = LIST_FIRST(&l->pending, struct pending, link)) != NULL) {
        l->nlines -= p->boot != NULL;
        l->n--;
        if (p->user != NULL)
            p->user->log_pending--;
        list_del(&p->link);
        free(p);
    }
}

static void flush(struct engine *g, size_t most)
{
    struct logbook *l = &g->logbook;
    struct err e;

    if (store_begin_light(g->o.store, &e) < 0 || write_some(g, most, &e) < 0 ||
        store_commit(g->o.store, &e) < 0) {
        store_rollback(g->o.store);
        log_warn("logs: %zu entries are lost: %s", l->n < most ? l->n : most, e.msg);
        logbook_start(g); /* what was counted is not there */
    }
    drop_some(l, most);
    prune(g);
    while (l->nlines < LOGBOOK_LINES_MAX / 2 && !list_empty(&l->waiting))
        journal_go_on(LIST_FIRST(&l->waiting, struct journal, waiting));
}

void logbook_flush(struct engine *g)
{
    loop_timer_stop(g->loop, &g->logbook.timer);
    if (!list_empty(&g->logbook.pending))
        flush(g, SIZE_MAX);
}

static void on_flush(struct loop_timer *t)
{
    struct logbook *l = CONTAINER_OF(t, struct logbook, timer);
    struct engine *g = CONTAINER_OF(l, struct engine, logbook);

    if (l->lost > 0)
        log_warn("logs: %zu entries of sandboxes are lost: too many at once", l->lost);
    l->lost = 0;
    flush(g, LOGBOOK_BATCH);
    if (!list_empty(&l->pending))
        loop_timer_set(g->loop, t, LOGBOOK_MORE_MS, on_flush);
}

/* In one millisecond a process begins, prints and ends. */
static uint64_t order_of(const struct pending *p)
{
    bool end = p->kind != NULL && strcmp(p->kind, "process.exited") == 0;

    return p->row.at_ms * 4 + (p->boot != NULL ? 1 : end ? 2 : 0);
}

static struct pending *add(const struct box *b, const struct store_log *row, const char *boot,
                           const char *kind)
{
    struct engine *g = b->g;
    size_t len = strnlen(row->message, LOGBOOK_MESSAGE_MAX);
    size_t fields = strlen(row->fields) + 1, room = len + 1 + fields + strlen(boot) + 1;
    struct pending *p;
    struct list *at;

    if (g->o.config->logs_ms == 0 || g->o.config->logs_max == 0)
        return NULL;
    if (g->logbook.n >= LOGBOOK_PENDING_MAX ||
        (b->user != NULL && b->user->log_pending >= LOGBOOK_KEY_MAX)) {
        g->logbook.lost++;
        return NULL;
    }
    p = mem_zeroed(1, sizeof(*p) + room);
    p->row = *row;
    p->row.sandbox = b->seq;
    p->row.message = memcpy(p->text, row->message, len);
    p->row.fields = strcpy(p->text + len + 1, row->fields);
    if (*boot != '\0')
        p->boot = strcpy(p->text + len + 1 + fields, boot);
    p->kind = kind;
    p->user = b->user;
    if (p->user != NULL)
        p->user->log_pending++;
    /* In the order of time, and lines of one sandbox as they came. */
    at = g->logbook.pending.prev;
    for (unsigned i = 0; at != &g->logbook.pending && i < LOGBOOK_BATCH; at = at->prev, i++) {
        const struct pending *q = CONTAINER_OF(at, struct pending, link);

        if (order_of(q) <= order_of(p) ||
            (p->boot != NULL && q->boot != NULL && q->row.sandbox == p->row.sandbox))
            break;
    }
    list_add_head(at, &p->link);
    g->logbook.n++;
    if (g->logbook.timer.slot == 0)
        loop_timer_set(g->loop, &g->logbook.timer, LOGBOOK_FLUSH_MS, on_flush);
    return p;
}

/* ---- what was printed ---- */

/* A tenant's bytes: an invalid character, or one that ends a text, is shown as one that says
 * so. */
static void add_text(struct buf *out, const char *p, size_t n)
{
    while (n > 0) {
        int len = *p == '\0' ? -1 : str_utf8_char(p, n);

        if (len > 0)
            buf_add(out, p, (size_t)len);
        else
            buf_adds(out, "\xef\xbf\xbd");
        p += len > 0 ? len : 1;
        n -= len > 0 ? (size_t)len : 1;
    }
}

/* Without room nothing has happened: the next line will show that some are missing. */
static bool add_output(struct box *b, struct store_log *row, uint64_t next)
{
    struct logbook *l = &b->g->logbook;
    struct pending *p;

    row->output = true;
    p = add(b, row, b->journal.boot, NULL);
    if (p == NULL)
        return false;
    p->next = b->journal.next = next;
    return ++l->nlines < LOGBOOK_LINES_MAX;
}

bool logbook_line(struct box *b, const struct init_line *m)
{
    autobuf struct buf text = BUF_INIT(LOGBOOK_MESSAGE_MAX + 1), fields = BUF_INIT(LINE_FIELDS_MAX);
    struct store_log row = {.at_ms = box_time(b, m->at_ms),
                            .level = m->stream == INIT_STDERR ? LOG_ENTRY_WARN : LOG_ENTRY_INFO};
    struct json_w w;

    add_text(&text, m->data.p, m->data.len);
    jw_init(&w, &fields);
    jw_open(&w);
    jw_kstr(&w, "event", "process.output");
    jw_kstr(&w, "process", m->id);
    jw_ku64(&w, "pid", m->pid);
    jw_kstr(&w, "stream", m->stream == INIT_STDERR ? "stderr" : "stdout");
    jw_close(&w);
    row.message = buf_cstr(&text);
    row.fields = fields.failed ? "{}" : buf_cstr(&fields);
    return add_output(b, &row, m->seq + 1);
}

bool logbook_gap(struct box *b, const struct init_line *m)
{
    unsigned long long lines = m->seq - b->journal.next;
    char message[64], fields[96];
    struct store_log row = {
        .at_ms = clock_real_ms(), .level = LOG_ENTRY_WARN, .message = message, .fields = fields};

    snprintf(message, sizeof(message), "%llu lines of output dropped", lines);
    snprintf(fields, sizeof(fields), "{\"event\":\"process.dropped\",\"lines\":%llu}", lines);
    return add_output(b, &row, m->stream != 0 ? m->seq : m->seq + 1);
}

/* Writes at once: a journal waits for room. */
void logbook_hurry(struct engine *g)
{
    loop_timer_set(g->loop, &g->logbook.timer, LOGBOOK_MORE_MS, on_flush);
}

void logbook_event(const struct box *b, const char *kind, uint64_t at_ms, const char *text)
{
    add(b, &(struct store_log){.at_ms = at_ms, .message = "", .fields = text}, "", kind);
}

/* ---- reading ---- */

struct reading {
    const struct log_opts *o;
    void (*each)(void *arg, const struct log_entry *l);
    void *arg;
    size_t looked, told;
    bool cut;      /* it took too long */
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
    r->cut = loop_spent_us(r->o->ref.engine->loop) > LOGBOOK_LOOK_US;
    if (l.level < r->o->level ||
        (r->o->search != NULL && strcasestr(l.message, r->o->search) == NULL))
        return !r->cut;
    r->each(r->arg, &l);
    return ++r->told < r->o->limit && !r->cut;
}

int engine_logs(const struct log_opts *o, void (*each)(void *arg, const struct log_entry *l),
                void *arg, uint64_t *ret_next, struct err *e)
{
    struct box *b = box_of(o->ref);
    struct reading r = {.o = o, .each = each, .arg = arg};
    struct store_log_span span = {.backward = o->backward, .limit = LOG_SCAN_MAX};

    *ret_next = 0;
    if (b == NULL)
        return err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", o->ref.id);
    span.sandbox = b->seq;
    span.from = o->from == 0 && o->backward ? UINT64_MAX : o->from;
    span.from_ms = o->from_ms == 0 && o->backward ? UINT64_MAX : o->from_ms;
    logbook_flush(o->ref.engine);
    if (store_log_each(o->ref.engine->o.store, &span, on_row, &r, e) < 0)
        return -1;
    /* Forward there may always come more; backward the beginning is the end. */
    if (!o->backward)
        *ret_next = r.last != 0 ? r.last : o->from;
    else if (r.told == o->limit || r.looked == LOG_SCAN_MAX || r.cut)
        *ret_next = r.last;
    return 0;
}
