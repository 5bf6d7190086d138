/* exec.c - one command as a stream of events.
 *
 * Cloudflare joins the words of a command and lets bash run them. We execute the
 * program itself, which is what that comes to, in half the time; if there is no such
 * program (a builtin, an assignment, a name that is nowhere) bash is asked after all,
 * and says and returns what clients expect of it. With a session it is that session's
 * bash, which reads the words as one line. */
#include <string.h>

#include "base/str.h"
#include "front/engine/process.h"
#include "front/plane/exit.h"
#include "front/plane/output.h"
#include "front/planes/cloudflare/internal.h"

#define SESSION_MAKES 2

struct exec_in {
    json_t *argv;
    const char *cwd;
    double timeout_ms;
};

struct exec {
    struct call *c;
    struct output sent;
    bool shell;                       /* bash has been asked */
    bool home;                        /* it is to begin in /workspace itself... */
    bool astray;                      /* ...which is not there: it begins in the root */
    char session[PROCESS_ID_MAX + 1]; /* "": none */
    int makes;                        /* of that session, for this call */
};

static void put_base64(struct buf *out, const char *p, size_t n)
{
    str_base64(out, p, n);
}

/* ---- what the engine tells ---- */

static void on_started(void *arg, const struct process_started *m)
{
    struct exec *x = arg;

    (void)m;
    call_begin(x->c, CALL_SSE);
}

static void on_output(void *arg, const struct process_output *m)
{
    struct exec *x = arg;

    call_output(x->c, &x->sent, m);
}

struct exit_data {
    uint64_t code;
};
static const struct shape_field exit_fields[] = {
    {"exit_code", SHAPE_U64, offsetof(struct exit_data, code),
     "Exit code; 128 + the signal number after a signal, 124 after a timeout."},
};
static SHAPE(exit_data_shape, "CloudflareExit", "The exit event.", exit_fields);

static void on_exit_told(void *arg, const struct process_exit *m)
{
    struct exec *x = arg;
    struct exit_view v;
    struct err e;

    if (!call_told(x->c))
        return;
    if ((m->flags & PROCESS_EXIT_NEVER_RAN) != 0) {
        err_set(&e, ERR_GONE, "the session ended before this command started");
        call_fail(x->c, &e);
        return;
    }
    call_output_end(x->c, &x->sent);
    exit_view_of(&v, m);
    call_event_shape(x->c, NULL, "exit", &exit_data_shape, &(struct exit_data){v.code});
    call_end(x->c);
}

static void run(struct exec *x, const struct exec_in *in);

/* Another call may have created it meanwhile. */
static void session_made(void *arg, const struct session_info *s, const struct err *e)
{
    struct exec *x = arg;

    if (!call_told(x->c))
        return;
    if (s == NULL && e->kind != ERR_CONFLICT)
        call_fail(x->c, e);
    else
        run(x, x->c->in);
}

static void session_buried(void *arg, const struct err *e)
{
    struct exec *x = arg;

    (void)e; /* if it is still there, making it says so */
    if (call_told(x->c))
        cloudflare_session_make(x->c, x->session, session_made, x);
}

/* A session that is not there is made, one that has ended is made anew. */
static bool mend_session(struct exec *x, const struct err *e)
{
    struct call *c = x->c;

    if (*x->session == '\0' || c->streaming || (e->kind != ERR_NOT_FOUND && e->kind != ERR_GONE) ||
        engine_get(c->ref) == NULL || x->makes++ == SESSION_MAKES)
        return false;
    if (e->kind == ERR_NOT_FOUND) {
        cloudflare_session_make(c, x->session, session_made, x);
        return true;
    }
    call_expect(c, &call_pending, NULL);
    session_delete(c->ref, x->session, session_buried, x);
    return true;
}

/* Bash is asked where there is no such program; and both again in the root if they were to
 * begin in /workspace, since without it nothing could make it anew. */
static bool try_again(struct exec *x, const struct err *e)
{
    if (e->kind != ERR_CANNOT_START || *x->session != '\0' || (x->shell && (x->astray || !x->home)))
        return false;
    x->astray = x->astray || x->shell;
    x->shell = !x->shell;
    run(x, x->c->in);
    return true;
}

static void on_fail(void *arg, const struct err *e)
{
    struct exec *x = arg;

    if (call_told(x->c) && !mend_session(x, e) && !try_again(x, e))
        call_fail(x->c, e);
}

