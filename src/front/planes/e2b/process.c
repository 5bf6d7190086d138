/* process.c - E2B's Start and Connect: a command or a PTY, and its output.
 *
 * The stream of Start owns the output: a client that reads slowly makes the command wait and misses
 * nothing. The command continues if the client disconnects. Connect sends the output kept, then
 * follows, and becomes the owner if there is none. */
#include "front/planes/e2b/process.h"

#include <signal.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/maps.h"
#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/internal.h"
#include "mem/mem.h"
#include "json/write.h"

/* ---- the environment of commands: E2B's, then the sandbox's, then the call's ---- */

#define ENVS_BYTES_MAX (1u << 20)

static void add(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s=%s", name, value);
    buf_addc(out, '\0');
}

void e2b_add_env(struct buf *out, const struct sandbox *s)
{
    add(out, "E2B_SANDBOX", "true");
    add(out, "E2B_SANDBOX_ID", s->id);
    add(out, "E2B_TEMPLATE_ID", s->template);
    buf_add(out, s->env, s->env_len);
}

static void put_all(struct json_w *w, const char *env, size_t len)
{
    for (size_t i = 0, n; i < len; i += n + 1) {
        const char *value = strchr(env + i, '=');
        char name[256];

        n = strlen(env + i);
        if (value == NULL || (size_t)(value - env - i) >= sizeof(name))
            continue;
        memcpy(name, env + i, (size_t)(value - env) - i);
        name[(size_t)(value - env) - i] = '\0';
        jw_kstr(w, name, value + 1);
    }
}

