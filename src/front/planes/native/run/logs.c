/* logs.c - the output of a process from a position on, once or until it exits. The reader is a viewer:
 * the process does not wait for it, and output that was dropped meanwhile is reported as
 * `truncated`. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/session.h"
#include "front/plane/output.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"

#define PAGE_DEFAULT (1u << 20)
#define PAGE_MIN 16u /* a character always fits, so every page makes progress */
#define PAGE_MAX (8u << 20)

struct logs_in {
    uint64_t max_bytes;
    bool follow;
    const char *since, *stream;
};

struct gap_view {
    uint64_t from, to;
};

/* ---- answers ---- */

struct chunk_view {
    uint64_t pos;
    const char *stream;
    struct shape_bytes data;
};

struct page_view {
    struct shape_bytes chunks;
    uint64_t next;
    bool exited;
    const struct gap_view *truncated;
};

/* clang-format off */
static const struct shape_field gap_fields[] = {
    {"from", SHAPE_U64, offsetof(struct gap_view, from), "Position of the first lost byte."},
    {"to", SHAPE_U64, offsetof(struct gap_view, to), "Position after the last lost byte."},
};
static SHAPE(gap_shape, "Truncated", "Output that is no longer kept; the truncated event.", gap_fields);

static const struct shape_field chunk_fields[] = {
    {"pos", SHAPE_U64, offsetof(struct chunk_view, pos), "Position of the first byte."},
    {"stream", SHAPE_STR, offsetof(struct chunk_view, stream), "stdout or stderr."},
    {"data", SHAPE_BYTES, offsetof(struct chunk_view, data), "Output.", .encoding = "encoding"},
};
static SHAPE(chunk_shape, "LogChunk", "Consecutive output of one stream.", chunk_fields);

static const struct shape_field page_fields[] = {
    {"chunks", SHAPE_LIST, offsetof(struct page_view, chunks), "Chunks in order.", SHAPE_ALWAYS, &chunk_shape},
    {"next", SHAPE_U64, offsetof(struct page_view, next), "Pass it as `since` to continue without a gap."},
    {"exited", SHAPE_BOOL, offsetof(struct page_view, exited), "The process has exited and this is the end of its output."},
    {"truncated", SHAPE_OBJECT, offsetof(struct page_view, truncated), "Output that is no longer kept.", SHAPE_OMITTED, &gap_shape},
};
static SHAPE(page_shape, "Logs", "Output of a process.", page_fields);

static const struct shape_field end_fields[] = {
    {"next", SHAPE_U64, offsetof(struct page_view, next), "Position to continue from."},
    {"exited", SHAPE_BOOL, offsetof(struct page_view, exited), "The process has exited and this was the end of its output."},
};
static SHAPE(end_shape, "LogsEnd", "The end event: there is no more output now.", end_fields);
/* clang-format on */

/* Whose output: of a process, or of a command of a session. */
static const char *ref_of(const struct call *c, char out[PROCESS_REF_MAX + 1])
{
    if (*call_param(c, 2) == '\0')
        return call_param(c, 1);
    return session_ref(out, call_param(c, 1), call_param(c, 2));
}

/* ---- one page, as JSON ---- */

struct page {
    struct call *c;
    size_t room; /* bytes still wanted */
    struct buf rows;
    struct buf chunk; /* being put together */
    uint64_t chunk_pos;
    unsigned chunk_stream;
    struct gap_view gap;
};

static void page_drop(void *state)
{
    struct page *p = state;

    buf_free(&p->rows);
    buf_free(&p->chunk);
}

static void end_chunk(struct page *p)
{
    struct chunk_view v = {p->chunk_pos, output_name(p->chunk_stream), shape_list(&p->chunk)};

    if (p->chunk.len > 0)
        shape_append(&p->rows, &chunk_shape, &v);
    p->rows.failed = p->rows.failed || p->chunk.failed;
    buf_clear(&p->chunk);
}

/* A character whose end is still to come belongs to the next page. */
static uint64_t leave_unfinished(struct page *p)
{
    if (p->chunk.len > 0)
        p->chunk.len = str_utf8_whole(buf_data(&p->chunk), p->chunk.len);
    return p->chunk_pos + p->chunk.len;
}

