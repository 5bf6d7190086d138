/* stream.c - calls of process.h with a stream of output: process_run(), process_attach(). */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/command.h"
#include "front/engine/internal.h"
#include "front/engine/process.h"
#include "front/engine/run/from_init.h"
#include "front/engine/terminal.h"
#include "loop/job.h"
#include "mem/mem.h"

/* clang-format off */
static const struct talk_kind kind_run    = {INIT_START,  {{INIT_STARTED, TALK_MORE}, {INIT_OUTPUT, TALK_MORE}, {INIT_EXIT, TALK_LAST}}, .starts = true, .lasts = true};
static const struct talk_kind kind_session = {INIT_SESSION_EXEC, {{INIT_STARTED, TALK_MORE}, {INIT_OUTPUT, TALK_MORE}, {INIT_EXIT, TALK_LAST}}, .lasts = true};
static const struct talk_kind kind_own    = {INIT_START,  {{INIT_STARTED, TALK_MORE}, {INIT_OUTPUT, TALK_MORE}, {INIT_TRUNCATED, TALK_MORE}, {INIT_EXIT, TALK_LAST}}, .starts = true, .lasts = true};
static const struct talk_kind kind_follow = {INIT_ATTACH, {{INIT_OUTPUT, TALK_MORE}, {INIT_TRUNCATED, TALK_MORE}, {INIT_EXIT, TALK_LAST}}, .lasts = true};
static const struct talk_kind kind_look   = {INIT_ATTACH, {{INIT_OUTPUT, TALK_MORE}, {INIT_TRUNCATED, TALK_MORE}, {INIT_END, TALK_LAST}}};
static const struct talk_kind kind_view   = {INIT_VIEW,   {{INIT_SCREEN, TALK_MORE}, {INIT_OUTPUT, TALK_MORE}, {INIT_TRUNCATED, TALK_MORE}, {INIT_EXIT, TALK_LAST}}, .lasts = true};
/* clang-format on */

#define LEFT_MAX 16u /* closed streams that still send stdin: each may hold a whole body */

struct process_stream {
    struct talk talk;
    struct engine *g;
    const struct process_ops *ops;
    void *arg;
    uint64_t next;             /* position of the next byte of output */
    bool started;              /* or attached: output may come */
    bool filtered;             /* one stream only: positions may jump */
    bool exact;                /* a view from `next` on and from nowhere else */
    bool fed;                  /* `rest` is its stdin; else the text of a session's command */
    bool left;                 /* closed by its caller; only the rest of its stdin is sent */
    struct buf rest;           /* not yet sent */
    char id[INIT_REF_MAX + 1]; /* as asked; "" if init chooses */
};

static void stream_free(struct process_stream *s)
{
    s->g->nleft -= s->left;
    job_free_buf(s->g->loop, &s->rest, 0);
    free(s);
}

static int got_started(struct process_stream *s, const struct process_started *m, struct err *e)
{
    if (s->started)
        return err_set(e, ERR_INVALID, "started twice");
    if (s->id[0] != '\0' && strcmp(s->id, m->id) != 0)
        return err_set(e, ERR_INVALID, "another process was started");
    s->started = true;
    talk_set_deadline(&s->talk, 0); /* from here on the tenant's program decides */
    if (s->ops->on_started != NULL)
        s->ops->on_started(s->arg, m);
    return 0;
}

static int got_screen(struct process_stream *s, const struct process_screen *m, struct err *e)
{
    if (m->cols == 0 || m->rows == 0)
        return err_set(e, ERR_INVALID, "a screen without size");
    if (!s->started) {
        if (m->cursor > m->end || (s->exact && m->cursor != s->next))
            return err_set(e, ERR_INVALID, "a screen from %llu on", (unsigned long long)m->cursor);
        s->next = m->cursor;
        s->started = true;
        talk_set_deadline(&s->talk, 0);
    }
    s->ops->on_screen(s->arg, m);
    return 0;
}

static int got_output(struct process_stream *s, const struct process_output *m, struct err *e)
{
    if (!s->started)
        return err_set(e, ERR_INVALID, "output before the start");
    if (m->stream != INIT_STDOUT && m->stream != INIT_STDERR)
        return err_set(e, ERR_INVALID, "output of no stream");
    if (m->pos != s->next && !(s->filtered && m->pos > s->next))
        return err_set(e, ERR_INVALID, "output at %llu instead of %llu", (unsigned long long)m->pos,
                       (unsigned long long)s->next);
    if (m->pos > UINT64_MAX - m->data.len)
        return err_set(e, ERR_INVALID, "output beyond the end of numbers");
    s->next = m->pos + m->data.len;
    if (s->ops->on_output != NULL)
        s->ops->on_output(s->arg, m);
    return 0;
}

