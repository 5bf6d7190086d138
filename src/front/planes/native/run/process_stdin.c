/* process_stdin.c - writes to the stdin of a process.
 *
 * The body is read only as fast as the process reads: one piece is sent at a time, and meanwhile the
 * client's socket is not read. If init's queue for the process is full, the piece is sent again after
 * STDIN_RETRY_MS. */
#include "base/own.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/run/processes.h"

#define STDIN_PIECE (64u << 10)
#define STDIN_HELD_MAX (4u << 20) /* far above what http hands over before it pauses */
#define STDIN_RETRY_MS 20u

struct stdin_in {
    bool close;
};
static const struct json_field stdin_fields[] = {
    {"close", JSON_FIELD_BOOL, offsetof(struct stdin_in, close), 0, 0, false,
     "Close stdin after these bytes."},
};
static const struct surface_input stdin_input = {SURFACE_INPUT(stdin_fields, struct stdin_in)};

struct stdin_feed {
    struct call *c;
    struct buf held;  /* received, not yet taken by init */
    size_t offered;   /* of it, on its way */
    bool last, close; /* the body is complete; close stdin after it... */
    bool closing;     /* ...with what is on its way */
    bool asked;       /* even no bytes at all are offered once: is it there, does it read? */
    struct loop_timer retry;
};

static void stdin_drop(void *state)
{
    struct stdin_feed *s = state;

    loop_timer_stop(s->c->loop, &s->retry);
    buf_free(&s->held);
}

static void stdin_taken(void *arg, const struct err *e);

static void stdin_next(struct stdin_feed *s)
{
    struct call *c = s->c;

    s->offered = s->held.len < STDIN_PIECE ? s->held.len : STDIN_PIECE;
    s->closing = s->last && s->close && s->offered == s->held.len;
    if (s->offered == 0 && !s->closing && (s->asked || !s->last)) {
        if (s->last)
            call_reply_none(c);
        else
            http_body_pause(c->r, false);
        return;
    }
    s->asked = true;
    call_expect(c, &call_pending, NULL);
    process_stdin(c->ref, call_param(c, 1), buf_data(&s->held), s->offered, s->closing, stdin_taken,
                  s);
}

static void stdin_again(struct loop_timer *t)
{
    struct stdin_feed *s = CONTAINER_OF(t, struct stdin_feed, retry);

    if (s->c->r != NULL)
        stdin_next(s);
}

static void stdin_taken(void *arg, const struct err *e)
{
    struct stdin_feed *s = arg;

    if (!call_told(s->c))
        return;
    if (e != NULL && e->kind == ERR_LIMIT &&
        loop_timer_set(s->c->loop, &s->retry, STDIN_RETRY_MS, stdin_again) == 0)
        return;
    if (e != NULL) {
        call_fail(s->c, e);
        return;
    }
    buf_consume(&s->held, s->offered);
    s->close = s->close && !s->closing;
    stdin_next(s);
}

static void stdin_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct stdin_feed *s = arg;
    struct err e;

    if (buf_add(&s->held, p, n) < 0) {
        err_set(&e, ERR_INTERNAL, "out of memory for stdin");
        call_fail(s->c, &e);
        return;
    }
    http_body_pause(r, true);
    if (s->c->source == NULL && s->retry.slot == 0)
        stdin_next(s);
}

static void stdin_end(struct http_req *r, void *arg)
{
    struct stdin_feed *s = arg;

    (void)r;
    s->last = true;
    if (s->c->source == NULL && s->retry.slot == 0)
        stdin_next(s);
}

static void process_stdin_(struct call *c, const void *query)
{
    const struct stdin_in *in = query;
    struct stdin_feed *s = call_state(c, sizeof(*s), stdin_drop);

    s->c = c;
    s->close = in->close;
    buf_init(&s->held, STDIN_HELD_MAX);
    http_body_stream(c->r, stdin_data, stdin_end, s);
}

static void process_stdin_close(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_stdin(c->ref, call_param(c, 1), NULL, 0, true, call_told_done, c);
}

/* clang-format off */
const struct surface_row surface_process_stdin[] = {
    {{"POST", PROCESSES "/{pid}/stdin"}, SCOPE_RUN, process_stdin_, "writeProcessStdin",
     "Writes the body, of any type and length, to stdin, as fast as the process reads.",
     .query = &stdin_input, .status = 204, .flags = SURFACE_RAW_BODY},
    {{"POST", PROCESSES "/{pid}/stdin/close"}, SCOPE_RUN, process_stdin_close, "closeProcessStdin",
     "Closes stdin; the process reads end of file.",
     .status = 204},
    {.op = NULL},
};
/* clang-format on */
