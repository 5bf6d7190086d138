/* logs.c - output of a process (of the next version of the API), as events with cursors. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/plane/output.h"
#include "front/planes/cloudflare/internal.h"
#include "front/planes/cloudflare/process.h"

#define LOGS_EVENT_MAX (PROCESS_CHUNK_MAX / 3 * 4 + 1024u)
#define CURSOR_MAX 24u

struct logs_in {
    const char *since;
    bool replay, follow;
};

struct logs {
    struct call *c;
    uint64_t next;
    struct buf event;
};

/* ---- events ---- */

/* {"type":...,"cursor":...,"timestamp":...: the rest and the end are the caller's. */
static void open_event(struct logs *l, struct json_w *w, const char *type, uint64_t cursor)
{
    char at[CURSOR_MAX], when[CLOCK_TEXT_MAX];

    l->next = cursor;
    str_fmt(at, sizeof(at), "%llu", (unsigned long long)cursor);
    buf_clear(&l->event);
    jw_init(w, &l->event);
    jw_open(w);
    jw_kstr(w, "type", type);
    jw_kstr(w, "cursor", at);
    jw_kstr(w, "timestamp", clock_text(clock_real_ms(), when));
}

static void send_event(struct logs *l, struct json_w *w)
{
    jw_close(w);
    call_event(l->c, NULL, NULL, &l->event);
}

static void on_output(void *arg, const struct process_output *m)
{
    struct logs *l = arg;
    autobuf struct buf b64 = BUF_INIT(LOGS_EVENT_MAX);
    struct json_w w;

    str_base64(&b64, m->data.p, m->data.len);
    open_event(l, &w, output_name(m->stream), m->pos + m->data.len);
    jw_kstr(&w, "data", buf_cstr(&b64));
    send_event(l, &w);
}

static void on_truncated(void *arg, const struct process_truncated *m)
{
    struct json_w w;

    open_event(arg, &w, "truncated", m->to);
    send_event(arg, &w);
}

static void on_exit_told(void *arg, const struct process_exit *m)
{
    struct logs *l = arg;
    struct ended_view v;
    struct json_w w;

    if (!call_told(l->c))
        return;
    cloudflare_ended_of(&v, m);
    open_event(l, &w, "terminal", l->next);
    jw_kstr(&w, "state", "exited");
    jw_key(&w, "exit");
    shape_write(&w, &cloudflare_ended_shape, &v);
    send_event(l, &w);
    call_end(l->c);
}

static void on_end(void *arg, const struct process_end *m)
{
    struct logs *l = arg;

    (void)m;
    if (call_told(l->c))
        call_end(l->c);
}

static void on_fail(void *arg, const struct err *e)
{
    struct logs *l = arg;

    if (call_told(l->c))
        call_fail(l->c, e);
}

static const struct process_ops logs_ops = {
    .on_output = on_output,
    .on_truncated = on_truncated,
    .on_exit = on_exit_told,
    .on_end = on_end,
    .on_fail = on_fail,
};

/* ---- the request ---- */

static int first_byte(const struct logs_in *in, const struct process_info *p, uint64_t *ret,
                      struct err *e)
{
    *ret = in->replay ? 0 : p->output_end;
    if (in->since != NULL && str_u64(in->since, p->output_end, ret) < 0)
        return err_set(e, ERR_INVALID, "since: '%.40s' is not a cursor of this process", in->since);
    return 0;
}

/* A 404 is only possible before the stream begins, so the record is read first; its exit is
 * also reported without follow. */
static void found(void *arg, const struct process_info *p, const struct err *e)
{
    struct logs *l = arg;
    struct call *c = l->c;
    const struct logs_in *in = c->in;
    struct err bad;

    if (!call_told(c))
        return;
    if (p == NULL || first_byte(in, p, &l->next, &bad) < 0) {
        call_fail(c, p == NULL ? e : &bad);
        return;
    }
    call_begin(c, CALL_SSE);
    call_expect(c, &call_stream,
                process_attach(c->ref, p->id, l->next, in->follow || p->state == PROCESS_EXITED, 0,
                               &logs_ops, l));
}

static void logs_drop(void *state)
{
    buf_free(&((struct logs *)state)->event);
}

static void logs_go(struct call *c, const void *in)
{
    struct logs *l = call_state(c, sizeof(*l), logs_drop);

    (void)in;
    l->c = c;
    buf_init(&l->event, 2 * LOGS_EVENT_MAX);
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, call_param(c, 1), found, l);
}

static void logs_run(struct call *c, const void *in)
{
    cloudflare_look(c, in, logs_go);
}

static void logs_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct logs_in *)in = (struct logs_in){.replay = true, .follow = true};
}

/* clang-format off */
static const struct json_field logs_fields[] = {
    {"since", JSON_FIELD_STR, offsetof(struct logs_in, since), 1, CURSOR_MAX, false,
     "Cursor of the last event seen. Default: as `replay` says."},
    {"replay", JSON_FIELD_BOOL, offsetof(struct logs_in, replay), 0, 0, false,
     "true (default): start with the output kept. false: only new output."},
    {"follow", JSON_FIELD_BOOL, offsetof(struct logs_in, follow), 0, 0, false,
     "true (default): continue until the process exits. false: end after the output kept."},
};
static const struct surface_input logs_input = {
    SURFACE_INPUT(logs_fields, struct logs_in), .defaults = logs_defaults};

const struct surface_row cloudflare_logs[] = {
    {{"GET", CLOUDFLARE_PROCESSES "/{pid}/logs"}, SCOPE_READ, logs_run, "cloudflareProcessLogs",
     "Streams the output of a process and how it exited.",
     .query = &logs_input, .status = 200,
     .events = "JSON with `type` (stdout, stderr, truncated, terminal), `cursor`, `timestamp`; `data` is base64, `exit` as in CloudflareProcess.",
     .failure = "process_error", .missing = "not_found"},
    {.op = NULL},
};
/* clang-format on */
