/* viewer.c - see viewer.h. */
#include "front/plane/viewer.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/plane/exit.h"
#include "front/plane/plane.h"
#include "front/plane/replay.h"
#include "http/parse.h"
#include "mem/mem.h"

#define TTYD_PROTOCOL "tty"
#define TEXT_MAX 1024u
#define CLOSE_NORMAL 1000
#define CLOSE_FAILED 1011

struct viewer {
    struct call *call;             /* until the handshake; then NULL */
    struct http_ws *ws;            /* from then on, until it is closed */
    struct process_stream *stream; /* NULL: it has said its last */
    const struct viewer_dialect *dialect;
    struct loop *loop;
    struct loop_timer stall; /* set while it is full */
    size_t untaken;          /* when we last looked, while it is full */
    uint64_t cursor;
    uint64_t live; /* position of the first byte that is not replayed */
    struct replay replay;
    struct buf shown;    /* of what is replayed */
    unsigned cols, rows; /* to resize to, once */
    bool read_only;
    bool greeted; /* ttyd: nothing is sent before its first message */
    bool held;    /* it asked for a pause */
    bool full;    /* it does not read */
    struct buf out;
};

/* ---- our own words ---- */

void viewer_open_text(struct viewer *v, struct json_w *w, const char *type)
{
    buf_clear(&v->out);
    jw_init(w, &v->out);
    jw_open(w);
    jw_kstr(w, "type", type);
}

void viewer_send_text(struct viewer *v, struct json_w *w)
{
    jw_close(w);
    if (!v->out.failed)
        http_ws_send(v->ws, false, buf_data(&v->out), v->out.len);
}

void viewer_send_bytes(struct viewer *v, const char *p, size_t n)
{
    http_ws_send(v->ws, true, p, n);
}

uint64_t viewer_cursor(const struct viewer *v)
{
    return v->cursor;
}

static void put_size(struct json_w *w, const struct process_screen *m)
{
    jw_ku64(w, "cols", m->cols);
    jw_ku64(w, "rows", m->rows);
}

static int own_read(const struct viewer *v, bool binary, const char *p, size_t n, struct frame *ret,
                    struct err *e)
{
    (void)v;
    return frame_read(binary, p, n, ret, e);
}

static void own_ready(struct viewer *v, const struct process_screen *m)
{
    struct json_w w;

    viewer_open_text(v, &w, "ready");
    jw_ku64(&w, "cursor", m->cursor);
    jw_ku64(&w, "end", m->end);
    put_size(&w, m);
    jw_ku64(&w, "pid", m->pid);
    jw_kbool(&w, "read_only", v->read_only);
    viewer_send_text(v, &w);
}

static void own_resized(struct viewer *v, const struct process_screen *m)
{
    struct json_w w;

    viewer_open_text(v, &w, "resize");
    put_size(&w, m);
    viewer_send_text(v, &w);
}

static void own_truncated(struct viewer *v, const struct process_truncated *m)
{
    struct json_w w;

    viewer_open_text(v, &w, "truncated");
    jw_ku64(&w, "from", m->from);
    jw_ku64(&w, "to", m->to);
    viewer_send_text(v, &w);
}

static void own_exited(struct viewer *v, const struct process_exit *m)
{
    struct exit_view x;
    struct json_w w;

    exit_view_of(&x, m);
    viewer_open_text(v, &w, "exit");
    jw_ku64(&w, "code", x.code);
    jw_kstr(&w, "signal", x.signal);
    jw_kbool(&w, "oom", x.oom);
    jw_kbool(&w, "oom_meanwhile", x.oom_meanwhile);
    viewer_send_text(v, &w);
}

static void own_error(struct viewer *v, const struct err *e)
{
    struct json_w w;

    viewer_open_text(v, &w, "error");
    jw_kstr(&w, "code", err_code(e->kind));
    jw_kstr(&w, "message", e->kind == ERR_INTERNAL ? "internal error" : e->msg);
    viewer_send_text(v, &w);
}

const struct viewer_dialect viewer_own = {.read = own_read,
                                          .ready = own_ready,
                                          .resized = own_resized,
                                          .output = viewer_send_bytes,
                                          .truncated = own_truncated,
                                          .exited = own_exited,
                                          .error = own_error};

const struct viewer_dialect viewer_plain = {.read = own_read,
                                            .ready = own_ready,
                                            .output = viewer_send_bytes,
                                            .exited = own_exited,
                                            .error = own_error};

/* ---- ttyd's ---- */

static int ttyd_read(const struct viewer *v, bool binary, const char *p, size_t n,
                     struct frame *ret, struct err *e)
{
    (void)binary;
    return frame_read_ttyd(!v->greeted, p, n, ret, e);
}

static void ttyd_send(struct viewer *v, char kind, const char *p, size_t n)
{
    buf_clear(&v->out);
    buf_addc(&v->out, kind);
    buf_add(&v->out, p, n);
    if (!v->out.failed)
        http_ws_send(v->ws, true, buf_data(&v->out), v->out.len);
}

