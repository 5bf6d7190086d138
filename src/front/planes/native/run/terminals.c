/* terminals.c - processes with a screen: create, list, see, look at and type,
 * resize, signal, delete. A terminal is a process too: what it printed can be read
 * and what it reads be written there, without a WebSocket. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/terminal.h"
#include "front/plane/viewer.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/listing.h"
#include "front/planes/native/run/processes.h"

#define LIST_BYTES_MAX (4u << 20)
#define RING_LEAST (4u << 10)
#define RING_MOST (16u << 20)
#define CURSOR_TEXT_MAX 24

#define TERMINALS "/v1/sandboxes/{id}/terminals"

/* ---- answers ---- */

struct terminal_shown {
    const char *id, *state, *cwd, *user;
    struct shape_bytes argv;
    uint64_t pid, cols, rows, viewers, started_ms, ended_ms;
    const struct exit_view *exit;
    const struct extent_view *output;
};

/* clang-format off */
static const struct shape_field terminal_fields[] = {
    {"id", SHAPE_STR, offsetof(struct terminal_shown, id), "Its name in every other call; that of a process too."},
    {"pid", SHAPE_U64, offsetof(struct terminal_shown, pid), "Number of its first process inside the sandbox."},
    {"state", SHAPE_STR, offsetof(struct terminal_shown, state), "running or exited."},
    {"argv", SHAPE_STRV, offsetof(struct terminal_shown, argv), "What runs; its beginning, if it is long."},
    {"cwd", SHAPE_STR, offsetof(struct terminal_shown, cwd), "Where it was started.", SHAPE_NULLABLE},
    {"user", SHAPE_STR, offsetof(struct terminal_shown, user), "As whom it runs.", SHAPE_NULLABLE},
    {"cols", SHAPE_U64, offsetof(struct terminal_shown, cols), "Columns of the screen, as it is now."},
    {"rows", SHAPE_U64, offsetof(struct terminal_shown, rows), "Rows of the screen."},
    {"viewers", SHAPE_U64, offsetof(struct terminal_shown, viewers), "How many look at it."},
    {"started_at", SHAPE_TIME, offsetof(struct terminal_shown, started_ms), "When it started."},
    {"ended_at", SHAPE_TIME, offsetof(struct terminal_shown, ended_ms), "When it ended; null: it runs.", SHAPE_NULLABLE},
    {"exit", SHAPE_OBJECT, offsetof(struct terminal_shown, exit), "How it ended; null: it runs.", SHAPE_NULLABLE, &exit_shape},
    {"output", SHAPE_OBJECT, offsetof(struct terminal_shown, output), "Which part of what it printed can be replayed.", SHAPE_NULLABLE, &extent_shape},
};
static SHAPE(terminal_shape, "Terminal", "A process with a screen that stays when nobody looks.", terminal_fields);

static const struct shape_field list_fields[] = {
    {"terminals", SHAPE_LIST, offsetof(struct listing_view, rows), "Running and finished ones.", SHAPE_ALWAYS, &terminal_shape},
    LISTING_NEXT,
};
static SHAPE(list_shape, "TerminalList", "The terminals of a sandbox.", list_fields);
/* clang-format on */

/* A terminal and what its view points to. */
struct terminal_full {
    struct terminal_shown t;
    struct exit_view exit;
    struct extent_view output;
};

static void view_of(struct terminal_full *v, const struct process_info *p)
{
    bool ended = p->state == PROCESS_EXITED;

    process_exit_of(&v->exit, p);
    v->output = (struct extent_view){p->output_first, p->output_end};
    v->t = (struct terminal_shown){
        .id = p->id,
        .state = ended ? "exited" : "running",
        .cwd = p->cwd,
        .user = p->user,
        .argv = {p->argv.p, p->argv.len},
        .pid = p->pid,
        .cols = p->cols,
        .rows = p->rows,
        .viewers = p->viewers,
        .started_ms = p->started_ms,
        .ended_ms = ended ? p->ended_ms : 0,
        .exit = ended ? &v->exit : NULL,
        .output = &v->output,
    };
}

/* ---- create ---- */

struct create_in {
    struct command cmd;
    const char *id;
    uint64_t cols, rows, ring;
    bool get_or_create;
};

