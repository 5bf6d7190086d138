/* processes.c - commands with a life: start, list, see, signal and kill. Their output
 * is in logs.c, bytes for them in process_stdin.c, waiting in process_waits.c. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/listing.h"
#include "front/planes/native/run/exec.h"
#include "front/planes/native/run/processes.h"

#define LIST_BYTES_MAX (64u << 20)

/* ---- answers ---- */

struct process_view {
    const char *id, *state, *cwd, *user;
    struct shape_bytes argv;
    uint64_t pid, started_ms, ended_ms;
    bool stdin_open, terminal;
    const struct exit_view *exit;
    const struct extent_view *output;
};

/* clang-format off */
static const struct shape_field extent_fields[] = {
    {"first", SHAPE_U64, offsetof(struct extent_view, first), "Position of the oldest byte still kept."},
    {"end", SHAPE_U64, offsetof(struct extent_view, end), "Position behind the newest."},
};
SHAPE(extent_shape, "OutputExtent", "Which part of the output can be read; positions count the bytes of stdout and stderr together.", extent_fields);

static const struct shape_field process_fields[] = {
    {"id", SHAPE_STR, offsetof(struct process_view, id), "Its name in every other call."},
    {"pid", SHAPE_U64, offsetof(struct process_view, pid), "Its number inside the sandbox."},
    {"state", SHAPE_STR, offsetof(struct process_view, state), "running or exited."},
    {"argv", SHAPE_STRV, offsetof(struct process_view, argv), "What runs; its beginning, if it is long."},
    {"cwd", SHAPE_STR, offsetof(struct process_view, cwd), "Where it was started.", SHAPE_NULLABLE},
    {"user", SHAPE_STR, offsetof(struct process_view, user), "As whom it runs.", SHAPE_NULLABLE},
    {"started_at", SHAPE_TIME, offsetof(struct process_view, started_ms), "When it started."},
    {"ended_at", SHAPE_TIME, offsetof(struct process_view, ended_ms), "When it ended; null: it runs.", SHAPE_NULLABLE},
    {"stdin_open", SHAPE_BOOL, offsetof(struct process_view, stdin_open), "Its stdin takes bytes."},
    {"terminal", SHAPE_BOOL, offsetof(struct process_view, terminal), "It runs on a terminal."},
    {"exit", SHAPE_OBJECT, offsetof(struct process_view, exit), "How it ended; null: it runs.", SHAPE_NULLABLE, &exit_shape},
    {"output", SHAPE_OBJECT, offsetof(struct process_view, output), "Which part of its output can be read.", SHAPE_NULLABLE, &extent_shape},
};
static SHAPE(process_shape, "Process", "A command with a life.", process_fields);

static const struct shape_field list_fields[] = {
    {"processes", SHAPE_LIST, offsetof(struct listing_view, rows), "Running and finished ones.", SHAPE_ALWAYS, &process_shape},
    LISTING_NEXT,
};
static SHAPE(list_shape, "ProcessList", "The processes of a sandbox.", list_fields);
/* clang-format on */

/* A process and what its view points to. */
struct process_full {
    struct process_view p;
    struct exit_view exit;
    struct extent_view output;
};

void process_exit_of(struct exit_view *v, const struct process_info *p)
{
    struct process_exit end = {.code = p->code,
                               .signal = p->signal,
                               .flags = p->flags,
                               .ended_ms = p->ended_ms,
                               .cpu_us = p->cpu_us,
                               .maxrss_kb = p->maxrss_kb};

    exit_view_of(v, &end);
}

static void view_of(struct process_full *v, const struct process_info *p)
{
    bool ended = p->state == PROCESS_EXITED;

    process_exit_of(&v->exit, p);
    v->output = (struct extent_view){p->output_first, p->output_end};
    v->p = (struct process_view){
        .id = p->id,
        .state = ended ? "exited" : "running",
        .cwd = p->cwd,
        .user = p->user,
        .argv = {p->argv.p, p->argv.len},
        .pid = p->pid,
        .started_ms = p->started_ms,
        .ended_ms = ended ? p->ended_ms : 0,
        .stdin_open = p->stdin_open,
        .terminal = p->cols != 0,
        .exit = ended ? &v->exit : NULL,
        .output = &v->output,
    };
}

static void got(void *arg, const struct process_info *p, const struct err *e)
{
    struct call *c = arg;
    struct process_full v;

    if (!call_got(c, e))
        return;
    view_of(&v, p);
    call_reply_shape(c, &process_shape, &v.p);
}

void process_done(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (e != NULL)
        call_fail(c, e);
    else
        call_reply_none(c);
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

struct start_in {
    struct command cmd;
    const char *id;
    bool keep_stdin;
};

/* clang-format off */
static const struct json_field start_fields[] = {
    {"id", JSON_FIELD_STR, offsetof(struct start_in, id), 1, PROCESS_ID_MAX, false,
     "Its name, of letters, digits, '.', '_' and '-'; without it one is chosen. One that is in use is refused (409)."},
    COMMAND_FIELDS(struct start_in),
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct start_in, cmd.timeout_ms), 0, COMMAND_TIMEOUT_MAX, false,
     "After this many ms the whole tree is killed; 0 or nothing: never."},
    {"stdin", JSON_FIELD_BOOL, offsetof(struct start_in, keep_stdin), 0, 0, false,
     "Keep stdin open for bytes that come later; else it reads the end of file."},
};
/* clang-format on */
static const struct surface_input start_input = {
    SURFACE_INPUT(start_fields, struct start_in),
    .body_max = COMMAND_BODY_MAX,
};

