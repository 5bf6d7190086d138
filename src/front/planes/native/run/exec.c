/* exec.c - runs one command; no record of it is kept.
 *
 * Accept chooses how the output is sent: as JSON at the end; as events while it runs; or as raw bytes
 * (stdout and stderr as they come, without the exit code). In all three the command waits for a
 * client that does not read, and continues if the client disconnects. */
#include "front/planes/native/run/exec.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/collect.h"
#include "front/plane/output.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "loop/job.h"

/* ---- answers ---- */

struct exec_view {
    struct exit_view exit;
    struct shape_bytes out, err;
    bool out_truncated, err_truncated;
    uint64_t out_dropped, err_dropped, out_cut_at, err_cut_at;
    uint64_t duration_ms;
    const char *id, *session; /* of a session's command */
};

#define EXEC_MEMORY 2u /* bytes held per byte of output: the output, and its JSON */

struct exec {
    struct call *c;
    enum call_accept how;
    struct collect kept[OUTPUT_STREAMS]; /* CALL_JSON */
    struct output sent;                  /* CALL_SSE */
    bool of_session;
    uint64_t started_ms;
    char id[PROCESS_ID_MAX + 1]; /* of a session's command */
    uint64_t input;              /* bytes that the call held before there was output */
    struct exec_view view;       /* CALL_JSON: the answer */
};

/* clang-format off */
#define RESULT_FIELDS \
    {"exit_code", SHAPE_U64, offsetof(struct exec_view, exit.code), \
     "Exit code; 128 + the signal number after a signal, 124 after a timeout."}, \
    {"signal", SHAPE_STR, offsetof(struct exec_view, exit.signal), "Signal that ended it, for example SIGTERM.", SHAPE_NULLABLE}, \
    {"timed_out", SHAPE_BOOL, offsetof(struct exec_view, exit.timed_out), "It was killed because its time limit was exceeded."}, \
    {"core", SHAPE_BOOL, offsetof(struct exec_view, exit.core), "It dumped a core."}, \
    {"killed", SHAPE_BOOL, offsetof(struct exec_view, exit.killed), "It was killed by request."}, \
    {"oom", SHAPE_BOOL, offsetof(struct exec_view, exit.oom), "It was killed because the sandbox ran out of memory."}, \
    {"oom_meanwhile", SHAPE_BOOL, offsetof(struct exec_view, exit.oom_meanwhile), "It failed, and another process of the sandbox was killed meanwhile because the sandbox ran out of memory.", SHAPE_OMITTED}, \
    {"duration_ms", SHAPE_U64, offsetof(struct exec_view, duration_ms), "Duration in milliseconds."}, \
    {"cpu_ms", SHAPE_U64, offsetof(struct exec_view, exit.cpu_ms), "CPU time, user and system, in milliseconds."}, \
    {"max_rss_kb", SHAPE_U64, offsetof(struct exec_view, exit.max_rss_kb), "Peak memory in KiB."}

#define OUTPUT_FIELDS \
    {"stdout", SHAPE_BYTES, offsetof(struct exec_view, out), "Output on stdout; base64 if it is not UTF-8."}, \
    {"stderr", SHAPE_BYTES, offsetof(struct exec_view, err), "Output on stderr; base64 if it is not UTF-8."}, \
    {"stdout_truncated", SHAPE_BOOL, offsetof(struct exec_view, out_truncated), "The output was longer than max_output; its middle was dropped."}, \
    {"stderr_truncated", SHAPE_BOOL, offsetof(struct exec_view, err_truncated), "The output was longer than max_output; its middle was dropped."}, \
    {"stdout_dropped", SHAPE_U64, offsetof(struct exec_view, out_dropped), "Number of bytes dropped.", SHAPE_OMITTED}, \
    {"stderr_dropped", SHAPE_U64, offsetof(struct exec_view, err_dropped), "Number of bytes dropped.", SHAPE_OMITTED}, \
    {"stdout_dropped_at", SHAPE_U64, offsetof(struct exec_view, out_cut_at), "Offset in `stdout` at which bytes were dropped.", SHAPE_OMITTED}, \
    {"stderr_dropped_at", SHAPE_U64, offsetof(struct exec_view, err_cut_at), "Offset in `stderr` at which bytes were dropped.", SHAPE_OMITTED}
