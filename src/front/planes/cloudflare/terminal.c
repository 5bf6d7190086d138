/* terminal.c - terminals as the next version of the API has them: made, found again,
 * looked at from a cursor, interrupted, ended. */
#include "front/engine/terminal.h"

#include <signal.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/maps.h"
#include "front/plane/viewer.h"
#include "front/planes/cloudflare/internal.h"
#include "front/planes/cloudflare/process.h"

#define CURSOR_MAX 24u
#define TERMINATE_GRACE_MS 1000u

/* ---- answers ---- */

struct terminal_view_ {
    const char *id, *cwd, *status;
    uint64_t pid;
    struct shape_bytes argv;
    const struct ended_view *exit;
};

/* clang-format off */
static const struct shape_field terminal_fields[] = {
    {"id", SHAPE_STR, offsetof(struct terminal_view_, id), "Id."},
    {"pid", SHAPE_U64, offsetof(struct terminal_view_, pid), "Pid inside the sandbox."},
    {"command", SHAPE_STRV, offsetof(struct terminal_view_, argv), "Program and arguments; truncated if long."},
    {"cwd", SHAPE_STR, offsetof(struct terminal_view_, cwd), "Working directory at the start."},
    {"status", SHAPE_STR, offsetof(struct terminal_view_, status), "running or exited."},
    {"exit", SHAPE_OBJECT, offsetof(struct terminal_view_, exit), "How it exited.", SHAPE_OMITTED, &cloudflare_ended_shape},
};
static SHAPE(terminal_shape, "CloudflareTerminal", "A terminal.", terminal_fields);
/* clang-format on */

struct terminal_full {
    struct terminal_view_ t;
    struct ended_view exit;
};

static void view_of(struct terminal_full *v, const struct process_info *p)
{
    struct process_exit end = cloudflare_exit_of(p);
    bool ended = p->state == PROCESS_EXITED;

    cloudflare_ended_of(&v->exit, &end);
    v->t = (struct terminal_view_){
        .id = p->id,
        .cwd = p->cwd,
        .status = ended ? "exited" : "running",
        .pid = p->pid,
        .argv = {p->argv.p, p->argv.len},
        .exit = ended ? &v->exit : NULL,
    };
}

static void show(struct call *c, const struct process_info *p)
{
    struct terminal_full v;

    view_of(&v, p);
    call_reply_shape(c, &terminal_shape, &v.t);
}

/* ---- create ---- */

struct create_in {
    json_t *argv, *env;
    const char *cwd;
    uint64_t cols, rows;
};

static void seen(void *arg, const struct process_info *p, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        show(c, p);
}

static void created(void *arg, const struct process_started *m, const struct err *e)
{
    struct call *c = arg;

    if (!call_got(c, e))
        return;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, m->id, seen, c);
}

static int decode(struct cloudflare_command *cmd, const struct create_in *in, struct err *e)
{
    if (cloudflare_command(cmd, in->argv, in->env, NULL, e) < 0)
        return -1;
    if (*cmd->argv[0] == '\0')
        return err_set(e, ERR_INVALID, "argv: the name of the program is empty");
    if (in->cwd == NULL)
        return 0;
    buf_clear(&cmd->cwd); /* anywhere, as the reference has it */
    buf_adds(&cmd->cwd, *in->cwd == '/' ? "" : CLOUDFLARE_ROOT "/");
    buf_adds(&cmd->cwd, in->cwd);
    cmd->o.cwd = buf_cstr(&cmd->cwd);
    return 0;
}