struct start {
    struct call *c;
    char id[PROCESS_ID_MAX + 1];
    uint64_t pid, started_ms;
};

/* It runs, whatever became of the question about it: an error now would make the
 * client believe otherwise. */
static void start_seen(void *arg, const struct process_info *p, const struct err *e)
{
    struct start *s = arg;
    struct process_full v = {
        .p = {.id = s->id, .state = "running", .pid = s->pid, .started_ms = s->started_ms}};

    (void)e;
    if (!call_told(s->c))
        return;
    if (p != NULL)
        view_of(&v, p);
    call_reply_shape(s->c, &process_shape, &v.p);
}

static void started(void *arg, const struct process_started *m, const struct err *e)
{
    struct start *s = arg;
    struct call *c = s->c;

    if (!call_got(c, e))
        return;
    str_fmt(s->id, sizeof(s->id), "%.*s", (int)PROCESS_ID_MAX, m->id);
    s->pid = m->pid;
    s->started_ms = m->started_ms;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, s->id, start_seen, s);
}

/* "." and ".." would be lost on the way: clients fold them out of a path. */
static int check_id(const char *id, struct err *e)
{
    size_t good = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    if (id[good] != '\0' || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
        return err_set(e, ERR_INVALID, "id: expected letters, digits, '.', '_' and '-' only");
    return 0;
}

static void start_unowned(struct call *c, const struct process_opts *o)
{
    struct start *s = call_state(c, sizeof(*s), NULL);

    if (s == NULL)
        return;
    s->c = c;
    call_expect(c, &call_pending, NULL);
    process_start(c->ref, o, started, s);
}

static void process_start_(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    const struct start_in *in = body;
    struct err e;

    if (command_decode(&in->cmd, &cmd, &e) < 0 || (in->id != NULL && check_id(in->id, &e) < 0)) {
        call_fail(c, &e);
        return;
    }
    cmd.o.id = in->id;
    cmd.o.stdin_open = in->keep_stdin;
    if (call_accept(c) == CALL_SSE)
        exec_start(c, &(struct exec_opts){.o = &cmd.o, .how = CALL_SSE});
    else
        start_unowned(c, &cmd.o);
}

/* ---- list and get ---- */

static void listed(void *arg, const struct process_info *p)
{
    struct listing *l = arg;
    struct process_full v;

    if (l->c->r == NULL || !listing_takes(l, p->id, p->started_ms))
        return;
    view_of(&v, p);
    shape_append(&l->rows, &process_shape, &v.p);
}

static void process_list_(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &list_shape, LIST_BYTES_MAX, in);

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
     "Any signal, as \"TERM\", \"SIGTERM\" or 15."},
    {"tree", JSON_FIELD_BOOL, offsetof(struct signal_in, tree), 0, 0, false,
     "To everything it started too."},
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
    process_signal(c->ref, call_param(c, 1), signo, in->tree, process_done, c);
}

struct kill_in {
    uint64_t grace_ms;
};
static const struct json_field kill_fields[] = {
    {"grace_ms", JSON_FIELD_U64, offsetof(struct kill_in, grace_ms), 0, GRACE_MAX_MS, false,
     "Time between SIGTERM and SIGKILL; without it 5000."},
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

/* clang-format off */
const struct surface_row surface_processes[] = {
    {{"POST", PROCESSES}, SCOPE_RUN, process_start_, "startProcess",
     "Starts a command and answers once it is launched; as events, it is then watched to its end without a gap.",
     .body = &start_input, .status = 201, .answers = {&process_shape},
     .events = EXEC_EVENTS, .event_shapes = {&exec_start_shape, &exec_exit_shape}},
    {{"GET",  PROCESSES}, SCOPE_READ, process_list_, "listProcesses",
     "Lists the processes that run and those that ended and are still kept.", .query = &listing_query,
     .status = 200, .answers = {&list_shape}},
    {{"GET",  PROCESSES "/{pid}"}, SCOPE_READ, process_get_, "getProcess",
     "Shows a process, running or ended.",
     .status = 200, .answers = {&process_shape}},
    {{"POST", PROCESSES "/{pid}/signal"}, SCOPE_RUN, process_signal_, "signalProcess",
     "Sends any signal to a process, or to all it started.",
     .body = &signal_input, .status = 204},
    {{"POST", PROCESSES "/{pid}/kill"}, SCOPE_RUN, process_kill_, "killProcess",
     "Ends the whole tree, with grace first, then by force; answers when all of it is dead.",
     .body = &kill_input, .status = 200, .answers = {&exit_shape}},
    {.op = NULL},
};
/* clang-format on */
