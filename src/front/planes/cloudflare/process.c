/* process.c - processes as the next version of the API has them: started without a
 * shell, found again by id, listed, signalled. */
#include "front/planes/cloudflare/process.h"

#include <stdlib.h>

#include "base/own.h"
#include "front/plane/exit.h"
#include "front/plane/maps.h"
#include "front/planes/cloudflare/internal.h"

/* ---- lists, and the process or terminal that a path names ---- */

#define LIST_BYTES_MAX (4u << 20)

/* ---- all ---- */

struct listing {
    struct call *c;
    struct buf rows;
    void (*add)(struct buf *rows, const struct process_info *p);
};

static void listing_drop(void *state)
{
    buf_free(&((struct listing *)state)->rows);
}

static void listed(void *arg, const struct process_info *p)
{
    struct listing *l = arg;

    if (l->c->r != NULL)
        l->add(&l->rows, p);
}

static void list_done(void *arg, const struct err *e)
{
    struct listing *l = arg;

    if (call_told(l->c))
        cloudflare_reply_list(l->c, &l->rows, e);
}

static void list_go(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_list(c->ref, listed, list_done, c->state);
}

void cloudflare_list(struct call *c, const void *in,
                     void (*add)(struct buf *rows, const struct process_info *p))
{
    struct listing *l = call_state(c, sizeof(*l), listing_drop);

    l->c = c;
    l->add = add;
    buf_init(&l->rows, LIST_BYTES_MAX);
    if (*c->ref.id == '\0')
        cloudflare_reply_list(c, &l->rows, NULL);
    else
        cloudflare_enter(c, in, list_go);
}

/* ---- one terminal ---- */

struct search {
    struct call *c;
    void (*then)(struct call *c, const struct process_info *p);
};

/* A process without a screen is none. */
static void found(void *arg, const struct process_info *p, const struct err *e)
{
    struct search *s = arg;
    struct call *c = s->c;
    struct err none;

    if (!call_told(c))
        return;
    if (p != NULL && p->cols != 0) {
        s->then(c, p);
        return;
    }
    err_set(&none, ERR_NOT_FOUND, "Terminal not found");
    call_fail(c, p != NULL || e->kind == ERR_NOT_FOUND ? &none : e);
}

static void find_go(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, call_param(c, 1), found, c->state);
}

void cloudflare_find_terminal(struct call *c, const void *in,
                              void (*then)(struct call *c, const struct process_info *p))
{
    struct search *s;
    struct err e;

    if (cloudflare_check_session(call_param(c, 1), &e) < 0) {
        err_set(&e, ERR_INVALID, "Invalid terminal ID format");
        call_fail(c, &e);
        return;
    }
    s = call_state(c, sizeof(*s), NULL);
    *s = (struct search){c, then};
    cloudflare_look(c, in, find_go);
}

#define SIGNAL_DEFAULT 15u
#define SIGNAL_MAX 64u

/* ---- answers ---- */

struct process_view {
    const char *id, *cwd, *state;
    uint64_t pid, started_ms, ended_ms;
    struct shape_bytes argv;
    const struct ended_view *exit;
};

/* clang-format off */
static const struct shape_field ended_fields[] = {
    {"code", SHAPE_U64, offsetof(struct ended_view, code), "Exit code; 128 + the signal number after a signal, 124 after a timeout."},
    {"signal", SHAPE_U64, offsetof(struct ended_view, signal), "Signal that ended it.", SHAPE_OMITTED},
    {"timedOut", SHAPE_BOOL, offsetof(struct ended_view, timed_out), "It was killed because its time limit was exceeded."},
};
SHAPE(cloudflare_ended_shape, "CloudflareProcessExit", "How a process exited.", ended_fields);

static const struct shape_field process_fields[] = {
    {"id", SHAPE_STR, offsetof(struct process_view, id), "Id."},
    {"pid", SHAPE_U64, offsetof(struct process_view, pid), "Pid inside the sandbox."},
    {"command", SHAPE_STRV, offsetof(struct process_view, argv), "Program and arguments; truncated if long."},
    {"cwd", SHAPE_STR, offsetof(struct process_view, cwd), "Working directory at the start."},
    {"startedAt", SHAPE_TIME, offsetof(struct process_view, started_ms), "Time of the start."},
    {"state", SHAPE_STR, offsetof(struct process_view, state), "running or exited."},
    {"exit", SHAPE_OBJECT, offsetof(struct process_view, exit), "How it exited.", SHAPE_OMITTED, &cloudflare_ended_shape},
    {"endedAt", SHAPE_TIME, offsetof(struct process_view, ended_ms), "Time of the exit.", SHAPE_OMITTED},
};
static SHAPE(process_shape, "CloudflareProcess", "A process.", process_fields);
/* clang-format on */

void cloudflare_ended_of(struct ended_view *v, const struct process_exit *m)
{
    struct exit_view x;

    exit_view_of(&x, m);
    *v = (struct ended_view){x.code, m->signal, x.timed_out};
}

struct process_exit cloudflare_exit_of(const struct process_info *p)
{
    return (struct process_exit){.code = p->code, .signal = p->signal, .flags = p->flags};
}

struct process_full {
    struct process_view p;
    struct ended_view exit;
};

