/* session_commands.c - what runs in a session: commands, with their results by id, and
 * processes from its state. What a command printed is in logs.c. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/session.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/listing.h"
#include "front/planes/native/run/exec.h"

#define LIST_BYTES_MAX (16u << 20)
#define OUTPUT_DEFAULT (1u << 20)
#define OUTPUT_MAX (64u << 20)
#define SCRIPT_BODY_MAX (40u << 20) /* a command and its stdin, and what JSON adds to text */

/* ---- answers ---- */

struct command_view {
    const char *id, *state, *text;
    uint64_t started_ms, ended_ms, timeout_ms, first, end;
    const struct exit_view *exit;
    struct exit_view exit_of;
    bool never_ran;
};

/* clang-format off */
static const struct shape_field command_fields[] = {
    {"id", SHAPE_STR, offsetof(struct command_view, id), "Its name among the commands of the session."},
    {"state", SHAPE_STR, offsetof(struct command_view, state), "queued, running, done, or never_run: the session ended first."},
    {"command", SHAPE_STR, offsetof(struct command_view, text), "Its text; the beginning, if it is long."},
    {"started_at", SHAPE_TIME, offsetof(struct command_view, started_ms), "When it began, or was queued."},
    {"ended_at", SHAPE_TIME, offsetof(struct command_view, ended_ms), "When it ended; null: it did not.", SHAPE_NULLABLE},
    {"timeout_ms", SHAPE_U64, offsetof(struct command_view, timeout_ms), "Its time limit; 0: none."},
    {"exit", SHAPE_OBJECT, offsetof(struct command_view, exit), "How it ended; null: it did not.", SHAPE_NULLABLE, &exit_shape},
    {"output_first", SHAPE_U64, offsetof(struct command_view, first), "Position of the oldest byte of its output still kept."},
    {"output_end", SHAPE_U64, offsetof(struct command_view, end), "Position behind the newest; background processes may add to it."},
};
static SHAPE(command_shape, "SessionCommand", "A command of a session.", command_fields);

static const struct shape_field commands_fields[] = {
    {"commands", SHAPE_LIST, offsetof(struct listing_view, rows), "In the order they were given; of those that ended the last ones.", SHAPE_ALWAYS, &command_shape},
};
static SHAPE(commands_shape, "SessionCommandList", "Commands of a session.", commands_fields);

struct started_view {
    const char *id;
    uint64_t pid, started_ms;
};
static const struct shape_field started_fields[] = {
    {"id", SHAPE_STR, offsetof(struct started_view, id), "Its name among the processes of the sandbox."},
    {"pid", SHAPE_U64, offsetof(struct started_view, pid), "Its number inside the sandbox."},
    {"started_at", SHAPE_TIME, offsetof(struct started_view, started_ms), "When it started."},
};
static SHAPE(started_shape, "SessionProcess", "A process that was started from a session.", started_fields);
/* clang-format on */

static void command_view_of(struct command_view *v, const struct process_info *p)
{
    static const char *const states[] = {"running", "done", "queued"};
    bool ended = p->state == PROCESS_EXITED, never = (p->flags & PROCESS_EXIT_NEVER_RAN) != 0;
    struct process_exit end = {
        .code = p->code, .signal = p->signal, .flags = p->flags, .ended_ms = p->ended_ms};

    exit_view_of(&v->exit_of, &end);
    v->id = session_ref_command(p->id);
    v->state = never ? "never_run" : states[p->state];
    v->text = p->argv.len > 0 ? p->argv.p : "";
    v->started_ms = p->started_ms;
    v->ended_ms = ended ? p->ended_ms : 0;
    v->timeout_ms = p->timeout_ms;
    v->exit = ended && !never ? &v->exit_of : NULL;
    v->first = p->output_first;
    v->end = p->output_end;
}

/* ---- commands ---- */