static const struct process_ops exec_ops = {
    .on_started = on_started,
    .on_output = on_output,
    .on_exit = on_exit_told,
    .on_fail = on_fail,
};

/* ---- the request ---- */

/* Rounded up: 0 would mean no limit. */
static uint64_t limit_of(const struct exec_in *in)
{
    return in->timeout_ms > 0 && in->timeout_ms < 1 ? 1 : (uint64_t)in->timeout_ms;
}

static void run_session(struct exec *x, struct cloudflare_command *cmd, const struct exec_in *in)
{
    struct call *c = x->c;
    struct session_exec o = {.session = x->session,
                             .cwd = in->cwd != NULL ? cmd->o.cwd : NULL,
                             .timeout_ms = limit_of(in)};

    o.text = cmd->o.command;
    o.text_len = cmd->text.len;
    call_expect(c, &call_stream, session_run(c->ref, &o, &exec_ops, x));
}

/* Everything was looked at before the sandbox was entered. */
static void run(struct exec *x, const struct exec_in *in)
{
    autocommand struct cloudflare_command cmd = {0};
    struct call *c = x->c;
    struct err e;

    if (cloudflare_command(&cmd, in->argv, NULL, in->cwd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    x->shell = x->shell || *x->session != '\0' || *cmd.argv[0] == '\0';
    if (x->shell && cloudflare_command_shell(&cmd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (*x->session != '\0') {
        run_session(x, &cmd, in);
        return;
    }
    cmd.o.timeout_ms = limit_of(in);
    x->home = strcmp(cmd.o.cwd, CLOUDFLARE_ROOT) == 0;
    if (x->astray)
        cmd.o.cwd = "/";
    call_expect(c, &call_stream, process_run(c->ref, &cmd.o, true, &exec_ops, x));
}

static void exec_go(struct call *c, const void *in)
{
    struct exec *x = call_state(c, sizeof(*x), NULL);
    const char *session = http_header(c->r, "Session-Id");

    x->c = c;
    if (session != NULL && *session != '\0')
        cloudflare_name("", session, x->session);
    x->sent = (struct output){.put = put_base64, .no_ids = true};
    run(x, in);
}

static void exec_run(struct call *c, const void *body)
{
    autocommand struct cloudflare_command cmd = {0};
    const struct exec_in *in = body;
    struct err e;

    if (cloudflare_command(&cmd, in->argv, NULL, in->cwd, &e) < 0 ||
        cloudflare_session_header(c, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, exec_go);
}

/* clang-format off */
static const struct json_field exec_fields[] = {
    {"argv", JSON_FIELD_STRLIST, offsetof(struct exec_in, argv), 1, CLOUDFLARE_ARGS_MAX, true,
     "Program and arguments, without shell interpretation."},
    {"timeout_ms", JSON_FIELD_DOUBLE, offsetof(struct exec_in, timeout_ms), 0, CLOUDFLARE_TIMEOUT_MAX, false,
     "Time limit in milliseconds; then the process and all its descendants are killed and the exit code is 124. 0: no limit. Default: the setting `exec-timeout`."},
    {"cwd", JSON_FIELD_STR, offsetof(struct exec_in, cwd), 1, ENGINE_PATH_MAX, false,
     "Working directory, below /workspace. Default: /workspace."},
};
/* clang-format on */

static void exec_defaults(void *in, const struct config *c)
{
    struct exec_in *x = in;

    x->timeout_ms = (double)c->exec_ms;
}

static const struct surface_input exec_input = {
    SURFACE_INPUT(exec_fields, struct exec_in),
    .body_max = CLOUDFLARE_COMMAND_MAX,
    .defaults = exec_defaults,
};

/* clang-format off */
const struct surface_row cloudflare_exec[] = {
    {{"POST", CLOUDFLARE_SANDBOX "/exec"}, SCOPE_RUN, exec_run, "execCommand",
     "Runs a command as root in /workspace and streams its output.",
     .body = &exec_input, .status = 200,
     .events = "`stdout` and `stderr`, each base64 of whole characters; finally `exit` or `error`.",
     .event_shapes = {&exit_data_shape}, .failure = "exec_transport_error"},
    {.op = NULL},
};
/* clang-format on */