/* clang-format off */
static const struct json_field create_fields[] = {
    {"id", JSON_FIELD_STR, offsetof(struct create_in, id), 1, PROCESS_ID_MAX, false,
     "Its name, of letters, digits, '.', '_' and '-'; without it one is chosen. One that is in use is refused (409)."},
    {"get_or_create", JSON_FIELD_BOOL, offsetof(struct create_in, get_or_create), 0, 0, false,
     "If the terminal of this id runs, it is the answer (200), whatever else is asked for; however many ask at once, there is one."},
    {"argv", JSON_FIELD_STRLIST, offsetof(struct create_in, cmd.argv), 1, COMMAND_ARGS_MAX, false,
     "The program and its arguments; without argv and command a login bash."},
    {"command", JSON_FIELD_STR, offsetof(struct create_in, cmd.command), 1, PROCESS_ARGS_MAX, false,
     "A text for bash -c, instead of argv."},
    {"cwd", JSON_FIELD_STR, offsetof(struct create_in, cmd.cwd), 1, ENGINE_PATH_MAX, false,
     "Working directory; without it /workspace. If it does not exist, nothing runs."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct create_in, cmd.env), 0, MAPS_ENV_MAX, false,
     "Variables of this terminal, over those of the sandbox; TERM is xterm-256color if nobody says otherwise."},
    {"user", JSON_FIELD_STR, offsetof(struct create_in, cmd.user), 1, ENGINE_USER_MAX, false,
     "A user's name, uid, or uid:gid; without it user."},
    {"cols", JSON_FIELD_U64, offsetof(struct create_in, cols), 1, TERMINAL_SIDE_MAX, false, "Columns; without it 80."},
    {"rows", JSON_FIELD_U64, offsetof(struct create_in, rows), 1, TERMINAL_SIDE_MAX, false, "Rows; without it 24."},
    {"ring", JSON_FIELD_U64, offsetof(struct create_in, ring), RING_LEAST, RING_MOST, false,
     "Bytes of output kept for who comes later, rounded up to a power of two; without it 256 KiB."},
};
/* clang-format on */
static const struct surface_input create_input = {
    SURFACE_INPUT(create_fields, struct create_in),
    .body_max = COMMAND_BODY_MAX,
};

struct create {
    struct call *c;
    char id[PROCESS_ID_MAX + 1];
    uint64_t pid, started_ms;
    int status;
};

/* It runs, whatever became of the question about it. */
static void create_seen(void *arg, const struct process_info *p, const struct err *e)
{
    struct create *s = arg;
    struct terminal_full v = {
        .t = {.id = s->id, .state = "running", .pid = s->pid, .started_ms = s->started_ms}};

    (void)e;
    if (!call_told(s->c))
        return;
    if (p != NULL)
        view_of(&v, p);
    call_reply_shape_as(s->c, s->status, &terminal_shape, &v.t);
}

static void created(void *arg, const struct process_started *m, const struct err *e)
{
    struct create *s = arg;
    struct call *c = s->c;

    if (!call_got(c, e))
        return;
    str_fmt(s->id, sizeof(s->id), "%.*s", (int)PROCESS_ID_MAX, m->id);
    s->pid = m->pid;
    s->started_ms = m->started_ms;
    s->status = m->existed ? 200 : 201;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, s->id, create_seen, s);
}

static int decode_create(const struct create_in *in, struct command_opts *cmd, struct err *e)
{
    if (in->get_or_create && in->id == NULL)
        return err_set(e, ERR_INVALID, "get_or_create: wants an id");
    if (in->cmd.argv != NULL || in->cmd.command != NULL)
        return command_decode(&in->cmd, cmd, e);
    return command_decode_rest(&in->cmd, cmd, e);
}

static void terminal_create(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    const struct create_in *in = body;
    struct process_term term = {(unsigned)in->cols, (unsigned)in->rows, (uint32_t)in->ring,
                                in->get_or_create};
    struct create *s;
    struct err e;

    if (decode_create(in, &cmd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    s = call_state(c, sizeof(*s), NULL);
    if (s == NULL)
        return;
    s->c = c;
    cmd.o.id = in->id;
    cmd.o.term = &term;
    call_expect(c, &call_pending, NULL);
    process_start(c->ref, &cmd.o, created, s);
}

/* ---- list and get ---- */

static void listed(void *arg, const struct process_info *p)
{
    struct listing *l = arg;
    struct terminal_full v;

    if (l->c->r == NULL || p->cols == 0 || !listing_takes(l, p->id, p->started_ms))
        return;
    view_of(&v, p);
    shape_append(&l->rows, &terminal_shape, &v.t);
}

static void terminal_list(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &list_shape, LIST_BYTES_MAX, in);

    if (l != NULL)
        process_list(c->ref, listed, listing_done, l);
}

static void got(void *arg, const struct process_info *p, const struct err *e)
{
    struct call *c = arg;
    struct terminal_full v;
    struct err none;

    if (!call_told(c))
        return;
    if (p == NULL || p->cols == 0) {
        err_set(&none, ERR_NOT_FOUND, "no terminal %.64s in this sandbox", call_param(c, 1));
        call_fail(c, p == NULL && e->kind != ERR_NOT_FOUND ? e : &none);
        return;
    }
    view_of(&v, p);
    call_reply_shape(c, &terminal_shape, &v.t);
}

static void terminal_get(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, call_param(c, 1), got, c);
}

/* ---- look ---- */

struct connect_in {
    const char *since;
    bool readonly;
};
/* clang-format off */
static const struct json_field connect_fields[] = {
    {"since", JSON_FIELD_STR, offsetof(struct connect_in, since), 1, CURSOR_TEXT_MAX, false,
     "Position of the first byte wanted, or `now`; without it the oldest that is kept."},
    {"readonly", JSON_FIELD_BOOL, offsetof(struct connect_in, readonly), 0, 0, false,
     "1: look only; what is typed is refused."},
};
/* clang-format on */
static const struct surface_input connect_input = {
    SURFACE_INPUT(connect_fields, struct connect_in)};