static void envs(struct call *c, const void *in)
{
    autobuf struct buf env = BUF_INIT(ENVS_BYTES_MAX), body = BUF_INIT(6 * ENVS_BYTES_MAX);
    const struct sandbox *s = engine_find(c->plane->engine, c->ref.id);
    struct json_w w;

    (void)in;
    e2b_add_env(&env, s);
    jw_init(&w, &body);
    jw_open(&w);
    put_all(&w, buf_data(&env), env.len);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

/* clang-format off */
const struct surface_row e2b_environ[] = {
    {{"GET", "/envs"}, SCOPE_RUN, envs, "envs", "The environment of every command.", .status = 200},
    {.op = NULL},
};
/* clang-format on */

#define ARGS_MAX 65536u
#define KEEPALIVE "{\"event\":{\"keepalive\":{}}}"
#define EVENT_MAX CONNECT_MESSAGE_MAX

/* ---- names and sizes in messages ---- */

int selector_read(json_t *process, struct selector *ret, struct err *e)
{
    json_t *pid = json_object_get(process, "pid"), *tag = json_object_get(process, "tag");

    if (json_is_integer(pid) && json_integer_value(pid) > 0 &&
        json_integer_value(pid) <= INT32_MAX) {
        str_fmt(ret->id, sizeof(ret->id), "@%d", (int)json_integer_value(pid));
        str_fmt(ret->text, sizeof(ret->text), "pid %d", (int)json_integer_value(pid));
        return 0;
    }
    if (json_is_string(tag) && json_string_length(tag) > 0 &&
        json_string_length(tag) <= PROCESS_ID_MAX && *json_string_value(tag) != '@') {
        str_fmt(ret->id, sizeof(ret->id), "%s", json_string_value(tag));
        str_fmt(ret->text, sizeof(ret->text), "tag %s", json_string_value(tag));
        return 0;
    }
    return err_set(e, ERR_INVALID, "process: expected a pid or a tag");
}

void selector_absent(struct call *c, const struct selector *s)
{
    struct err e;

    err_set(&e, ERR_NOT_FOUND, "process with %s not found", s->text);
    call_fail(c, &e);
}

void selector_fail(struct call *c, const struct selector *s, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        selector_absent(c, s);
    else
        call_fail(c, e);
}

int pty_size(json_t *pty, unsigned *cols, unsigned *rows, struct err *e)
{
    json_t *size = json_object_get(pty, "size");
    json_int_t c = json_integer_value(json_object_get(size, "cols"));
    json_int_t r = json_integer_value(json_object_get(size, "rows"));

    if (c < 0 || c > TERMINAL_SIDE_MAX || r < 0 || r > TERMINAL_SIDE_MAX)
        return err_set(e, ERR_INVALID, "pty.size: expected 1 to %u columns and rows",
                       TERMINAL_SIDE_MAX);
    *cols = c != 0 ? (unsigned)c : PTY_SIDE_DEFAULT_COLS;
    *rows = r != 0 ? (unsigned)r : PTY_SIDE_DEFAULT_ROWS;
    return 0;
}

/* ---- events ---- */

struct watching { /* in the state of the call */
    struct call *c;
    struct connect_stream stream;
    struct selector who; /* Connect */
    bool pty, begun;
    bool by_shell; /* Start: the program was not found, a shell is to say so */
    bool homeless; /* Start: where it would begin unasked is not there */
    char user[E2B_USER_MAX + 1];
};

static void watching_drop(void *state)
{
    connect_drop(&((struct watching *)state)->stream);
}

static void send_start(struct watching *w, uint32_t pid, bool limited)
{
    autobuf struct buf m = BUF_INIT(256);

    w->begun = true;
    connect_begin(&w->stream, w->c, KEEPALIVE, limited);
    buf_addf(&m, "{\"event\":{\"start\":{\"pid\":%u}}}", pid);
    connect_send(&w->stream, &m);
}

static void on_output(void *arg, const struct process_output *o)
{
    struct watching *w = arg;
    autobuf struct buf m = BUF_INIT(EVENT_MAX);
    const char *name = w->pty ? "pty" : o->stream == PROCESS_STDERR ? "stderr" : "stdout";

    buf_addf(&m, "{\"event\":{\"data\":{\"%s\":\"", name);
    str_base64(&m, o->data.p, o->data.len);
    buf_adds(&m, "\"}}}");
    connect_send(&w->stream, &m);
}

/* As Go's os/exec has it, which clients show to people. */
static void exit_text(const struct process_exit *x, char out[64])
{
    static const char *const names[] = {
        [SIGHUP] = "hangup",
        [SIGINT] = "interrupt",
        [SIGQUIT] = "quit",
        [SIGILL] = "illegal instruction",
        [SIGTRAP] = "trace/breakpoint trap",
        [SIGABRT] = "aborted",
        [SIGBUS] = "bus error",
        [SIGFPE] = "floating point exception",
        [SIGKILL] = "killed",
        [SIGUSR1] = "user defined signal 1",
        [SIGSEGV] = "segmentation fault",
        [SIGUSR2] = "user defined signal 2",
        [SIGPIPE] = "broken pipe",
        [SIGALRM] = "alarm clock",
        [SIGTERM] = "terminated",
    };
    const char *core = (x->flags & PROCESS_EXIT_CORE) != 0 ? " (core dumped)" : "";

    if (x->signal == 0)
        str_fmt(out, 64, "exit status %u", x->code);
    else if (x->signal < ARRAY_LEN(names) && names[x->signal] != NULL)
        str_fmt(out, 64, "signal: %s%s", names[x->signal], core);
    else
        str_fmt(out, 64, "signal: signal %u%s", x->signal, core);
}

/* What is zero is left out, as protobuf's JSON has it. */
static void send_exit(struct watching *w, const struct process_exit *x)
{
    autobuf struct buf m = BUF_INIT(1024);
    char status[64], error[96];
    struct json_w j;

    exit_text(x, status);
    str_fmt(error, sizeof(error), "%s%s", status,
            (x->flags & PROCESS_EXIT_OOM) != 0 ? " (out of memory)" : "");
    jw_init(&j, &m);
    jw_open(&j);
    jw_key(&j, "event");
    jw_open(&j);
    jw_key(&j, "end");
    jw_open(&j);
    if (x->signal != 0 || x->code != 0)
        jw_ki64(&j, "exitCode", x->signal != 0 ? -1 : (int64_t)x->code);
    if (x->signal == 0)
        jw_kbool(&j, "exited", true);
    jw_kstr(&j, "status", status);
    if (x->signal != 0 || x->code != 0)
        jw_kstr(&j, "error", error);
    jw_close(&j);
    jw_close(&j);
    jw_close(&j);
    connect_send(&w->stream, &m);
    connect_end(&w->stream);
}

static void on_exit_(void *arg, const struct process_exit *x)
{
    struct watching *w = arg;
    struct err e;

    if (!call_told(w->c))
        return;
    if ((x->flags & PROCESS_EXIT_TIMED_OUT) == 0) {
        send_exit(w, x);
        return;
    }
    err_set(&e, ERR_TIMEOUT, "the command timed out");
    call_fail(w->c, &e);
}

static void on_fail(void *arg, const struct err *e)
{
    struct watching *w = arg;

    if (!call_told(w->c))
        return;
    if (w->begun)
        call_cut(w->c); /* its init is gone, or speaks nonsense */
    else
        call_fail(w->c, e);
}

/* ---- Start ---- */

struct start_in {
    json_t *process, *pty;
    const char *tag;
    bool stdin_open;
};

struct command_in {
    const char *cmd, *cwd;
    json_t *args, *envs;
};

/* clang-format off */
static const struct json_field start_fields[] = {
    {"process", JSON_FIELD_ANY, offsetof(struct start_in, process), 0, 0, true, ""},
    {"pty", JSON_FIELD_ANY, offsetof(struct start_in, pty), 0, 0, false, ""},
    {"tag", JSON_FIELD_STR, offsetof(struct start_in, tag), 1, PROCESS_ID_MAX, false, ""},
    {"stdin", JSON_FIELD_BOOL, offsetof(struct start_in, stdin_open), 0, 0, false, ""},
};
static const struct json_field command_fields[] = {
    {"cmd", JSON_FIELD_STR, offsetof(struct command_in, cmd), 1, PROCESS_ARGS_MAX, true, ""},
    {"args", JSON_FIELD_STRLIST, offsetof(struct command_in, args), 0, ARGS_MAX, false, ""},
    {"envs", JSON_FIELD_STRMAP, offsetof(struct command_in, envs), 0, MAPS_ENV_MAX, false, ""},
    {"cwd", JSON_FIELD_STR, offsetof(struct command_in, cwd), 0, ENGINE_PATH_MAX - 2, false, ""},
};
/* clang-format on */

/* Old clients do not say, and write to it. */
static void start_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct start_in *)in)->stdin_open = true;
}