static void create_go(struct call *c, const void *body)
{
    autocommand struct cloudflare_command cmd = {0};
    const struct create_in *in = body;
    struct process_term term = {.cols = (unsigned)in->cols, .rows = (unsigned)in->rows};
    struct err e;

    if (decode(&cmd, in, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    cmd.o.term = &term;
    call_expect(c, &call_pending, NULL);
    process_start(c->ref, &cmd.o, created, c);
}

static void create_run(struct call *c, const void *body)
{
    autocommand struct cloudflare_command cmd = {0};
    struct err e;

    if (decode(&cmd, body, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, body, create_go);
}

/* clang-format off */
static const struct json_field create_fields[] = {
    {"argv", JSON_FIELD_STRLIST, offsetof(struct create_in, argv), 1, CLOUDFLARE_ARGS_MAX, true, "Program and arguments."},
    {"cwd", JSON_FIELD_STR, offsetof(struct create_in, cwd), 1, ENGINE_PATH_MAX, false, "Working directory. Default: /workspace."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct create_in, env), 0, MAPS_ENV_MAX, false, "Environment variables; they override those of the sandbox."},
    {"cols", JSON_FIELD_U64, offsetof(struct create_in, cols), 1, TERMINAL_SIDE_MAX, false, "Columns. Default: 80."},
    {"rows", JSON_FIELD_U64, offsetof(struct create_in, rows), 1, TERMINAL_SIDE_MAX, false, "Rows. Default: 24."},
};
/* clang-format on */
static const struct surface_input create_input = {
    SURFACE_INPUT(create_fields, struct create_in),
    .body_max = CLOUDFLARE_COMMAND_MAX,
};

/* ---- list and get ---- */

static void add_terminal(struct buf *rows, const struct process_info *p)
{
    struct terminal_full v;

    if (p->cols == 0)
        return;
    view_of(&v, p);
    shape_append(rows, &terminal_shape, &v.t);
}

static void list_run(struct call *c, const void *in)
{
    cloudflare_list(c, in, add_terminal);
}

static void get_run(struct call *c, const void *in)
{
    cloudflare_find_terminal(c, in, show);
}

/* ---- connect: a message with length and cursor before each piece of output ---- */

static void put_cursor(struct viewer *v, struct json_w *w)
{
    char text[CURSOR_MAX];

    str_fmt(text, sizeof(text), "%llu", (unsigned long long)viewer_cursor(v));
    jw_kstr(w, "cursor", text);
}

static int next_read(const struct viewer *v, bool binary, const char *p, size_t n,
                     struct frame *ret, struct err *e)
{
    (void)v;
    return frame_read(binary, p, n, ret, e);
}

static void next_ready(struct viewer *v, const struct process_screen *m)
{
    struct json_w w;

    (void)m;
    viewer_open_text(v, &w, "ready");
    put_cursor(v, &w);
    viewer_send_text(v, &w);
}

static void next_output(struct viewer *v, const char *p, size_t n)
{
    struct json_w w;

    viewer_open_text(v, &w, "chunk");
    put_cursor(v, &w);
    jw_ku64(&w, "byteLength", n);
    viewer_send_text(v, &w);
    viewer_send_bytes(v, p, n);
}

static void next_truncated(struct viewer *v, const struct process_truncated *m)
{
    struct json_w w;

    (void)m;
    viewer_open_text(v, &w, "truncated");
    put_cursor(v, &w);
    viewer_send_text(v, &w);
}

static void next_exited(struct viewer *v, const struct process_exit *m)
{
    struct ended_view x;
    struct json_w w;

    cloudflare_ended_of(&x, m);
    viewer_open_text(v, &w, "exit");
    put_cursor(v, &w);
    jw_key(&w, "exit");
    shape_write(&w, &cloudflare_ended_shape, &x);
    viewer_send_text(v, &w);
}

static void next_error(struct viewer *v, const struct err *e)
{
    struct json_w w;

    viewer_open_text(v, &w, "error");
    jw_kstr(&w, "message", e->kind == ERR_INTERNAL ? "internal error" : e->msg);
    viewer_send_text(v, &w);
}

static const struct viewer_dialect next_dialect = {.read = next_read,
                                                   .ready = next_ready,
                                                   .output = next_output,
                                                   .truncated = next_truncated,
                                                   .exited = next_exited,
                                                   .error = next_error};

struct connect_in {
    const char *cursor;
    uint64_t cols, rows;
};

static int read_cursor(const char *text, struct terminal_from *ret, struct err *e)
{
    if (text == NULL)
        return 0;
    ret->has_since = true;
    if (str_u64(text, UINT64_MAX, &ret->since) < 0)
        return err_set(e, ERR_INVALID, "cursor: '%.24s' is not a cursor of this terminal", text);
    return 0;
}

static void connect_to(struct call *c, const struct process_info *p)
{
    const struct connect_in *in = c->in;
    struct viewer_opts o = {.id = p->id,
                            .cols = (unsigned)in->cols,
                            .rows = (unsigned)in->rows,
                            .dialect = &next_dialect};
    struct err bad;

    if (read_cursor(in->cursor, &o.from, &bad) < 0)
        call_fail(c, &bad);
    else
        viewer_open(c, &o);
}

static void connect_run(struct call *c, const void *query)
{
    const struct connect_in *in = query;
    struct terminal_from from = {0};
    struct err e;

    if (cloudflare_check_upgrade(c, &e) < 0 || read_cursor(in->cursor, &from, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_find_terminal(c, query, connect_to);
}

/* clang-format off */
static const struct json_field connect_fields[] = {
    {"cursor", JSON_FIELD_STR, offsetof(struct connect_in, cursor), 1, CURSOR_MAX, false, "Cursor of the last chunk seen. Default: replay the output kept."},
    {"cols", JSON_FIELD_U64, offsetof(struct connect_in, cols), 1, TERMINAL_SIDE_MAX, false, "New number of columns."},
    {"rows", JSON_FIELD_U64, offsetof(struct connect_in, rows), 1, TERMINAL_SIDE_MAX, false, "New number of rows."},
};
/* clang-format on */
static const struct surface_input connect_input = {
    SURFACE_INPUT(connect_fields, struct connect_in)};

/* ---- interrupt and terminate ---- */

static void done(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (e == NULL || e->kind == ERR_GONE)
        call_reply_none(c);
    else
        call_fail(c, e);
}

static void interrupt(struct call *c, const struct process_info *p)
{
    call_expect(c, &call_pending, NULL);
    terminal_signal(c->ref, p->id, SIGINT, done, c);
}

static void interrupt_run(struct call *c, const void *in)
{
    cloudflare_find_terminal(c, in, interrupt);
}

static void ended(void *arg, const struct process_exit *m, const struct err *e)
{
    (void)m;
    done(arg, e);
}

static void terminate(struct call *c, const struct process_info *p)
{
    call_expect(c, &call_wait, process_kill(c->ref, p->id, TERMINATE_GRACE_MS, ended, c));
}

static void terminate_run(struct call *c, const void *in)
{
    cloudflare_find_terminal(c, in, terminate);
}

/* clang-format off */
#define WORDS .failure = "exec_transport_error", .missing = "not_found"

const struct surface_row cloudflare_terminal[] = {
    {{"POST", CLOUDFLARE_TERMINALS}, SCOPE_RUN, create_run, "cloudflareCreateTerminal",
     "Starts a program on a terminal. It keeps running without viewers.",
     .body = &create_input, .status = 200, .answers = {&terminal_shape}, .failure = "exec_transport_error"},
    {{"GET", CLOUDFLARE_TERMINALS}, SCOPE_READ, list_run, "cloudflareListTerminals",
     "Lists running terminals, and exited ones that are still kept (CloudflareTerminal).",
     .status = 200, .flags = SURFACE_OTHER, .failure = "exec_transport_error"},
    {{"GET", CLOUDFLARE_TERMINALS "/{tid}"}, SCOPE_READ, get_run, "cloudflareGetTerminal",
     "Shows a terminal.", .status = 200, .answers = {&terminal_shape}, WORDS},
    {{"GET", CLOUDFLARE_TERMINALS "/{tid}/connect"}, SCOPE_RUN, connect_run, "cloudflareConnectTerminal",
     "View and type over a WebSocket: before each binary message comes a text message {type: chunk, cursor, byteLength}; also ready, truncated, error and exit.",
     .query = &connect_input, .status = 101, WORDS},
    {{"POST", CLOUDFLARE_TERMINALS "/{tid}/interrupt"}, SCOPE_RUN, interrupt_run, "cloudflareInterruptTerminal",
     "Sends SIGINT to the foreground process group.", .status = 204, .flags = SURFACE_RAW_BODY, WORDS},
    {{"POST", CLOUDFLARE_TERMINALS "/{tid}/terminate"}, SCOPE_RUN, terminate_run, "cloudflareTerminateTerminal",
     "Kills a terminal and all its descendants.", .status = 204, .flags = SURFACE_RAW_BODY, WORDS},
    {.op = NULL},
};
/* clang-format on */