static int read_from(const char *since, struct terminal_from *ret, struct err *e)
{
    *ret = (struct terminal_from){0};
    if (since == NULL)
        return 0;
    ret->now = strcmp(since, "now") == 0;
    ret->has_since = !ret->now;
    if (ret->has_since && str_u64(since, UINT64_MAX, &ret->since) < 0)
        return err_set(e, ERR_INVALID, "since: expected a position, or now");
    return 0;
}

static void terminal_connect(struct call *c, const void *query)
{
    const struct connect_in *in = query;
    struct viewer_opts o = {.id = call_param(c, 1), .read_only = in->readonly};
    struct err e;

    if (read_from(in->since, &o.from, &e) < 0 ||
        (!in->readonly && auth_allows(c->plane->auth, c->key, SCOPE_RUN, &e) < 0))
        call_fail(c, &e);
    else
        viewer_open(c, &o);
}

/* ---- resize, signal, delete ---- */

struct resize_in {
    uint64_t cols, rows;
};
static const struct json_field resize_fields[] = {
    {"cols", JSON_FIELD_U64, offsetof(struct resize_in, cols), 1, TERMINAL_SIDE_MAX, true,
     "Columns."},
    {"rows", JSON_FIELD_U64, offsetof(struct resize_in, rows), 1, TERMINAL_SIDE_MAX, true, "Rows."},
};
static const struct surface_input resize_input = {SURFACE_INPUT(resize_fields, struct resize_in)};

static void terminal_resize_(struct call *c, const void *body)
{
    const struct resize_in *in = body;

    call_expect(c, &call_pending, NULL);
    terminal_resize(c->ref, call_param(c, 1), (unsigned)in->cols, (unsigned)in->rows, process_done,
                    c);
}

struct signal_in {
    json_t *signal;
};
static const struct json_field signal_fields[] = {
    {"signal", JSON_FIELD_ANY, offsetof(struct signal_in, signal), 0, 0, true,
     "Any signal, as \"INT\", \"SIGINT\" or 2."},
};
static const struct surface_input signal_input = {SURFACE_INPUT(signal_fields, struct signal_in)};

static void terminal_signal_(struct call *c, const void *body)
{
    const struct signal_in *in = body;
    struct err e;
    int signo;

    if (signal_from(in->signal, &signo, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    terminal_signal(c->ref, call_param(c, 1), signo, process_done, c);
}

struct delete_in {
    uint64_t grace_ms;
};
static const struct json_field delete_fields[] = {
    {"grace_ms", JSON_FIELD_U64, offsetof(struct delete_in, grace_ms), 0, GRACE_MAX_MS, false,
     "Time between SIGTERM and SIGKILL; without it 0: an interactive shell ignores SIGTERM."},
};
static const struct surface_input delete_input = {SURFACE_INPUT(delete_fields, struct delete_in)};

static void terminal_delete_(struct call *c, const void *query)
{
    const struct delete_in *in = query;

    call_expect(c, &call_wait,
                terminal_delete(c->ref, call_param(c, 1), in->grace_ms, process_ended, c));
}

/* clang-format off */
const struct surface_row surface_terminals[] = {
    {{"POST", TERMINALS}, SCOPE_RUN, terminal_create, "createTerminal",
     "Start a program on a terminal of its own; it runs on when nobody looks.",
     .body = &create_input, .status = 201, .answers = {&terminal_shape}},
    {{"GET", TERMINALS}, SCOPE_READ, terminal_list, "listTerminals",
     "Terminals that run, and the last finished ones.", .query = &listing_query, .status = 200, .answers = {&list_shape}},
    {{"GET", TERMINALS "/{tid}"}, SCOPE_READ, terminal_get, "getTerminal",
     "One terminal.", .status = 200, .answers = {&terminal_shape}},
    {{"GET", TERMINALS "/{tid}/connect"}, SCOPE_READ, terminal_connect, "connectTerminal",
     "Look and type over a WebSocket: binary messages are bytes both ways; text messages are JSON, from the client "
     "{type: resize, cols, rows}, to it ready (cursor: position of the first byte that follows, end, cols, rows, pid, "
     "read_only), resize, truncated (from, to), error (code, message) and at last exit (code, signal), then close 1000. "
     "Who reads nothing for 5 s is closed with 4408 and may come back with since. With the subprotocol tty, ttyd's "
     "messages instead.",
     .query = &connect_input, .status = 101},
    {{"POST", TERMINALS "/{tid}/resize"}, SCOPE_RUN, terminal_resize_, "resizeTerminal",
     "Change the size of the screen.", .body = &resize_input, .status = 204},
    {{"POST", TERMINALS "/{tid}/signal"}, SCOPE_RUN, terminal_signal_, "signalTerminal",
     "Send a signal to the process group in the foreground.", .body = &signal_input, .status = 204},
    {{"DELETE", TERMINALS "/{tid}"}, SCOPE_RUN, terminal_delete_, "deleteTerminal",
     "Kill everything it started and forget it; answered when that is done.",
     .query = &delete_input, .status = 200, .answers = {&exit_shape}},
    {.op = NULL},
};
/* clang-format on */