static const struct surface_input start_input = {
    SURFACE_INPUT(start_fields, struct start_in),
    .body_max = CONNECT_MESSAGE_MAX,
    .defaults = start_defaults,
    .unwrap = connect_unwrap,
};

static void on_started(void *arg, const struct process_started *m)
{
    struct watching *w = arg;

    if (w->c->r != NULL)
        send_start(w, m->pid, false);
}

/* Nothing and what is relative is in the user's home, unless the image of the
 * template has a directory of its own. */
static const char *cwd_of(const struct sandbox *s, const char *cwd, char out[ENGINE_PATH_MAX + 1])
{
    bool image = s->image_len > 0;

    if (cwd == NULL || *cwd == '\0')
        return image ? NULL : "~";
    if (*cwd == '/' || *cwd == '~')
        return cwd;
    str_fmt(out, ENGINE_PATH_MAX + 1, "~/%s", cwd);
    return out;
}

/* By a shell only where the program is not there: it says so and exits 127, as
 * clients expect. */
static const char **argv_of(const struct command_in *in, bool by_shell)
{
    static const char *const shell[] = {"/bin/sh", "-c", "exec \"$0\" \"$@\""};
    size_t before = by_shell ? ARRAY_LEN(shell) : 0, n = json_array_size(in->args);
    const char **argv = mem_zeroed(before + n + 2, sizeof(*argv));

    memcpy(argv, shell, before * sizeof(*argv));
    argv[before] = in->cmd;
    for (size_t i = 0; i < n; i++)
        argv[before + 1 + i] = json_string_value(json_array_get(in->args, i));
    return argv;
}

static void start_failed(void *arg, const struct err *e);

static const struct process_ops start_ops = {
    .on_started = on_started, .on_output = on_output, .on_exit = on_exit_, .on_fail = start_failed};

static int run(struct watching *w, const struct start_in *in, const struct command_in *cmd,
               struct err *e)
{
    struct call *c = w->c;
    const struct sandbox *s = engine_find(c->plane->engine, c->ref.id);
    autobuf struct buf env = BUF_INIT(PROCESS_ARGS_MAX);
    autofree const char **argv = argv_of(cmd, w->by_shell);
    struct process_term term = {0};
    struct process_opts o = {.id = in->tag,
                             .argv = argv,
                             .timeout_ms = connect_timeout_ms(c),
                             .stdin_open = in->stdin_open,
                             .whole = in->pty == NULL,
                             .reuse = in->tag != NULL,
                             .term = in->pty != NULL ? &term : NULL};
    char cwd[ENGINE_PATH_MAX + 1];