static void page_reply(struct page *p, uint64_t next, bool exited)
{
    struct page_view v = {.next = next, .exited = exited};
    size_t had = p->chunk.len;
    uint64_t whole = exited ? 0 : leave_unfinished(p);

    if (!exited && p->chunk.len < had)
        v.next = whole;
    end_chunk(p);
    v.chunks = shape_list(&p->rows);
    v.truncated = p->gap.to > 0 ? &p->gap : NULL;
    if (p->rows.failed)
        v.chunks = (struct shape_bytes){0};
    call_reply_shape(p->c, &page_shape, &v);
}

static void page_output(void *arg, const struct process_output *m)
{
    struct page *p = arg;
    size_t n = m->data.len < p->room ? m->data.len : p->room;

    if (m->stream != p->chunk_stream || m->pos != p->chunk_pos + p->chunk.len) {
        end_chunk(p);
        p->chunk_stream = m->stream;
        p->chunk_pos = m->pos;
    }
    buf_add(&p->chunk, m->data.p, n);
    p->room -= n;
    if (p->room == 0)
        page_reply(p, m->pos + n, false);
}

static void page_truncated(void *arg, const struct process_truncated *m)
{
    struct page *p = arg;

    if (p->gap.to == 0)
        p->gap.from = m->from;
    p->gap.to = m->to;
}

static void page_end(void *arg, const struct process_end *m)
{
    struct page *p = arg;

    if (call_told(p->c))
        page_reply(p, m->value, m->exited);
}

static void page_exit(void *arg, const struct process_exit *m)
{
    struct page *p = arg;

    if (call_told(p->c))
        page_reply(p, m->output_end, true);
}

static void page_fail(void *arg, const struct err *e)
{
    struct page *p = arg;

    if (call_told(p->c))
        call_fail(p->c, e);
}

static const struct process_ops page_ops = {
    .on_output = page_output,
    .on_truncated = page_truncated,
    .on_exit = page_exit,
    .on_end = page_end,
    .on_fail = page_fail,
};

static void read_page(struct call *c, const struct logs_in *in, unsigned streams)
{
    struct page *p = call_state(c, sizeof(*p), page_drop);
    char ref[PROCESS_REF_MAX + 1];
    uint64_t since = 0;
    struct err e;

    if (in->since != NULL && str_u64(in->since, UINT64_MAX, &since) < 0) {
        err_set(&e, ERR_INVALID, "since: expected a position");
        call_fail(c, &e);
        return;
    }
    p->c = c;
    p->room = (size_t)in->max_bytes;
    buf_init(&p->rows, 16 * PAGE_MAX);
    buf_init(&p->chunk, PAGE_MAX);
    call_expect(c, &call_stream,
                process_attach(c->ref, ref_of(c, ref), since, false, streams, &page_ops, p));
}

/* ---- a stream, as events or bare bytes ---- */

struct tail {
    struct call *c;
    enum call_accept how;
    bool follow;
    unsigned streams;
    struct output sent;
};

static void tail_output(void *arg, const struct process_output *m)
{
    struct tail *t = arg;

    if (t->how == CALL_RAW)
        call_write(t->c, m->data.p, m->data.len);
    else
        call_output(t->c, &t->sent, m);
}

static void tail_truncated(void *arg, const struct process_truncated *m)
{
    struct tail *t = arg;
    char id[OUTPUT_ID_MAX];

    if (t->how == CALL_RAW)
        return;
    call_output_end(t->c, &t->sent);
    t->sent.pos = m->to;
    call_event_shape(t->c, output_id(&t->sent, id), "truncated", &gap_shape,
                     &(struct gap_view){m->from, m->to});
}

static void tail_exit(void *arg, const struct process_exit *m)
{
    struct tail *t = arg;
    struct exit_view v;

    if (!call_told(t->c))
        return;
    if (t->how == CALL_SSE) {
        call_output_end(t->c, &t->sent);
        exit_view_of(&v, m);
        call_event_shape(t->c, NULL, "exit", &exit_shape, &v);
    }
    call_end(t->c);
}

static void tail_end(void *arg, const struct process_end *m)
{
    struct tail *t = arg;
    char id[OUTPUT_ID_MAX];

    if (!call_told(t->c))
        return;
    if (t->how == CALL_SSE) {
        if (m->exited)
            call_output_end(t->c, &t->sent);
        t->sent.pos = m->value;
        call_event_shape(t->c, output_id(&t->sent, id), "end", &end_shape,
                         &(struct page_view){.next = m->value, .exited = m->exited});
    }
    call_end(t->c);
}

