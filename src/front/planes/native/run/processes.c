/* processes.c - commands that run without a client: start, list, show, signal, kill, and wait
 * for them. Their output is in logs.c, bytes for them in process_stdin.c. */
#include <assert.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/run/exec.h"
#include "front/planes/native/run/processes.h"

#define LIST_BYTES_MAX (64u << 20)

/* ---- answers ---- */

/* clang-format off */
static const struct shape_field extent_fields[] = {
    {"first", SHAPE_U64, offsetof(struct extent_view, first), "Position of the oldest byte kept."},
    {"end", SHAPE_U64, offsetof(struct extent_view, end), "Position after the newest byte."},
};
SHAPE(extent_shape, "OutputExtent", "The part of the output that is kept. Positions count the bytes of stdout and stderr together.", extent_fields);

static const struct shape_field process_fields[] = {
    {"id", SHAPE_STR, offsetof(struct process_view, id), "Id."},
    {"pid", SHAPE_U64, offsetof(struct process_view, pid), "Pid inside the sandbox."},
    {"state", SHAPE_STR, offsetof(struct process_view, state), "running or exited."},
    {"argv", SHAPE_STRV, offsetof(struct process_view, argv), "Program and arguments; truncated if long."},
    {"cwd", SHAPE_STR, offsetof(struct process_view, cwd), "Working directory at the start.", SHAPE_NULLABLE},
    {"user", SHAPE_STR, offsetof(struct process_view, user), "User it runs as.", SHAPE_NULLABLE},
    {"started_at", SHAPE_TIME, offsetof(struct process_view, started_ms), "Time of the start."},
    {"ended_at", SHAPE_TIME, offsetof(struct process_view, ended_ms), "Time of the exit; null while it runs.", SHAPE_NULLABLE},
    {"stdin_open", SHAPE_BOOL, offsetof(struct process_view, stdin_open), "stdin is open for writes."},
    {"terminal", SHAPE_BOOL, offsetof(struct process_view, terminal), "It runs on a terminal."},
    {"exit", SHAPE_OBJECT, offsetof(struct process_view, exit), "How it exited; null while it runs.", SHAPE_NULLABLE, &exit_shape},
    {"output", SHAPE_OBJECT, offsetof(struct process_view, output), "The part of its output that is kept.", SHAPE_NULLABLE, &extent_shape},
};
static SHAPE(process_shape, "Process", "A process.", process_fields);

static const struct shape_field list_fields[] = {
    {"processes", SHAPE_LIST, offsetof(struct listing_view, rows), "Running and exited ones.", SHAPE_ALWAYS, &process_shape},
    LISTING_NEXT,
};
static SHAPE(list_shape, "ProcessList", "The processes of a sandbox.", list_fields);
/* clang-format on */

void process_view_of(void *view, const void *process_info)
{
    const struct process_info *p = process_info;
    bool ended = p->state == PROCESS_EXITED;
    struct process_view *v = view;

    *v = (struct process_view){
        .id = p->id,
        .state = ended ? "exited" : "running",
        .cwd = p->cwd,
        .user = p->user,
        .argv = {p->argv.p, p->argv.len},
        .pid = p->pid,
        .started_ms = p->started_ms,
        .ended_ms = ended ? p->ended_ms : 0,
        .timeout_ms = p->timeout_ms,
        .stdin_open = p->stdin_open,
        .terminal = p->cols != 0,
        .cols = p->cols,
        .rows = p->rows,
        .viewers = p->viewers,
        .exit = ended ? &v->exit_of : NULL,
        .output = &v->output_of,
        .output_of = {p->output_first, p->output_end},
    };
    exit_view_of(&v->exit_of, &(struct process_exit){.code = p->code,
                                                     .signal = p->signal,
                                                     .flags = p->flags,
                                                     .ended_ms = p->ended_ms,
                                                     .cpu_us = p->cpu_us,
                                                     .maxrss_kb = p->maxrss_kb});
}

static_assert(sizeof(struct process_view) <= RESOURCE_VIEW_MAX, "");
static const struct resource processes = {&process_shape, &list_shape, LIST_BYTES_MAX,
                                          process_view_of};