static int got_truncated(struct process_stream *s, const struct process_truncated *m, struct err *e)
{
    if (!s->started || m->from > m->to || m->to < s->next)
        return err_set(e, ERR_INVALID, "a gap from %llu to %llu", (unsigned long long)m->from,
                       (unsigned long long)m->to);
    s->next = m->to;
    if (s->ops->on_truncated != NULL)
        s->ops->on_truncated(s->arg, m);
    return 0;
}

/* The last ones: the stream ends before it is told. */
static int got_exit(struct process_stream *s, const struct process_exit *m, struct err *e)
{
    const struct process_ops *ops = s->ops;
    void *arg = s->arg;

    if (!s->started)
        return err_set(e, ERR_INVALID, "exit before the start");
    stream_free(s);
    ops->on_exit(arg, m);
    return 0;
}

static int got_end(struct process_stream *s, const struct process_end *m)
{
    const struct process_ops *ops = s->ops;
    void *arg = s->arg;

    stream_free(s);
    ops->on_end(arg, m);
    return 0;
}

static int on_msg(struct talk *t, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct process_stream *s = CONTAINER_OF(t, struct process_stream, talk);

    switch (type) {
    case INIT_STARTED:
        return got_started(s, (struct process_started[]){process_started_from(&m->init_started)},
                           e);
    case INIT_SCREEN:
        return got_screen(s, (struct process_screen[]){process_screen_from(&m->init_screen)}, e);
    case INIT_OUTPUT:
        return got_output(s, (struct process_output[]){process_output_from(&m->init_output)}, e);
    case INIT_TRUNCATED:
        return got_truncated(
            s, (struct process_truncated[]){process_truncated_from(&m->init_truncated)}, e);
    case INIT_EXIT:
        return got_exit(s, (struct process_exit[]){process_exit_from(&m->init_exit)}, e);
    case INIT_END:
        return got_end(s, (struct process_end[]){process_end_from(&m->init_end)});
    default:
        return err_set(e, ERR_INVALID, "type %u", type);
    }
}

static void on_fail(struct talk *t, const struct err *e)
{
    struct process_stream *s = CONTAINER_OF(t, struct process_stream, talk);
    const struct process_ops *ops = s->ops;
    void *arg = s->arg;

    stream_free(s);
    ops->on_fail(arg, e);
}

static size_t send_piece(struct process_stream *s, uint32_t n)
{
    struct wire_bytes data = {buf_data(&s->rest), n};
    struct init_stdin in = {.id = s->id, .data = data, .close = n == s->rest.len};
    struct init_session_more more = {.data = data};

    if (s->fed)
        return talk_send(&s->talk, INIT_STDIN, &in);
    return talk_send(&s->talk, INIT_SESSION_MORE, &more);
}

/* As much as the socket takes for now; on_drain continues. */
static void send_rest(struct process_stream *s)
{
    size_t queued = 0;

    while (s->rest.len > 0 && queued <= PROCESS_FEED_HIGH) {
        uint32_t n = s->rest.len < INIT_CHUNK_MAX ? (uint32_t)s->rest.len : INIT_CHUNK_MAX;

        queued = send_piece(s, n);
        buf_consume(&s->rest, n);
    }
    if (s->rest.len == 0)
        job_free_buf(s->g->loop, &s->rest, 0);
}

static void stream_end(struct process_stream *s)
{
    talk_end(&s->talk);
    stream_free(s);
}

static void on_drain(struct talk *t)
{
    struct process_stream *s = CONTAINER_OF(t, struct process_stream, talk);

    if (s->rest.len > 0)
        send_rest(s);
    else if (s->left)
        stream_end(s);
    else if (s->ops->on_drain != NULL)
        s->ops->on_drain(s->arg);
}

static const struct talk_ops talk_ops = {
    .on_msg = on_msg, .on_fail = on_fail, .on_drain = on_drain};

static struct process_stream *stream_new(struct engine *g, const struct process_ops *ops, void *arg)
{
    struct process_stream *s = mem_zeroed(1, sizeof(*s));