struct exec_in {
    const char *command, *command_base64, *id, *cwd, *input, *input_base64;
    json_t *env;
    uint64_t timeout_ms, max_output;
};
/* clang-format off */
static const struct json_field exec_fields[] = {
    {"command", JSON_FIELD_STR, offsetof(struct exec_in, command), 1, SESSION_SCRIPT_MAX, false,
     "A text for the session's bash, of at most 16 MiB."},
    {"command_base64", JSON_FIELD_STR, offsetof(struct exec_in, command_base64), 1, SCRIPT_BODY_MAX, false,
     "The same for bytes that are not UTF-8; exactly one of the two."},
    {"id", JSON_FIELD_STR, offsetof(struct exec_in, id), 1, PROCESS_ID_MAX, false,
     "Its name among the commands of the session, to ask for its result again; without it one is chosen."},
    {"cwd", JSON_FIELD_STR, offsetof(struct exec_in, cwd), 1, ENGINE_PATH_MAX, false,
     "Where it runs; the session is back where it was afterwards."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct exec_in, env), 0, MAPS_ENV_MAX, false,
     "Variables of this command only."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct exec_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false,
     "After this many ms what it started is killed; 0 or nothing: as the session says."},
    {"stdin", JSON_FIELD_STR, offsetof(struct exec_in, input), 0, SESSION_SCRIPT_MAX, false,
     "What it reads from stdin; without it the end of file."},
    {"stdin_base64", JSON_FIELD_STR, offsetof(struct exec_in, input_base64), 0, SCRIPT_BODY_MAX, false,
     "The same for bytes that are not text; not both."},
    {"max_output", JSON_FIELD_U64, offsetof(struct exec_in, max_output), 1, OUTPUT_MAX, false,
     "Bytes kept of each of stdout and stderr in a JSON answer; without it 1 MiB."},
};
/* clang-format on */

static void exec_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct exec_in *)in)->max_output = OUTPUT_DEFAULT;
}

static const struct surface_input exec_input = {
    SURFACE_INPUT(exec_fields, struct exec_in),
    .body_max = SCRIPT_BODY_MAX,
    .defaults = exec_defaults,
};

static void exec(struct call *c, const void *body)
{
    autobuf struct buf env = BUF_INIT(PROCESS_ARGS_MAX), text = BUF_INIT(SESSION_SCRIPT_MAX),
                       input = BUF_INIT(SESSION_SCRIPT_MAX);
    const struct exec_in *in = body;
    struct session_exec o = {
        .session = call_param(c, 1), .id = in->id, .cwd = in->cwd, .timeout_ms = in->timeout_ms};
    struct err e;

    if (maps_env(in->env, &env, &e) < 0 ||
        exec_decode_input("command", in->command, in->command_base64, &text, &e) < 0 ||
        exec_decode_input("stdin", in->input, in->input_base64, &input, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    o.text = buf_data(&text);
    o.text_len = text.len;
    o.input = buf_data(&input);
    o.input_len = input.len;
    o.env = buf_data(&env);
    o.env_len = env.len;
    exec_start(c, &(struct exec_opts){
                      .session = &o, .how = call_accept(c), .max_output = (size_t)in->max_output});
}

static void list_command(void *arg, const struct process_info *p)
{
    struct listing *l = arg;
    struct command_view v;

    command_view_of(&v, p);
    shape_append(&l->rows, &command_shape, &v);
}

static void commands(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &commands_shape, LIST_BYTES_MAX, NULL);

    (void)in;
    if (l != NULL)
        session_commands(c->ref, call_param(c, 1), list_command, listing_done, l);
}

static void got_command(void *arg, const struct process_info *p, const struct err *e)
{
    struct call *c = arg;
    struct command_view v;

    if (!call_got(c, e))
        return;
    command_view_of(&v, p);
    call_reply_shape(c, &command_shape, &v);
}

static void get_command(struct call *c, const void *in)
{
    char ref[PROCESS_REF_MAX + 1];

    (void)in;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, session_ref(ref, call_param(c, 1), call_param(c, 2)), got_command, c);
}

struct wait_in {
    uint64_t timeout_ms;
};
static const struct json_field wait_fields[] = {
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct wait_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX,
     false, "Give up after this many ms (408); 0 or nothing: never."},
};
static const struct surface_input wait_input = {SURFACE_INPUT(wait_fields, struct wait_in)};