static void got(void *arg, const struct process_info *p, const struct err *e)
{
    resource_reply(arg, &processes, p, e);
}

void process_ended(void *arg, const struct process_exit *m, const struct err *e)
{
    struct call *c = arg;
    struct exit_view v;

    if (!call_got(c, e))
        return;
    exit_view_of(&v, m);
    call_reply_shape(c, &exit_shape, &v);
}

/* ---- start ---- */

struct launch {
    struct call *c;
    const struct resource *r;
    char id[PROCESS_ID_MAX + 1];
    uint64_t pid, started_ms;
    int status;
};

/* The process runs even if it could not be looked up: an error now would make the client
 * believe otherwise. */
static void launch_seen(void *arg, const struct process_info *p, const struct err *e)
{
    struct launch *s = arg;
    struct process_info least = {.id = s->id, .pid = s->pid, .started_ms = s->started_ms};
    struct process_view v;

    (void)e;
    if (!call_told(s->c))
        return;
    process_view_of(&v, p != NULL ? p : &least);
    v.output = p != NULL ? v.output : NULL;
    call_reply_shape_as(s->c, s->status, s->r->shape, &v);
}

static void launched(void *arg, const struct process_started *m, const struct err *e)
{
    struct launch *s = arg;
    struct call *c = s->c;

    if (!call_got(c, e))
        return;
    str_fmt(s->id, sizeof(s->id), "%.*s", (int)PROCESS_ID_MAX, m->id);
    s->pid = m->pid;
    s->started_ms = m->started_ms;
    s->status = m->existed ? 200 : 201;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, s->id, launch_seen, s);
}

void process_launch(struct call *c, const struct process_opts *o, const struct resource *r)
{
    struct launch *s = call_state(c, sizeof(*s), NULL);

    s->c = c;
    s->r = r;
    call_expect(c, &call_pending, NULL);
    process_start(c->ref, o, launched, s);
}

static void process_start_(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    struct err e;

    if (command_decode(body, &cmd, &e) < 0)
        call_fail(c, &e);
    else if (call_accept(c) == CALL_SSE)
        exec_start(c, &(struct exec_opts){.o = &cmd.o, .how = CALL_SSE});
    else
        process_launch(c, &cmd.o, &processes);
}

/* ---- list and get ---- */

static void listed(void *arg, const struct process_info *p)
{
    listing_add(arg, p->id, p->started_ms, p);
}

static void process_list_(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &processes, in);

    if (l != NULL)
        process_list(c->ref, listed, listing_done, l);
}

static void process_get_(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, call_param(c, 1), got, c);
}

/* ---- signal and kill ---- */

struct signal_in {
    json_t *signal;
    bool tree;
};
static const struct json_field signal_fields[] = {
    {"signal", JSON_FIELD_ANY, offsetof(struct signal_in, signal), 0, 0, true,
     "Signal, for example \"TERM\", \"SIGTERM\" or 15."},
    {"tree", JSON_FIELD_BOOL, offsetof(struct signal_in, tree), 0, 0, false,
     "Send it to all descendants too."},
};
static const struct surface_input signal_input = {SURFACE_INPUT(signal_fields, struct signal_in)};

static void process_signal_(struct call *c, const void *body)
{
    const struct signal_in *in = body;
    struct err e;
    int signo;

    if (signal_from(in->signal, &signo, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    process_signal(c->ref, call_param(c, 1), signo, in->tree, call_told_done, c);
}

struct kill_in {
    uint64_t grace_ms;
};
static const struct json_field kill_fields[] = {
    {"grace_ms", JSON_FIELD_U64, offsetof(struct kill_in, grace_ms), 0, GRACE_MAX_MS, false,
     "Milliseconds between SIGTERM and SIGKILL. Default: 5000."},
};

static void kill_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct kill_in *)in)->grace_ms = GRACE_DEFAULT_MS;
}

static const struct surface_input kill_input = {SURFACE_INPUT(kill_fields, struct kill_in),
                                                .defaults = kill_defaults};

static void process_kill_(struct call *c, const void *body)
{
    const struct kill_in *in = body;

    call_expect(c, &call_wait,
                process_kill(c->ref, call_param(c, 1), in->grace_ms, process_ended, c));
}

/* ---- wait: until it ends, a port answers or a text is printed ---- */