static void view_of(struct process_full *v, const struct process_info *p)
{
    struct process_exit end = cloudflare_exit_of(p);
    bool ended = p->state == PROCESS_EXITED;

    cloudflare_ended_of(&v->exit, &end);
    v->p = (struct process_view){
        .id = p->id,
        .cwd = p->cwd,
        .state = ended ? "exited" : "running",
        .pid = p->pid,
        .started_ms = p->started_ms,
        .ended_ms = ended ? p->ended_ms : 0,
        .argv = {p->argv.p, p->argv.len},
        .exit = ended ? &v->exit : NULL,
    };
}

static void process_told(void *arg, const struct process_info *p, const struct err *e)
{
    struct call *c = arg;
    struct process_full v;

    if (!call_got(c, e))
        return;
    view_of(&v, p);
    call_reply_shape(c, &process_shape, &v.p);
}

/* ---- start ---- */

struct start_in {
    json_t *argv, *env;
    const char *cwd;
    double timeout;
};

static void started(void *arg, const struct process_started *m, const struct err *e)
{
    struct call *c = arg;

    if (!call_got(c, e))
        return;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, m->id, process_told, c);
}

static void start_go(struct call *c, const void *body)
{
    autocommand struct cloudflare_command cmd = {0};
    const struct start_in *in = body;
    struct err e;

    if (cloudflare_command(&cmd, in->argv, in->env, in->cwd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    cmd.o.timeout_ms = (uint64_t)in->timeout;
    call_expect(c, &call_pending, NULL);
    process_start(c->ref, &cmd.o, started, c);
}

static void process_run_(struct call *c, const void *body)
{
    autocommand struct cloudflare_command cmd = {0};
    const struct start_in *in = body;
    struct err e;

    if (cloudflare_command(&cmd, in->argv, in->env, in->cwd, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, start_go);
}

/* clang-format off */
static const struct json_field start_fields[] = {
    {"argv", JSON_FIELD_STRLIST, offsetof(struct start_in, argv), 1, CLOUDFLARE_ARGS_MAX, true,
     "Program and arguments, run without a shell."},
    {"cwd", JSON_FIELD_STR, offsetof(struct start_in, cwd), 1, ENGINE_PATH_MAX, false,
     "Working directory, below /workspace. Default: /workspace."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct start_in, env), 0, MAPS_ENV_MAX, false,
     "Environment variables; they override those of the sandbox."},
    {"timeout", JSON_FIELD_DOUBLE, offsetof(struct start_in, timeout), 1, CLOUDFLARE_TIMEOUT_MAX, false,
     "Time limit in milliseconds; then the process and all its descendants are killed."},
};
/* clang-format on */
static const struct surface_input start_input = {
    SURFACE_INPUT(start_fields, struct start_in),
    .body_max = CLOUDFLARE_COMMAND_MAX,
};

/* ---- list and get ---- */

static void add_process(struct buf *rows, const struct process_info *p)
{
    struct process_full v;

    if (p->cols != 0) /* a terminal is listed as one */
        return;
    view_of(&v, p);
    shape_append(rows, &process_shape, &v.p);
}

static void process_list_(struct call *c, const void *in)
{
    cloudflare_list(c, in, add_process);
}

static void get_go(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, call_param(c, 1), process_told, c);
}

static void process_get_(struct call *c, const void *in)
{
    cloudflare_look(c, in, get_go);
}

/* ---- kill: a signal to the whole tree; nothing follows by itself ---- */

struct kill_in {
    uint64_t signal;
};

static void killed(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (e == NULL || e->kind == ERR_GONE)
        call_reply_none(c);
    else
        call_fail(c, e);
}

static void kill_go(struct call *c, const void *body)
{
    const struct kill_in *in = body;

    call_expect(c, &call_pending, NULL);
    process_signal(c->ref, call_param(c, 1), (int)in->signal, true, killed, c);
}

static void process_kill_(struct call *c, const void *in)
{
    cloudflare_look(c, in, kill_go);
}

static void kill_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct kill_in *)in)->signal = SIGNAL_DEFAULT;
}

static const struct json_field kill_fields[] = {
    {"signal", JSON_FIELD_U64, offsetof(struct kill_in, signal), 1, SIGNAL_MAX, false,
     "Signal number. Default: 15."},
};
static const struct surface_input kill_input = {
    SURFACE_INPUT(kill_fields, struct kill_in),
    .defaults = kill_defaults,
};

/* clang-format off */
const struct surface_row cloudflare_process[] = {
    {{"POST", CLOUDFLARE_PROCESSES}, SCOPE_RUN, process_run_, "cloudflareStartProcess",
     "Starts a process. It keeps running without viewers.",
     .body = &start_input, .status = 200, .answers = {&process_shape}, .failure = "process_error"},
    {{"GET", CLOUDFLARE_PROCESSES}, SCOPE_READ, process_list_, "cloudflareListProcesses",
     "Lists running processes, and exited ones that are still kept (CloudflareProcess).",
     .status = 200, .flags = SURFACE_OTHER, .failure = "process_error"},
    {{"GET", CLOUDFLARE_PROCESSES "/{pid}"}, SCOPE_READ, process_get_, "cloudflareGetProcess",
     "Shows a process.",
     .status = 200, .answers = {&process_shape}, .failure = "process_error", .missing = "not_found"},
    {{"POST", CLOUDFLARE_PROCESSES "/{pid}/kill"}, SCOPE_RUN, process_kill_, "cloudflareKillProcess",
     "Sends a signal to a process and all its descendants.",
     .body = &kill_input, .status = 204, .failure = "process_error", .missing = "not_found"},
    {.op = NULL},
};
/* clang-format on */