/* A title and no preferences; the window is the client's own. */
static void ttyd_ready(struct viewer *v, const struct process_screen *m)
{
    (void)m;
    ttyd_send(v, '1', "Cove", 4);
    ttyd_send(v, '2', "{}", 2);
}

static void ttyd_output(struct viewer *v, const char *p, size_t n)
{
    ttyd_send(v, '0', p, n);
}

static const struct viewer_dialect ttyd_dialect = {
    .read = ttyd_read, .ready = ttyd_ready, .output = ttyd_output};

static void say_error(struct viewer *v, const struct err *e)
{
    if (v->dialect->error != NULL)
        v->dialect->error(v, e);
}

/* ---- what comes from the terminal ---- */

static void set_pace(struct viewer *v)
{
    process_pause(v->stream, v->full || v->held || !v->greeted);
}

static void drop_slow(struct viewer *v)
{
    process_close(take_ptr(&v->stream));
    http_ws_close(v->ws, VIEWER_CLOSE_SLOW,
                  "nothing was read for a while; come back with the cursor");
}

/* One that reads slowly is not one that does not read. */
static void on_stall(struct loop_timer *t)
{
    struct viewer *v = CONTAINER_OF(t, struct viewer, stall);
    size_t untaken = http_ws_untaken(v->ws), before = v->untaken;

    v->untaken = untaken;
    if (v->stream == NULL)
        return;
    if (untaken >= before || loop_timer_set(v->loop, &v->stall, VIEWER_STALL_MS, on_stall) < 0)
        drop_slow(v);
}

static void push_back(struct viewer *v)
{
    if (v->full || http_ws_backlog(v->ws) <= HTTP_BACKLOG_HIGH)
        return;
    v->full = true;
    v->untaken = http_ws_untaken(v->ws);
    set_pace(v);
    if (loop_timer_set(v->loop, &v->stall, VIEWER_STALL_MS, on_stall) < 0)
        drop_slow(v);
}

static void viewer_free(struct viewer *v)
{
    loop_timer_stop(v->loop, &v->stall);
    process_close(v->stream);
    buf_free(&v->out);
    buf_free(&v->shown);
    free(v);
}

static void shake_hands(struct viewer *v);

static void on_screen(void *arg, const struct process_screen *m)
{
    struct viewer *v = arg;

    if (v->ws != NULL) {
        if (v->dialect->resized != NULL)
            v->dialect->resized(v, m);
        push_back(v);
        return;
    }
    shake_hands(v);
    if (v->ws == NULL) {
        viewer_free(v);
        return;
    }
    v->cursor = m->cursor;
    v->live = m->end;
    v->dialect->ready(v, m);
    if (v->cols != 0 && v->rows != 0 && !v->read_only)
        terminal_view_resize(v->stream, v->cols, v->rows);
    set_pace(v);
}

/* What came before the viewer did; the rest of the message may be live already. */
static void output_replayed(struct viewer *v, const struct process_output *m)
{
    uint64_t old = v->live - m->pos;
    size_t n = old < m->data.len ? (size_t)old : m->data.len;

    buf_clear(&v->shown);
    replay_add(&v->replay, m->data.p, n, &v->shown);
    if (v->cursor >= v->live) {
        replay_end(&v->replay, &v->shown);
        buf_add(&v->shown, m->data.p + n, m->data.len - n);
    }
    v->cursor -= v->replay.n;
    if (v->shown.failed) { /* no memory: what it misses would shift its cursor */
        drop_slow(v);
        return;
    }
    if (v->shown.len > 0)
        v->dialect->output(v, buf_data(&v->shown), v->shown.len);
    push_back(v);
}

static void on_output(void *arg, const struct process_output *m)
{
    struct viewer *v = arg;

    v->cursor = m->pos + m->data.len;
    if (m->pos < v->live) {
        output_replayed(v, m);
        return;
    }
    v->dialect->output(v, m->data.p, m->data.len);
    push_back(v);
}

static void on_truncated(void *arg, const struct process_truncated *m)
{
    struct viewer *v = arg;

    buf_clear(&v->shown);
    replay_end(&v->replay, &v->shown); /* its end is lost */
    if (v->shown.len > 0)
        v->dialect->output(v, buf_data(&v->shown), v->shown.len);
    v->cursor = m->to;
    if (v->dialect->truncated != NULL)
        v->dialect->truncated(v, m);
    push_back(v);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct viewer *v = arg;

    v->stream = NULL;
    if (v->dialect->exited != NULL)
        v->dialect->exited(v, m);
    http_ws_close(v->ws, CLOSE_NORMAL, "the terminal has ended");
}

static void on_fail(void *arg, const struct err *e)
{
    struct viewer *v = arg;

    v->stream = NULL;
    if (v->ws == NULL) {
        if (v->call != NULL && call_told(v->call))
            call_fail(v->call, e);
        viewer_free(v);
        return;
    }
    say_error(v, e);
    http_ws_close(v->ws, CLOSE_FAILED, e->kind == ERR_INTERNAL ? "internal error" : e->msg);
}