/* clang-format off */
struct value_view {
    uint64_t value;
};
static const struct shape_field port_fields[] = {
    {"port", SHAPE_U64, offsetof(struct value_view, value), "The port."},
};
static SHAPE(port_shape, "PortOpen", "A server listens on the port.", port_fields);
static const struct shape_field position_fields[] = {
    {"position", SHAPE_U64, offsetof(struct value_view, value), "Position after the text in the output."},
};
static SHAPE(position_shape, "LogFound", "The text was printed.", position_fields);
/* clang-format on */

struct wait_in {
    const char *what, *text, *stream;
    uint64_t port, since, timeout_ms;
    json_t *http;
};

struct wait_http {
    const char *path, *status;
};

/* clang-format off */
static const struct json_field wait_fields[] = {
    {"for", JSON_FIELD_STR, offsetof(struct wait_in, what), 0, 16, false,
     "exit, port or log. Default: port if `port` is given, log if `text` is given, else exit."},
    {"port", JSON_FIELD_U64, offsetof(struct wait_in, port), 1, 65535, false,
     "With for: port: TCP port to wait for inside the sandbox."},
    {"http", JSON_FIELD_ANY, offsetof(struct wait_in, http), 0, 0, false,
     "With for: port: wait until a GET request to the port is answered as described."},
    {"text", JSON_FIELD_STR, offsetof(struct wait_in, text), 1, PROCESS_TEXT_MAX, false,
     "With for: log: text to wait for."},
    {"since", JSON_FIELD_U64, offsetof(struct wait_in, since), 0, 0, false,
     "With for: log: position to search from. Default: the beginning."},
    {"stream", JSON_FIELD_STR, offsetof(struct wait_in, stream), 0, 16, false,
     "With for: log: stdout, stderr or both (default)."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct wait_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false,
     "Time limit in milliseconds (then 408). Default: 0, no limit."},
};
/* clang-format on */
static const struct json_field http_fields[] = {
    {"path", JSON_FIELD_STR, offsetof(struct wait_http, path), 1, ENGINE_PATH_MAX, false,
     "Path to request. Default: /."},
    {"status", JSON_FIELD_STR, offsetof(struct wait_http, status), 1, 16, false,
     "Expected status or range of statuses, for example 204. Default: 200-399."},
};
static const struct surface_nested wait_nested[] = {{"http", http_fields, ARRAY_LEN(http_fields)},
                                                    {0}};
static const struct surface_input wait_input = {SURFACE_INPUT(wait_fields, struct wait_in),
                                                .nested = wait_nested};

static void waited(struct call *c, const struct shape *s, uint64_t value, const struct err *e)
{
    if (call_got(c, e))
        call_reply_shape(c, s, &(struct value_view){value});
}

/* The engine tells of an open port; which one is what was asked for. */
struct port_wait {
    struct call *c;
    uint64_t port;
};

static void port_open(void *arg, uint64_t value, const struct err *e)
{
    struct port_wait *w = arg;

    (void)value;
    waited(w->c, &port_shape, w->port, e);
}

static void log_found(void *arg, uint64_t value, const struct err *e)
{
    waited(arg, &position_shape, value, e);
}

static int wait_exit(struct call *c, const struct wait_in *in, struct err *e)
{
    (void)e;
    call_expect(c, &call_wait,
                process_wait(c->ref, call_param(c, 1), in->timeout_ms, process_ended, c));
    return 0;
}

/* "204" or "200-399", three digits each. */
static int read_statuses(const char *text, struct process_http *h, struct err *e)
{
    size_t n = strlen(text);
    char low[8] = "", high[8] = "";
    uint64_t min, max;

    if (n == 3 || (n == 7 && text[3] == '-')) {
        memcpy(low, text, 3);
        memcpy(high, n == 3 ? text : text + 4, 3);
    }
    if (str_u64(low, 999, &min) < 0 || str_u64(high, 999, &max) < 0 || min < 100 || max < min)
        return err_set(e, ERR_INVALID, "http: status: expected 204 or 200-399");
    h->status_min = (unsigned)min;
    h->status_max = (unsigned)max;
    return 0;
}