    s->g = g;
    s->ops = ops;
    s->arg = arg;
    return s;
}

struct process_stream *process_run(struct ref ref, const struct process_opts *o, bool forget,
                                   const struct process_ops *ops, void *arg)
{
    struct process_stream *s = stream_new(ref.engine, ops, arg);
    struct command c = {0};
    struct err e;
    struct box *b = box_running(ref, &e);

    if (b == NULL || command_build(&c, &b->pub, o, &e) < 0) {
        talk_begin_failed(&s->talk, ref.engine->hub, &talk_ops, &e);
    } else {
        c.start.flags |= INIT_START_OWN | (forget ? INIT_START_FORGET : 0u);
        if (o->term == NULL)
            c.start.ring = (uint32_t)ref.engine->o.config->output;
        if (o->id != NULL)
            strncpy(s->id, o->id, INIT_REF_MAX);
        ref.engine->stats.execs += forget;
        ref.engine->stats.processes += !forget;
        talk_begin(&s->talk, &b->peer, &kind_run, &c.start, PROCESS_DEADLINE_MS, &talk_ops);
    }
    command_free(&c);
    return s;
}

struct process_stream *process_run_own(struct ref ref, const struct process_opts *o, uint32_t ring,
                                       const struct process_ops *ops, void *arg)
{
    struct process_stream *s = stream_new(ref.engine, ops, arg);
    struct command c = {0};
    struct err e;
    struct box *b = box_running(ref, &e);

    if (b == NULL || command_build(&c, &b->pub, o, &e) < 0) {
        talk_begin_failed(&s->talk, ref.engine->hub, &talk_ops, &e);
    } else {
        c.start.flags |= INIT_START_FOLLOW | INIT_START_FORGET;
        c.start.ring = ring;
        talk_begin(&s->talk, &b->peer, &kind_own, &c.start, PROCESS_DEADLINE_MS, &talk_ops);
    }
    command_free(&c);
    return s;
}

struct process_stream *stream_run(struct engine *g, struct talk_peer *p,
                                  const struct init_start *start, const struct process_ops *ops,
                                  void *arg)
{
    struct process_stream *s = stream_new(g, ops, arg);

    talk_begin(&s->talk, p, &kind_run, start, PROCESS_DEADLINE_MS, &talk_ops);
    return s;
}

struct process_stream *stream_session(struct engine *g, struct box *b,
                                      const struct init_session_exec *m, struct buf *rest,
                                      const struct process_ops *ops, void *arg)
{
    struct process_stream *s = stream_new(g, ops, arg);

    g->stats.execs++;
    s->rest = *rest;
    *rest = (struct buf){.max = rest->max};
    if (m->id != NULL && *m->id != '\0')
        session_ref(s->id, m->session, m->id);
    talk_begin(&s->talk, &b->peer, &kind_session, m, PROCESS_DEADLINE_MS, &talk_ops);
    send_rest(s);
    return s;
}

struct process_stream *stream_fail(struct engine *g, const struct err *e,
                                   const struct process_ops *ops, void *arg)
{
    struct process_stream *s = stream_new(g, ops, arg);

    talk_begin_failed(&s->talk, g->hub, &talk_ops, e);
    return s;
}

/* A follower of a silent process hears nothing for as long as it is silent, so
 * there is no deadline for that; looking at existing output has one. */
static struct process_stream *attach(struct ref ref, const struct init_attach *ask, bool may,
                                     const struct process_ops *ops, void *arg)
{
    struct process_stream *s = stream_new(ref.engine, ops, arg);
    bool follow = (ask->flags & INIT_ATTACH_FOLLOW) != 0;
    struct err e;
    struct box *b = box_alive(ref, &e);

    if (b != NULL && !may) {
        err_set(&e, ERR_NOT_FOUND, "no process %.64s", ask->id);
        b = NULL;
    }
    s->started = true;
    s->next = ask->since;
    s->filtered = ask->streams == INIT_STDOUT || ask->streams == INIT_STDERR;
    if (b == NULL)
        talk_begin_failed(&s->talk, ref.engine->hub, &talk_ops, &e);
    else
        talk_begin(&s->talk, &b->peer, follow ? &kind_follow : &kind_look, ask,
                   follow ? 0 : PROCESS_DEADLINE_MS, &talk_ops);
    return s;
}