static void tail_fail(void *arg, const struct err *e)
{
    struct tail *t = arg;

    if (call_told(t->c))
        call_fail(t->c, e);
}

static const struct process_ops tail_ops = {
    .on_output = tail_output,
    .on_truncated = tail_truncated,
    .on_exit = tail_exit,
    .on_end = tail_end,
    .on_fail = tail_fail,
};

/* Asked first whether it exists: once a stream has begun it is too late for 404,
 * and a process that prints nothing would leave the client without a head. */
static void tail_found(void *arg, const struct process_info *p, const struct err *e)
{
    struct tail *t = arg;
    struct call *c = t->c;
    char ref[PROCESS_REF_MAX + 1];

    (void)p;
    if (!call_got(c, e))
        return;
    call_begin(c, t->how);
    call_expect(
        c, &call_stream,
        process_attach(c->ref, ref_of(c, ref), t->sent.pos, t->follow, t->streams, &tail_ops, t));
}

static void read_stream(struct call *c, const struct logs_in *in, unsigned streams)
{
    const char *header = http_header(c->r, "Last-Event-ID");
    const char *from = header != NULL ? header : in->since;
    struct tail *t = call_state(c, sizeof(*t), NULL);
    char ref[PROCESS_REF_MAX + 1];
    struct err e;

    *t = (struct tail){.c = c, .how = call_accept(c), .follow = in->follow, .streams = streams};
    if (from != NULL && output_resume(&t->sent, from, &e) < 0) {
        err_wrap(&e, "%s", header != NULL ? "Last-Event-ID" : "since");
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, ref_of(c, ref), tail_found, t);
}

/* ---- the request ---- */

/* clang-format off */
static const struct json_field logs_fields[] = {
    {"since", JSON_FIELD_STR, offsetof(struct logs_in, since), 1, OUTPUT_ID_MAX, false, "Position to start at or, for streams, the id of the last event seen. Default: the oldest byte kept."},
    {"follow", JSON_FIELD_BOOL, offsetof(struct logs_in, follow), 0, 0, false, "Continue until the process exits. Only for streams."},
    {"stream", JSON_FIELD_STR, offsetof(struct logs_in, stream), 0, 16, false, "stdout, stderr or both (default)."},
    {"max_bytes", JSON_FIELD_U64, offsetof(struct logs_in, max_bytes), PAGE_MIN, PAGE_MAX, false, "Maximum bytes of output in a JSON answer. Default: 1 MiB."},
};
/* clang-format on */

static void logs_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct logs_in *)in)->max_bytes = PAGE_DEFAULT;
}

static const struct surface_input logs_input = {SURFACE_INPUT(logs_fields, struct logs_in),
                                                .defaults = logs_defaults};

static void process_logs(struct call *c, const void *query)
{
    const struct logs_in *in = query;
    bool json = call_accept(c) == CALL_JSON;
    unsigned streams;
    struct err e;

    if (command_streams(in->stream, &streams, &e) < 0) {
        call_fail(c, &e);
    } else if (json && in->follow) {
        err_set(&e, ERR_INVALID,
                "follow: requires Accept: text/event-stream or application/octet-stream");
        call_fail(c, &e);
    } else if (json) {
        read_page(c, in, streams);
    } else {
        read_stream(c, in, streams);
    }
}

/* clang-format off */
#define LOGS_ANSWER \
    .query = &logs_input, .status = 200, .answers = {&page_shape}, \
    .events = "stdout and stderr ({data, encoding?}), each with an id to resume from; truncated (Truncated); finally exit (Exit) with follow, else end (LogsEnd); or error (Error)", \
    .event_shapes = {&gap_shape, &end_shape, &exit_shape}, \
    .flags = SURFACE_RAW_ANSWER | SURFACE_RESUME
const struct surface_row surface_logs[] = {
    {{"GET", "/v1/sandboxes/{id}/processes/{pid}/logs"}, SCOPE_READ, process_logs, "getProcessLogs",
     "Shows the output of a process from a position on. As raw bytes, gaps are not marked.", LOGS_ANSWER},
    {{"GET", "/v1/sandboxes/{id}/sessions/{sid}/commands/{cid}/output"}, SCOPE_READ, process_logs, "getSessionCommandOutput",
     "Shows the output of a command of a session from a position on. Without follow, includes later output of its background processes.", LOGS_ANSWER},
    {.op = NULL},
};
/* clang-format on */