/* What was typed has reached the sandbox: more may come. */
static void on_typed(void *arg)
{
    struct viewer *v = arg;

    if (v->ws != NULL)
        http_ws_pause(v->ws, false);
    else
        viewer_free(v);
}

static const struct process_ops stream_ops = {.on_screen = on_screen,
                                              .on_output = on_output,
                                              .on_truncated = on_truncated,
                                              .on_exit = on_exit_,
                                              .on_fail = on_fail,
                                              .on_drain = on_typed};

/* ---- what comes from the client ---- */

static bool may_change(struct viewer *v)
{
    struct err e;

    if (!v->read_only)
        return true;
    err_set(&e, ERR_DENIED, "this viewer is read-only");
    say_error(v, &e);
    return false;
}

static void do_input(struct viewer *v, const struct frame *f)
{
    if (f->n > 0 && may_change(v) && process_feed(v->stream, f->p, f->n, false) > PROCESS_FEED_HIGH)
        http_ws_pause(v->ws, true);
}

static void do_resize(struct viewer *v, const struct frame *f)
{
    if (may_change(v))
        terminal_view_resize(v->stream, f->cols, f->rows);
}

static void do_pause(struct viewer *v, const struct frame *f)
{
    v->held = f->act == FRAME_PAUSE;
    set_pace(v);
}

static void do_hello(struct viewer *v, const struct frame *f)
{
    v->greeted = true;
    if (!v->read_only && f->cols != 0 && f->rows != 0)
        terminal_view_resize(v->stream, f->cols, f->rows);
    set_pace(v);
}

static void (*const acts[FRAME_ACT_COUNT])(struct viewer *v, const struct frame *f) = {
    [FRAME_INPUT] = do_input,  [FRAME_RESIZE] = do_resize, [FRAME_PAUSE] = do_pause,
    [FRAME_RESUME] = do_pause, [FRAME_HELLO] = do_hello,
};

static void on_message(struct http_ws *ws, bool binary, const char *p, size_t n, void *arg)
{
    struct viewer *v = arg;
    struct frame f;
    struct err e;

    (void)ws;
    if (v->stream == NULL)
        return;
    if (v->dialect->read(v, binary, p, n, &f, &e) < 0)
        say_error(v, &e);
    else
        acts[f.act](v, &f);
}

static void on_drain(struct http_ws *ws, void *arg)
{
    struct viewer *v = arg;

    (void)ws;
    v->full = false;
    loop_timer_stop(v->loop, &v->stall);
    if (v->stream != NULL)
        set_pace(v);
}

static void on_parted(struct loop_timer *t)
{
    viewer_free(CONTAINER_OF(t, struct viewer, stall));
}

/* What it typed before it left is still on its way, if the program takes it in time. */
static void on_close(struct http_ws *ws, int code, void *arg)
{
    struct viewer *v = arg;

    (void)ws, (void)code;
    v->ws = NULL;
    if (v->stream == NULL || process_feed(v->stream, "", 0, false) == 0 ||
        loop_timer_set(v->loop, &v->stall, VIEWER_STALL_MS, on_parted) < 0)
        viewer_free(v);
    else
        process_pause(v->stream, true);
}

static const struct http_ws_ops ws_ops = {
    .on_message = on_message, .on_drain = on_drain, .on_close = on_close};

/* ---- the beginning ---- */

/* Only once the terminal is known to exist: an answer to an upgrade has no status
 * but 101. */
static void shake_hands(struct viewer *v)
{
    struct call *c = take_ptr(&v->call);
    const char *offered = http_header(c->r, "Sec-WebSocket-Protocol");
    bool ttyd = v->dialect == NULL && offered != NULL &&
                http_list_has(offered, strlen(offered), TTYD_PROTOCOL);

    if (v->dialect == NULL)
        v->dialect = ttyd ? &ttyd_dialect : &viewer_own;
    v->greeted = !ttyd;
    v->ws = http_ws_accept(c->r, ttyd ? TTYD_PROTOCOL : NULL, &ws_ops, v);
    call_upgraded(c, v->ws != NULL ? 101 : 426);
}

static void take_back(void *handle)
{
    viewer_free(handle);
}

static const struct call_source viewer_source = {.take_back = take_back};

void viewer_open(struct call *c, const struct viewer_opts *o)
{
    struct viewer *v = mem_zeroed(1, sizeof(*v));
    struct terminal_from from = o->from;

    v->call = c;
    v->loop = c->loop;
    v->read_only = o->read_only;
    v->cols = o->cols;
    v->rows = o->rows;
    v->dialect = o->dialect;
    buf_init(&v->out, PROCESS_CHUNK_MAX + REPLAY_HELD_MAX + TEXT_MAX);
    buf_init(&v->shown, PROCESS_CHUNK_MAX + REPLAY_HELD_MAX);
    from.looks = o->read_only;
    v->stream = terminal_view(c->ref, o->id, &from, &stream_ops, v);
    call_expect(c, &viewer_source, v);
}