struct process_stream *process_attach(struct ref ref, const char *id, uint64_t since, bool follow,
                                      unsigned streams, const struct process_ops *ops, void *arg)
{
    struct init_attach ask = {
        .id = id, .since = since, .streams = streams, .flags = follow ? INIT_ATTACH_FOLLOW : 0};

    return attach(ref, &ask, command_is_named(id), ops, arg);
}

struct process_stream *process_take_over(struct ref ref, const char *id, uint64_t since,
                                         const struct process_ops *ops, void *arg)
{
    struct init_attach ask = {
        .id = id, .since = since, .flags = INIT_ATTACH_FOLLOW | INIT_ATTACH_OWN};

    return attach(ref, &ask, command_is_named(id), ops, arg);
}

struct process_stream *process_attach_own(struct ref ref, const char *id, uint64_t since,
                                          bool follow, const struct process_ops *ops, void *arg)
{
    struct init_attach ask = {.id = id, .since = since, .flags = follow ? INIT_ATTACH_FOLLOW : 0};

    return attach(ref, &ask, command_id_is_own(id), ops, arg);
}

struct process_stream *terminal_view(struct ref ref, const char *id,
                                     const struct terminal_from *from,
                                     const struct process_ops *ops, void *arg)
{
    struct process_stream *s = stream_new(ref.engine, ops, arg);
    struct init_view ask = {.id = id,
                            .since = from->since,
                            .flags = from->has_since ? INIT_VIEW_SINCE
                                     : from->now     ? INIT_VIEW_NOW
                                                     : 0u};
    struct err e;
    struct box *b = (from->looks ? box_alive : box_running)(ref, &e);

    if (b != NULL && !command_is_named(id)) {
        err_set(&e, ERR_NOT_FOUND, "no terminal %.64s", id);
        b = NULL;
    }
    s->next = from->since;
    s->exact = from->has_since;
    if (b == NULL) {
        talk_begin_failed(&s->talk, ref.engine->hub, &talk_ops, &e);
        return s;
    }
    strncpy(s->id, id, INIT_REF_MAX);
    talk_begin(&s->talk, &b->peer, &kind_view, &ask, PROCESS_DEADLINE_MS, &talk_ops);
    return s;
}

void terminal_view_resize(struct process_stream *s, unsigned cols, unsigned rows)
{
    struct init_resize m = {.id = s->id, .cols = cols, .rows = rows};

    talk_send(&s->talk, INIT_RESIZE, &m);
}

size_t process_feed(struct process_stream *s, const void *p, size_t n, bool last)
{
    const char *at = p;
    size_t queued = talk_queued(&s->talk);

    while (n > 0 || last) {
        uint32_t len = n < INIT_CHUNK_MAX ? (uint32_t)n : INIT_CHUNK_MAX;
        bool final = last && len == n;
        struct init_stdin m = {.id = s->id, .data = {at, len}, .close = final};

        queued = talk_send(&s->talk, INIT_STDIN, &m);
        at += len;
        n -= len;
        if (final)
            break;
    }
    return queued;
}

void process_pause(struct process_stream *s, bool paused)
{
    talk_pause(&s->talk, paused);
}

void process_feed_whole(struct process_stream *s, struct buf *input)
{
    if (input->len == 0) {
        process_feed(s, NULL, 0, true);
        return;
    }
    s->fed = true;
    s->rest = *input;
    *input = (struct buf){.max = input->max};
    send_rest(s);
}

static void no_exit(void *arg, const struct process_exit *m)
{
    (void)arg;
    (void)m;
}

static void no_fail(void *arg, const struct err *e)
{
    (void)arg;
    (void)e;
}

static const struct process_ops no_ops = {.on_exit = no_exit, .on_fail = no_fail};

/* What was read from the client is the command's: without the rest of its stdin it would wait
 * for that until its time is over. */
static bool has_more_to_get(const struct process_stream *s)
{
    return s->fed && s->talk.line != NULL && s->talk.sent &&
           (s->rest.len > 0 || talk_queued(&s->talk) > 0) && s->g->nleft < LEFT_MAX;
}

void process_close(struct process_stream *s)
{
    if (s == NULL)
        return;
    if (!has_more_to_get(s)) {
        stream_end(s);
        return;
    }
    s->left = true;
    s->g->nleft++;
    s->ops = &no_ops;
    process_pause(s, false);
}
