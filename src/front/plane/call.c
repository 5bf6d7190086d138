/* call.c - see call.h. */
#include "front/plane/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/auth/auth.h"
#include "front/engine/process.h"
#include "front/plane/intake.h"
#include "front/plane/output.h"
#include "front/plane/surface.h"
#include "loop/job.h"
#include "mem/mem.h"

#define ANSWER_MAX (1u << 30) /* the sum of what handlers keep is far below */

#define CALL_BUILT_HERE (64u << 10) /* bytes; a longer answer is built in a thread */

static void close_stream(void *handle)
{
    process_close(handle);
}

static void pause_stream(void *handle, bool pause)
{
    process_pause(handle, pause);
}

static void cancel_wait(void *handle)
{
    process_cancel(handle);
}

const struct call_source call_pending = {0};
const struct call_source call_stream = {close_stream, pause_stream};
const struct call_source call_wait = {.take_back = cancel_wait};

struct building {
    struct job job;
    struct call *c;
    const struct shape *shape;
    const void *from;
    void (*fill)(void *arg);
    void *arg;
    struct buf body;
};

static void building_free(struct call *c)
{
    if (c->building != NULL)
        job_free_buf(c->loop, &c->building->body, c->building->job.share);
    free(take_ptr(&c->building));
}

void call_free(struct call *c)
{
    uint32_t share = job_share(c->ref.key);

    if (c->building != NULL)
        job_settle(c->loop, &c->building->job);
    if (c->drop != NULL && c->state != NULL)
        c->drop(c->state);
    loop_undefer(&c->later);
    list_del(&c->link);
    free(c->state);
    intake_free(c);
    building_free(c);
    buf_free(&c->path);
    free(c->in);
    json_decref(c->doc);
    job_free_buf(c->loop, &c->rest, share);
    job_free_buf(c->loop, &c->unfolded, share);
    quota_release(c->user, c->held);
    free(c);
}

static void free_later(struct loop_later *l)
{
    call_free(CONTAINER_OF(l, struct call, later));
}

/* Closes the client's end and returns the request, for the caller to send the last bytes. */
static struct http_req *client_end(struct call *c)
{
    struct http_req *r = c->r;

    c->r = NULL;
    /* On a broken connection the answer below goes nowhere, and http would still
     * tell us that the client is gone: of a call that is. */
    http_on_gone(r, NULL, NULL);
    http_on_drain(r, NULL, NULL);
    if (c->source != NULL && c->source->take_back == NULL)
        return r;
    if (c->source != NULL)
        c->source->take_back(c->handle);
    c->source = NULL;
    loop_defer(c->loop, &c->later, free_later);
    return r;
}

static void count(struct call *c, int status)
{
    size_t row = c->row != NULL ? (size_t)(c->row - c->plane->rows) : c->plane->nrows;
    struct plane_count *n = &c->plane->counts[row];

    n->by_class[(status / 100) % PLANE_CLASSES]++;
    if (status != 0)
        histogram_add(&n->took, (clock_mono_ns() - c->began_ns) / 1000u);
}

static void gone(struct http_req *r, void *arg)
{
    struct call *c = arg;

    (void)r;
    if (!c->streaming)
        count(c, 0);
    client_end(c);
}

struct call *call_new(struct plane *p, struct http_req *r)
{
    struct call *c = mem_zeroed(1, sizeof(*c));

    c->plane = p;
    c->r = r;
    c->loop = http_loop(r);
    c->began_ns = clock_mono_ns();
    c->ref = (struct ref){p->engine, NULL, ""};
    str_fmt(c->request_id, sizeof(c->request_id), "%s", http_request_id(r));
    list_add_tail(&p->calls, &c->link);
    http_on_gone(r, gone, c);
    return c;
}

void *call_state(struct call *c, size_t size, void (*drop)(void *state))
{
    c->drop = drop;
    c->state = mem_zeroed(1, size);
    return c->state;
}

const char *call_param(const struct call *c, size_t i)
{
    return i < c->match.nparams ? c->match.params[i] : "";
}

void call_act_as(struct call *c, const char *key)
{
    str_fmt(c->owner, sizeof(c->owner), "%s", key);
    c->ref.key = c->owner;
}

void call_aim(struct call *c, const char *key, const char *id)
{
    if (key != NULL)
        call_act_as(c, key);
    str_fmt(c->sandbox, sizeof(c->sandbox), "%s", id);
    c->ref.id = c->sandbox;
}

int call_hold(struct call *c, uint64_t bytes, struct err *e)
{
    if (bytes <= c->held)
        return 0;
    if (quota_hold(c->user, bytes - c->held, e) < 0)
        return -1;
    c->held = bytes;
    return 0;
}