static const struct shape_field result_fields[] = {RESULT_FIELDS, OUTPUT_FIELDS};
static SHAPE(result_shape, "ExecResult", "Result of a command.", result_fields);

#define SESSION_FIELDS \
    {"id", SHAPE_STR, offsetof(struct exec_view, id), "Id of the command within the session."}, \
    {"interrupted", SHAPE_BOOL, offsetof(struct exec_view, exit.interrupted), "It was interrupted; the exit code is 130."}, \
    {"session", SHAPE_STR, offsetof(struct exec_view, session), "running, or ended: the command ended the session."}
static const struct shape_field session_fields[] = {SESSION_FIELDS, RESULT_FIELDS, OUTPUT_FIELDS};
SHAPE(exec_session_shape, "SessionResult", "Result of a command of a session.", session_fields);
static const struct shape_field session_exit_fields[] = {SESSION_FIELDS, RESULT_FIELDS};
SHAPE(exec_session_exit_shape, "SessionExit", "The exit event of a command of a session.", session_exit_fields);

static const struct shape_field exit_fields[] = {RESULT_FIELDS};
SHAPE(exec_exit_shape, "ExecExit", "The exit event.", exit_fields);

struct start_view {
    const char *id;
    uint64_t pid, started_ms;
};
static const struct shape_field start_fields[] = {
    {"id", SHAPE_STR, offsetof(struct start_view, id), "Id of the command while it runs."},
    {"pid", SHAPE_U64, offsetof(struct start_view, pid), "Pid inside the sandbox."},
    {"started_at", SHAPE_TIME, offsetof(struct start_view, started_ms), "Time of the start."},
};
SHAPE(exec_start_shape, "ExecStart", "The start event.", start_fields);
/* clang-format on */

/* In a thread if there is much. */
static void fill_output(void *arg)
{
    struct exec *x = arg;
    struct exec_view *v = &x->view;
    struct collect *out = &x->kept[0], *err = &x->kept[1];

    v->out_dropped = collect_end(out);
    v->err_dropped = collect_end(err);
    v->out = shape_list(&out->head);
    v->err = shape_list(&err->head);
    v->out_truncated = v->out_dropped > 0;
    v->err_truncated = v->err_dropped > 0;
    v->out_cut_at = v->out_truncated ? out->cut_at : 0;
    v->err_cut_at = v->err_truncated ? err->cut_at : 0;
}

/* ---- what the engine tells ---- */

static void on_started(void *arg, const struct process_started *m)
{
    struct exec *x = arg;
    struct start_view v = {m->id, m->pid, m->started_ms};

    if (x->of_session) {
        str_fmt(x->id, sizeof(x->id), "%.*s", (int)PROCESS_ID_MAX, session_ref_command(m->id));
        v.id = x->id;
    }
    x->started_ms = m->started_ms;
    if (x->how == CALL_JSON)
        return;
    call_begin(x->c, x->how);
    if (x->how == CALL_SSE)
        call_event_shape(x->c, NULL, "start", &exec_start_shape, &v);
}

/* The command has run: without memory for its output the middle of that is dropped, as beyond
 * max_output. */
static void keep(struct exec *x, struct collect *k, const struct process_output *m)
{
    const struct collect *other = &x->kept[k == x->kept];
    struct err e;

    if (call_hold(x->c,
                  x->input + EXEC_MEMORY *
                                 (collect_need(k, m->data.len) + other->head.len + other->tail.len),
                  &e) < 0)
        collect_stop(k);
    if (collect_add(k, m->data.p, m->data.len) < 0) {
        err_set(&e, ERR_UNAVAILABLE, "no memory for the output");
        call_fail(x->c, &e);
    }
}