static int decode_http(json_t *http, struct process_http *ret, struct err *e)
{
    struct wait_http in = {.path = "/", .status = "200-399"};

    if (json_decode(http, http_fields, ARRAY_LEN(http_fields), &in, e) < 0)
        return err_wrap(e, "http");
    if (in.path[0] != '/')
        return err_set(e, ERR_INVALID, "http: path: must begin with /");
    for (const char *p = in.path; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '#')
            return err_set(e, ERR_INVALID,
                           "http: path: spaces and other special characters must be %%-encoded");
    ret->path = in.path;
    return read_statuses(in.status, ret, e);
}

static int wait_port(struct call *c, const struct wait_in *in, struct err *e)
{
    struct process_http http;
    struct port_wait *w;

    if (in->http != NULL && decode_http(in->http, &http, e) < 0)
        return -1;
    if (in->port == 0)
        return err_set(e, ERR_INVALID, "port: required with for: port");
    w = call_state(c, sizeof(*w), NULL);
    *w = (struct port_wait){c, in->port};
    call_expect(c, &call_wait,
                process_wait_port(c->ref, call_param(c, 1), (unsigned)in->port,
                                  in->http != NULL ? &http : NULL, in->timeout_ms, port_open, w));
    return 0;
}

static int wait_log(struct call *c, const struct wait_in *in, struct err *e)
{
    unsigned streams;

    if (in->text == NULL)
        return err_set(e, ERR_INVALID, "text: required with for: log");
    if (command_streams(in->stream, &streams, e) < 0)
        return -1;
    call_expect(c, &call_wait,
                process_wait_log(c->ref, call_param(c, 1), in->text, strlen(in->text), in->since,
                                 streams, in->timeout_ms, log_found, c));
    return 0;
}

static const struct {
    const char *name;
    int (*wait)(struct call *c, const struct wait_in *in, struct err *e);
} waits[] = {{"exit", wait_exit}, {"port", wait_port}, {"log", wait_log}};

static void process_wait_(struct call *c, const void *body)
{
    const struct wait_in *in = body;
    const char *what = in->what != NULL   ? in->what
                       : in->port != 0    ? "port"
                       : in->text != NULL ? "log"
                                          : "exit";
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        if (strcmp(what, waits[i].name) != 0)
            continue;
        if (waits[i].wait(c, in, &e) < 0)
            call_fail(c, &e);
        return;
    }
    err_set(&e, ERR_INVALID, "for: expected exit, port or log");
    call_fail(c, &e);
}

/* clang-format off */
const struct surface_row surface_processes[] = {
    {{"POST", PROCESSES}, SCOPE_RUN, process_start_, "startProcess",
     "Starts a process and answers when it runs. As an event stream, follows its output until its exit without a gap.",
     .body = &command_process, .status = 201, .answers = {&process_shape},
     .events = EXEC_EVENTS, .event_shapes = {&exec_start_shape, &exec_exit_shape}},
    {{"GET",  PROCESSES}, SCOPE_READ, process_list_, "listProcesses",
     "Lists running processes, and exited ones that are still kept.", .query = &listing_query,
     .status = 200, .answers = {&list_shape}},
    {{"GET",  PROCESSES "/{pid}"}, SCOPE_READ, process_get_, "getProcess",
     "Shows a process, running or exited.",
     .status = 200, .answers = {&process_shape}},
    {{"POST", PROCESSES "/{pid}/signal"}, SCOPE_RUN, process_signal_, "signalProcess",
     "Sends a signal to a process or, with tree, to all its descendants too.",
     .body = &signal_input, .status = 204},
    {{"POST", PROCESSES "/{pid}/kill"}, SCOPE_RUN, process_kill_, "killProcess",
     "Kills a process and all its descendants, with SIGTERM and later SIGKILL; answers when all are dead.",
     .body = &kill_input, .status = 200, .answers = {&exit_shape}},
    {{"POST", PROCESSES "/{pid}/wait"}, SCOPE_READ, process_wait_, "waitForProcess",
     "Waits until the process exits, a port answers or a text is printed. 410 if the process exits first.",
     .body = &wait_input, .status = 200, .answers = {&exit_shape, &port_shape, &position_shape}},
    {.op = NULL},
};
/* clang-format on */