static void waited(void *arg, const struct process_exit *m, const struct err *e)
{
    struct call *c = arg;
    char ref[PROCESS_REF_MAX + 1];

    (void)m;
    if (!call_got(c, e))
        return;
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, session_ref(ref, call_param(c, 1), call_param(c, 2)), got_command, c);
}

static void wait_command(struct call *c, const void *body)
{
    const struct wait_in *in = body;
    char ref[PROCESS_REF_MAX + 1];

    call_expect(c, &call_wait,
                process_wait(c->ref, session_ref(ref, call_param(c, 1), call_param(c, 2)),
                             in->timeout_ms, waited, c));
}

/* ---- processes ---- */

struct start_in {
    struct command cmd;
    const char *id;
    bool keep_stdin;
};
/* clang-format off */
static const struct json_field start_fields[] = {
    {"id", JSON_FIELD_STR, offsetof(struct start_in, id), 1, PROCESS_ID_MAX, false,
     "Its name among the processes; without it one is chosen. One that is in use is refused (409)."},
    {"argv", JSON_FIELD_STRLIST, offsetof(struct start_in, cmd.argv), 1, COMMAND_ARGS_MAX, false,
     "The program, or a function of the session, and its arguments. Exactly one of argv and command."},
    {"command", JSON_FIELD_STR, offsetof(struct start_in, cmd.command), 1, PROCESS_ARGS_MAX, false,
     "A text for bash. Exactly one of argv and command."},
    {"cwd", JSON_FIELD_STR, offsetof(struct start_in, cmd.cwd), 1, ENGINE_PATH_MAX, false,
     "Working directory; without it the session's."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct start_in, cmd.env), 0, MAPS_ENV_MAX, false,
     "Variables of this process, over those of the session."},
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

static void started(void *arg, const struct process_started *m, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (m == NULL)
        call_fail(c, e);
    else
        call_reply_shape(c, &started_shape, &(struct started_view){m->id, m->pid, m->started_ms});
}

static void start(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    const struct start_in *in = body;
    struct err e;

    if (command_decode(&in->cmd, &cmd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    cmd.o.id = in->id;
    cmd.o.stdin_open = in->keep_stdin;
    call_expect(c, &call_wait, session_start(c->ref, call_param(c, 1), &cmd.o, started, c));
}

/* clang-format off */
#define SESSIONS "/v1/sandboxes/{id}/sessions"
const struct surface_row surface_session_commands[] = {
    {{"POST",   SESSIONS "/{sid}/exec"}, SCOPE_RUN, exec, "execInSession",
     "Runs a command in the session after those that came before it; 410 if the session has ended. A client that leaves ends nothing.",
     .body = &exec_input, .status = 200, .answers = {&exec_session_shape},
     .events = "start (ExecStart); stdout and stderr ({data, encoding?}), each with the position behind it as its id; "
               "at last exit (SessionExit) or error (Error)",
     .event_shapes = {&exec_start_shape, &exec_session_exit_shape},
     .flags = SURFACE_RAW_ANSWER},
    {{"GET",    SESSIONS "/{sid}/commands"}, SCOPE_READ, commands, "listSessionCommands",
     "Lists commands that wait, run, or ended and are still kept.",
     .status = 200, .answers = {&commands_shape}},
    {{"GET",    SESSIONS "/{sid}/commands/{cid}"}, SCOPE_READ, get_command, "getSessionCommand",
     "Shows a command of a session and how it ended.",
     .status = 200, .answers = {&command_shape}},
    {{"POST",   SESSIONS "/{sid}/commands/{cid}/wait"}, SCOPE_READ, wait_command, "waitForSessionCommand",
     "Waits until a command of a session has ended.",
     .body = &wait_input, .status = 200, .answers = {&command_shape}},
    {{"POST",   SESSIONS "/{sid}/processes"}, SCOPE_RUN, start, "startSessionProcess",
     "Starts a process from the state that the session has when the commands before it are over; nothing of it comes back.",
     .body = &start_input, .status = 201, .answers = {&started_shape}},
    {.op = NULL},
};
/* clang-format on */