static void on_output(void *arg, const struct process_output *m)
{
    struct exec *x = arg;

    if (x->how == CALL_SSE) {
        call_output(x->c, &x->sent, m);
    } else if (x->how == CALL_RAW) {
        call_write(x->c, m->data.p, m->data.len);
    } else {
        keep(x, &x->kept[m->stream == PROCESS_STDERR], m);
    }
}

static void on_ended(void *arg, const struct process_exit *m)
{
    struct exec *x = arg;
    struct exec_view *v = &x->view;
    struct err e;

    if (!call_told(x->c))
        return;
    if ((m->flags & PROCESS_EXIT_NEVER_RAN) != 0) {
        err_set(&e, ERR_GONE, "the session ended before this command started");
        call_fail(x->c, &e);
        return;
    }
    exit_view_of(&v->exit, m);
    v->id = x->id;
    v->session = (m->flags & PROCESS_EXIT_SESSION_ENDED) != 0 ? "ended" : "running";
    v->duration_ms = m->ended_ms > x->started_ms ? m->ended_ms - x->started_ms : 0;
    if (x->how == CALL_JSON) {
        call_reply_built(x->c, x->of_session ? &exec_session_shape : &result_shape, v, fill_output,
                         x, x->kept[0].head.len + x->kept[1].head.len);
        return;
    }
    if (x->how == CALL_SSE) {
        call_output_end(x->c, &x->sent);
        call_event_shape(x->c, NULL, "exit",
                         x->of_session ? &exec_session_exit_shape : &exec_exit_shape, v);
    }
    call_end(x->c);
}

static void on_fail(void *arg, const struct err *e)
{
    struct exec *x = arg;

    if (call_told(x->c))
        call_fail(x->c, e);
}

static const struct process_ops exec_ops = {
    .on_started = on_started,
    .on_output = on_output,
    .on_exit = on_ended,
    .on_fail = on_fail,
};

/* ---- the request ---- */

static void exec_drop(void *state)
{
    struct exec *x = state;
    uint32_t share = job_share(x->c->ref.key);

    for (size_t i = 0; i < OUTPUT_STREAMS; i++) {
        job_free_buf(x->c->loop, &x->kept[i].head, share);
        job_free_buf(x->c->loop, &x->kept[i].tail, share);
    }
}

void exec_start(struct call *c, const struct exec_opts *opts)
{
    struct exec *x = call_state(c, sizeof(*x), exec_drop);

    x->c = c;
    x->how = opts->how;
    x->input = c->held;
    x->of_session = opts->session != NULL;
    for (size_t i = 0; i < OUTPUT_STREAMS; i++)
        collect_init(&x->kept[i], opts->max_output);
    if (opts->session != NULL) {
        call_expect(c, &call_stream, session_run(c->ref, opts->session, &exec_ops, x));
        return;
    }
    call_expect(c, &call_stream, process_run(c->ref, opts->o, opts->forget, &exec_ops, x));
    if (opts->input != NULL)
        process_feed_whole(c->handle, opts->input);
}

static void exec_run(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    const struct command *in = body;
    struct exec_opts opts = {.o = &cmd.o, .forget = true, .how = call_accept(c)};
    struct err e;

    if (command_decode(in, &cmd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    opts.max_output = (size_t)in->max_output;
    if (in->input != NULL || in->input_base64 != NULL)
        opts.input = &c->unfolded;
    cmd.o.stdin_open = opts.input != NULL;
    exec_start(c, &opts);
}

/* clang-format off */
const struct surface_row surface_exec[] = {
    {{"POST", "/v1/sandboxes/{id}/exec"}, SCOPE_RUN, exec_run, "exec",
     "Runs a command and waits for its exit. A non-zero exit code is a result, not an error.",
     .body = &command_exec, .status = 200, .answers = {&result_shape},
     .events = EXEC_EVENTS,
     .event_shapes = {&exec_start_shape, &exec_exit_shape},
     .flags = SURFACE_RAW_ANSWER},
    {.op = NULL},
};
/* clang-format on */