void call_keep_input(struct call *c)
{
    c->keeps = true;
}

enum call_accept call_accept(const struct call *c)
{
    const char *accept = c->r != NULL ? http_header(c->r, "Accept") : NULL;

    if (accept == NULL)
        return CALL_JSON;
    if (c->row->events != NULL && strcasestr(accept, "text/event-stream") != NULL)
        return CALL_SSE;
    if ((c->row->flags & SURFACE_RAW_ANSWER) &&
        strcasestr(accept, "application/octet-stream") != NULL)
        return CALL_RAW;
    return CALL_JSON;
}

void call_expect(struct call *c, const struct call_source *source, void *handle)
{
    c->source = source;
    c->handle = handle;
}

bool call_told(struct call *c)
{
    c->source = NULL;
    c->handle = NULL;
    if (c->r == NULL)
        loop_defer(c->loop, &c->later, free_later);
    return c->r != NULL;
}

static void send_rest(struct http_req *r, void *arg)
{
    struct call *c = arg;

    (void)r;
    while (c->r != NULL && c->rest.len > 0) {
        size_t n = c->rest.len < CALL_PIECE ? c->rest.len : CALL_PIECE;

        if (http_backlog(c->r) > HTTP_BACKLOG_HIGH)
            return;
        http_write(c->r, buf_data(&c->rest), n);
        buf_consume(&c->rest, n);
    }
    call_end(c);
}

void call_reply(struct call *c, int status, const char *type, struct buf *body)
{
    struct err e;

    if (c->r == NULL)
        return;
    if (body->failed) {
        err_set(&e, ERR_LIMIT, "the answer is too large; request fewer rows or bytes");
        call_fail(c, &e);
        return;
    }
    count(c, status);
    if (body->len > HTTP_BACKLOG_HIGH) {
        c->streaming = true;
        c->rest = *body;
        buf_init(body, body->max);
        http_on_drain(c->r, send_rest, c);
        http_reply_begin_length(c->r, status, type, c->rest.len);
        send_rest(c->r, c);
        return;
    }
    http_reply(client_end(c), status, type, buf_cstr(body), body->len);
}

void call_reply_bytes(struct call *c, int status, const char *type, const void *p, size_t n)
{
    if (c->r == NULL)
        return;
    count(c, status);
    http_reply(client_end(c), status, type, p, n);
}

void call_reply_file(struct call *c, int status, const char *type, int fd, uint64_t at,
                     uint64_t length)
{
    if (c->r == NULL) {
        job_close(c->loop, fd, job_share(c->ref.key));
        return;
    }
    count(c, status);
    http_reply_file(client_end(c), status, type, fd, at, length, job_share(c->ref.key));
}

void call_reply_shape(struct call *c, const struct shape *s, const void *from)
{
    call_reply_shape_as(c, c->row->status, s, from);
}

void call_reply_shape_as(struct call *c, int status, const struct shape *s, const void *from)
{
    autobuf struct buf body = BUF_INIT(ANSWER_MAX);
    struct json_w w;

    if (c->r == NULL)
        return;
    jw_init(&w, &body);
    shape_write(&w, s, from);
    call_reply(c, status, "application/json", &body);
}

/* ---- a long answer ---- */

static void build(struct job *w)
{
    struct building *b = CONTAINER_OF(w, struct building, job);
    struct json_w j;

    b->fill(b->arg);
    jw_init(&j, &b->body);
    shape_write(&j, b->shape, b->from);
}

static void built(struct job *w)
{
    struct building *b = CONTAINER_OF(w, struct building, job);

    if (call_told(b->c))
        call_reply(b->c, b->c->row->status, "application/json", &b->body);
}

void call_reply_built(struct call *c, const struct shape *s, const void *from,
                      void (*fill)(void *arg), void *arg, size_t size)
{
    struct building *b;

    if (size < CALL_BUILT_HERE) {
        fill(arg);
        call_reply_shape(c, s, from);
        return;
    }
    c->building = b = mem_zeroed(1, sizeof(*b));
    *b = (struct building){.c = c, .shape = s, .from = from, .fill = fill, .arg = arg};
    buf_init(&b->body, ANSWER_MAX);
    b->job.share = job_share(c->ref.key);
    call_expect(c, &call_pending, NULL);
    job_start(c->loop, &b->job, build, built);
}

void call_reply_none(struct call *c)
{
    if (c->r == NULL)
        return;
    count(c, 204);
    http_reply(client_end(c), 204, NULL, NULL, 0);
}

void call_upgraded(struct call *c, int status)
{
    count(c, status);
    c->source = NULL;
    client_end(c);
}