    if (s == NULL)
        return err_set(e, ERR_GONE, "sandbox %s was deleted", c->ref.id);
    e2b_add_env(&env, s);
    if (maps_env(cmd->envs, &env, e) < 0 || e2b_user(c, w->user, &o.user, e) < 0 ||
        (in->pty != NULL && pty_size(in->pty, &term.cols, &term.rows, e) < 0))
        return -1;
    w->pty = in->pty != NULL;
    o.cwd = w->homeless ? "/" : cwd_of(s, cmd->cwd, cwd);
    o.env = buf_data(&env);
    o.env_len = env.len;
    call_expect(c, &call_stream, process_run(c->ref, &o, false, &start_ops, w));
    return 0;
}

static int start(struct watching *w, const struct start_in *in, struct err *e)
{
    struct command_in cmd = {0};

    json_only(in->process, command_fields, ARRAY_LEN(command_fields));
    if (json_decode(in->process, command_fields, ARRAY_LEN(command_fields), &cmd, e) < 0)
        return err_wrap(e, "process");
    return run(w, in, &cmd, e);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* True: it can be started in another way, as login does for users without a home. */
static bool try_again(struct watching *w, const char *cwd, const struct err *why)
{
    bool *way = begins(why->msg, "cwd ") ? &w->homeless : &w->by_shell;

    if (*way || (way == &w->homeless && cwd != NULL && *cwd != '\0'))
        return false;
    *way = true;
    return true;
}

/* Init says in words what could not be done; clients branch on what that was. */
static void start_failed(void *arg, const struct err *why)
{
    struct watching *w = arg;
    struct call *c = w->c;
    const struct start_in *in = c->in;
    const char *cwd = json_string_value(json_object_get(in->process, "cwd"));
    struct err e = *why;

    if (w->begun || why->kind != ERR_CANNOT_START) {
        on_fail(arg, why);
        return;
    }
    if (!call_told(c))
        return;
    if (begins(why->msg, "user "))
        err_set(&e, ERR_UNAUTHORIZED, "invalid username: '%s'", w->user);
    else if (try_again(w, cwd, why) && start(w, in, &e) == 0)
        return;
    else if (begins(e.msg, "cwd "))
        err_set(&e, ERR_INVALID, "cwd '%.300s' does not exist", cwd != NULL ? cwd : "/");
    connect_fail(c, &e); /* an authorized client gets this error in the stream */
}

static void process_start_(struct call *c, const void *in)
{
    struct watching *w = call_state(c, sizeof(*w), watching_drop);
    struct err e;

    w->c = c;
    call_keep_input(c);
    if (start(w, in, &e) < 0)
        connect_fail(c, &e);
}

/* ---- Connect ---- */

struct connect_in {
    json_t *process;
};

static const struct json_field connect_fields[] = {
    {"process", JSON_FIELD_ANY, offsetof(struct connect_in, process), 0, 0, true, ""},
};
static const struct surface_input connect_input = {
    SURFACE_INPUT(connect_fields, struct connect_in),
    .unwrap = connect_unwrap,
};

static void found(void *arg, const struct process_info *p, const struct err *e)
{
    static const struct process_ops ops = {
        .on_output = on_output, .on_exit = on_exit_, .on_fail = on_fail};
    struct watching *w = arg;
    struct call *c = w->c;

    if (!call_told(c))
        return;
    if (p == NULL) {
        selector_fail(c, &w->who, e);
        return;
    }
    w->pty = process_is_pty(p);
    send_start(w, p->pid, true);
    if (c->r != NULL)
        call_expect(c, &call_stream, process_take_over(c->ref, p->id, p->output_first, &ops, w));
}

static void process_connect(struct call *c, const void *in)
{
    struct watching *w = call_state(c, sizeof(*w), watching_drop);
    struct err e;

    w->c = c;
    if (selector_read(((const struct connect_in *)in)->process, &w->who, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, w->who.id, found, w);
}

/* clang-format off */
const struct surface_row e2b_process[] = {
    {{"POST", "/process.Process/Start"}, SCOPE_RUN, process_start_, "start",
     "Runs a command and streams what it prints.", .body = &start_input, .status = 200},
    {{"POST", "/process.Process/Connect"}, SCOPE_RUN, process_connect, "connect",
     "Streams what a command printed and prints.", .body = &connect_input, .status = 200},
    {.op = NULL},
};
/* clang-format on */
