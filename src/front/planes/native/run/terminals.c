/* terminals.c - processes on a terminal: create, list, show, view and type, resize, signal, delete. A
 * terminal is a process too: its output and stdin are also available there, without a
 * WebSocket. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/terminal.h"
#include "front/plane/viewer.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/run/processes.h"

#define LIST_BYTES_MAX (4u << 20)
#define CURSOR_TEXT_MAX 24

#define TERMINALS "/v1/sandboxes/{id}/terminals"

/* ---- answers ---- */

/* clang-format off */
static const struct shape_field terminal_fields[] = {
    {"id", SHAPE_STR, offsetof(struct process_view, id), "Id; also an id of a process."},
    {"pid", SHAPE_U64, offsetof(struct process_view, pid), "Pid of its first process inside the sandbox."},
    {"state", SHAPE_STR, offsetof(struct process_view, state), "running or exited."},
    {"argv", SHAPE_STRV, offsetof(struct process_view, argv), "Program and arguments; truncated if long."},
    {"cwd", SHAPE_STR, offsetof(struct process_view, cwd), "Working directory at the start.", SHAPE_NULLABLE},
    {"user", SHAPE_STR, offsetof(struct process_view, user), "User it runs as.", SHAPE_NULLABLE},
    {"cols", SHAPE_U64, offsetof(struct process_view, cols), "Current number of columns."},
    {"rows", SHAPE_U64, offsetof(struct process_view, rows), "Current number of rows."},
    {"viewers", SHAPE_U64, offsetof(struct process_view, viewers), "Number of viewers."},
    {"started_at", SHAPE_TIME, offsetof(struct process_view, started_ms), "Time of the start."},
    {"ended_at", SHAPE_TIME, offsetof(struct process_view, ended_ms), "Time of the exit; null while it runs.", SHAPE_NULLABLE},
    {"exit", SHAPE_OBJECT, offsetof(struct process_view, exit), "How it exited; null while it runs.", SHAPE_NULLABLE, &exit_shape},
    {"output", SHAPE_OBJECT, offsetof(struct process_view, output), "The part of its output that is kept.", SHAPE_NULLABLE, &extent_shape},
};
static SHAPE(terminal_shape, "Terminal", "A process on a terminal; it keeps running without viewers.", terminal_fields);

static const struct shape_field list_fields[] = {
    {"terminals", SHAPE_LIST, offsetof(struct listing_view, rows), "Running and exited ones.", SHAPE_ALWAYS, &terminal_shape},
    LISTING_NEXT,
};
static SHAPE(list_shape, "TerminalList", "The terminals of a sandbox.", list_fields);
/* clang-format on */

static const struct resource terminals = {&terminal_shape, &list_shape, LIST_BYTES_MAX,
                                          process_view_of};

/* ---- create ---- */

static void terminal_create(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    const struct command *in = body;
    struct process_term term = {(unsigned)in->cols, (unsigned)in->rows, (uint32_t)in->ring,
                                in->get_or_create};
    bool says_what = in->argv != NULL || in->o.command != NULL; /* else a login shell */
    struct err e;

    if (in->get_or_create && in->o.id == NULL)
        err_set(&e, ERR_INVALID, "get_or_create: id is required");
    else if ((says_what ? command_decode : command_decode_rest)(in, &cmd, &e) == 0) {
        cmd.o.term = &term;
        process_launch(c, &cmd.o, &terminals);
        return;
    }
    call_fail(c, &e);
}

/* ---- list and get ---- */

static void listed(void *arg, const struct process_info *p)
{
    if (p->cols != 0)
        listing_add(arg, p->id, p->started_ms, p);
}

static void terminal_list(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &terminals, in);

    if (l != NULL)
        process_list(c->ref, listed, listing_done, l);
}

/* To this surface a process on pipes is not there. */
static void got(void *arg, const struct process_info *p, const struct err *e)
{
    struct call *c = arg;
    struct err none;

    if (p != NULL ? p->cols == 0 : e->kind == ERR_NOT_FOUND) {
        err_set(&none, ERR_NOT_FOUND, "no terminal %.64s in this sandbox", call_param(c, 1));
        e = &none;
    }
    resource_reply(c, &terminals, p, e);
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
     "Position of the first byte to send, or `now`. Default: the oldest byte kept."},
    {"readonly", JSON_FIELD_BOOL, offsetof(struct connect_in, readonly), 0, 0, false,
     "Read-only: input is refused."},
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
    terminal_resize(c->ref, call_param(c, 1), (unsigned)in->cols, (unsigned)in->rows,
                    call_told_done, c);
}

struct signal_in {
    json_t *signal;
};
static const struct json_field signal_fields[] = {
    {"signal", JSON_FIELD_ANY, offsetof(struct signal_in, signal), 0, 0, true,
     "Signal, for example \"INT\", \"SIGINT\" or 2."},
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
    terminal_signal(c->ref, call_param(c, 1), signo, call_told_done, c);
}

struct delete_in {
    uint64_t grace_ms;
};
static const struct json_field delete_fields[] = {
    {"grace_ms", JSON_FIELD_U64, offsetof(struct delete_in, grace_ms), 0, GRACE_MAX_MS, false,
     "Milliseconds between SIGTERM and SIGKILL. Default: 0, since an interactive shell ignores "
     "SIGTERM."},
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
     "Starts a program on a new terminal. It keeps running without viewers.",
     .body = &command_terminal, .status = 201, .answers = {&terminal_shape}},
    {{"GET", TERMINALS}, SCOPE_READ, terminal_list, "listTerminals",
     "Lists running terminals, and exited ones that are still kept.", .query = &listing_query, .status = 200, .answers = {&list_shape}},
    {{"GET", TERMINALS "/{tid}"}, SCOPE_READ, terminal_get, "getTerminal",
     "Shows a terminal.", .status = 200, .answers = {&terminal_shape}},
    {{"GET", TERMINALS "/{tid}/connect"}, SCOPE_READ, terminal_connect, "connectTerminal",
     "View and type over a WebSocket. Binary messages are bytes in both directions; text messages are JSON. The client sends "
     "{type: resize, cols, rows}. The server sends ready (cursor: position of the first byte that follows, end, cols, rows, pid, "
     "read_only), resize, truncated (from, to), error (code, message) and finally exit (code, signal), then closes with 1000. A "
     "viewer that reads nothing for 5 s is closed with 4408 and may reconnect with since. With the subprotocol tty, messages are ttyd's.",
     .query = &connect_input, .status = 101},
    {{"POST", TERMINALS "/{tid}/resize"}, SCOPE_RUN, terminal_resize_, "resizeTerminal",
     "Resizes the terminal.", .body = &resize_input, .status = 204},
    {{"POST", TERMINALS "/{tid}/signal"}, SCOPE_RUN, terminal_signal_, "signalTerminal",
     "Sends a signal to the foreground process group.", .body = &signal_input, .status = 204},
    {{"DELETE", TERMINALS "/{tid}"}, SCOPE_RUN, terminal_delete_, "deleteTerminal",
     "Kills the terminal and all its descendants and removes it; answers when all are dead.",
     .query = &delete_input, .status = 200, .answers = {&exit_shape}},
    {.op = NULL},
};
/* clang-format on */