static const struct {
    enum err_kind kind;
    const char *header, *value;
} error_headers[] = {
    {ERR_UNAUTHORIZED, "WWW-Authenticate", "Bearer"},
    {ERR_LIMIT, "Retry-After", "1"},
    {ERR_UNAVAILABLE, "Retry-After", "1"},
};

static void fail_stream(struct call *c, struct buf *body)
{
    if (c->events) {
        call_event(c, NULL, "error", body);
        call_end(c);
    } else {
        call_cut(c);
    }
}

static int status_of(const struct call *c, const struct err *e)
{
    const struct plane_manner *m = c->plane->manner;

    return m->status != NULL ? m->status(c, e) : err_http(e->kind);
}

void call_fail(struct call *c, const struct err *e)
{
    autobuf struct buf body = BUF_INIT(8u << 10);
    int status = status_of(c, e);

    if (e->kind == ERR_INTERNAL)
        log_error("%s %s: %s", c->request_id, c->row != NULL ? c->row->op : "-", e->msg);
    if (c->r == NULL || (c->plane->manner->fail != NULL && c->plane->manner->fail(c, e)))
        return;
    c->plane->manner->write_error(c, e, &body);
    if (c->streaming) {
        fail_stream(c, &body);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(error_headers); i++)
        if (error_headers[i].kind == e->kind)
            http_reply_header(c->r, error_headers[i].header, error_headers[i].value);
    count(c, status);
    http_reply(client_end(c), status, "application/json", buf_cstr(&body), body.len);
}

bool call_got(struct call *c, const struct err *e)
{
    bool listens = call_told(c);

    if (listens && e != NULL)
        call_fail(c, e);
    return listens && e == NULL;
}

void call_told_done(void *call, const struct err *e)
{
    if (call_got(call, e))
        call_reply_none(call);
}

void call_told_sandbox(void *call, const struct sandbox *s, const struct err *e)
{
    (void)s;
    call_told_done(call, e);
}

static void pause_source(struct call *c, bool pause)
{
    if (c->source != NULL && c->source->pause != NULL)
        c->source->pause(c->handle, pause);
}

static void push_back(struct call *c)
{
    if (c->r != NULL && http_backlog(c->r) > HTTP_BACKLOG_HIGH)
        pause_source(c, true);
}

static void drained(struct http_req *r, void *arg)
{
    (void)r;
    pause_source(arg, false);
}

static bool begin(struct call *c, bool events)
{
    if (c->r == NULL)
        return false;
    c->streaming = true;
    c->events = events;
    count(c, 200);
    http_on_drain(c->r, drained, c);
    return true;
}

void call_begin(struct call *c, enum call_accept how)
{
    if (how != CALL_SSE)
        call_begin_bytes(c, "application/octet-stream");
    else if (begin(c, true))
        http_sse_begin(c->r);
}

void call_begin_bytes(struct call *c, const char *type)
{
    if (begin(c, false))
        http_reply_begin(c->r, 200, type);
}

void call_event(struct call *c, const char *id, const char *event, struct buf *data)
{
    if (c->r == NULL)
        return;
    if (data->failed) {
        call_cut(c);
        return;
    }
    http_sse_event(c->r, id, event, buf_data(data), data->len);
    push_back(c);
}

void call_event_shape(struct call *c, const char *id, const char *event, const struct shape *s,
                      const void *from)
{
    autobuf struct buf data = BUF_INIT(ANSWER_MAX);
    struct json_w w;

    jw_init(&w, &data);
    shape_write(&w, s, from);
    call_event(c, id, event, &data);
}

void call_output(struct call *c, struct output *o, const struct process_output *m)
{
    autobuf struct buf data = BUF_INIT(OUTPUT_EVENT_MAX);
    char id[OUTPUT_ID_MAX];

    if (output_take(o, m->stream, m->pos, m->data.p, m->data.len, &data))
        call_event(c, o->no_ids ? NULL : output_id(o, id), output_name(m->stream), &data);
}

void call_output_end(struct call *c, struct output *o)
{
    for (unsigned stream = PROCESS_STDOUT; stream <= PROCESS_STDERR; stream++) {
        autobuf struct buf data = BUF_INIT(OUTPUT_EVENT_MAX);
        char id[OUTPUT_ID_MAX];

        if (output_flush(o, stream, &data))
            call_event(c, o->no_ids ? NULL : output_id(o, id), output_name(stream), &data);
    }
}

void call_write(struct call *c, const void *p, size_t n)
{
    if (c->r == NULL)
        return;
    http_write(c->r, p, n);
    push_back(c);
}

void call_end(struct call *c)
{
    if (c->r != NULL)
        http_reply_end(client_end(c));
}

void call_cut(struct call *c)
{
    if (c->r != NULL)
        http_reply_abort(client_end(c));
}
