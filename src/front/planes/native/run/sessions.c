/* sessions.c - shells that keep their state between commands: create, list, show, delete,
 * interrupt; run commands in them, get their results by id, and start processes from their
 * state. The output of a command is in logs.c, the way to init in front/engine/run/session.c. */
#include <assert.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/session.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/listing.h"
#include "front/planes/native/run/exec.h"

#define LIST_BYTES_MAX (16u << 20)

/* ---- answers ---- */

struct session_view {
    const char *id, *state, *user, *cwd, *command, *signal, *reason;
    uint64_t pid, created_ms, ended_ms, timeout_ms, queued, restarts;
    uint64_t code;
    bool restart;
    char signal_text[16];
};

/* clang-format off */
static const struct shape_field session_fields[] = {
    {"id", SHAPE_STR, offsetof(struct session_view, id), "Id."},
    {"state", SHAPE_STR, offsetof(struct session_view, state), "idle, busy or ended."},
    {"pid", SHAPE_U64, offsetof(struct session_view, pid), "Pid of its bash inside the sandbox."},
    {"user", SHAPE_STR, offsetof(struct session_view, user), "User it runs as.", SHAPE_NULLABLE},
    {"cwd", SHAPE_STR, offsetof(struct session_view, cwd), "Current working directory.", SHAPE_NULLABLE},
    {"created_at", SHAPE_TIME, offsetof(struct session_view, created_ms), "Time of creation."},
    {"timeout_ms", SHAPE_U64, offsetof(struct session_view, timeout_ms), "Default time limit of a command in milliseconds; 0: no limit."},
    {"restart", SHAPE_BOOL, offsetof(struct session_view, restart), "`exit` ends the command and not the session."},
    {"restarts", SHAPE_U64, offsetof(struct session_view, restarts), "How often its shell was restarted after an `exit`."},
    {"queued", SHAPE_U64, offsetof(struct session_view, queued), "Number of queued commands."},
    {"command", SHAPE_STR, offsetof(struct session_view, command), "Id of the running command.", SHAPE_NULLABLE},
    {"ended_at", SHAPE_TIME, offsetof(struct session_view, ended_ms), "Time of its end; null if it has not ended.", SHAPE_NULLABLE},
    {"reason", SHAPE_STR, offsetof(struct session_view, reason), "Why it ended.", SHAPE_NULLABLE},
    {"exit_code", SHAPE_U64, offsetof(struct session_view, code), "Exit code of its shell.", SHAPE_OMITTED},
    {"signal", SHAPE_STR, offsetof(struct session_view, signal), "Signal that ended its shell.", SHAPE_NULLABLE},
};
static SHAPE(session_shape, "Session", "A shell that keeps its state between commands.", session_fields);

static const struct shape_field list_fields[] = {
    {"sessions", SHAPE_LIST, offsetof(struct listing_view, rows), "Running sessions, and ended ones that were not deleted.", SHAPE_ALWAYS, &session_shape},
    LISTING_NEXT,
};
static SHAPE(list_shape, "SessionList", "Sessions of a sandbox.", list_fields);

struct interrupt_view {
    bool interrupted;
};
static const struct shape_field interrupt_fields[] = {
    {"interrupted", SHAPE_BOOL, offsetof(struct interrupt_view, interrupted), "Whether a command was running; it exits with 130."},
};
static SHAPE(interrupt_shape, "SessionInterrupt", "Result of an interrupt.", interrupt_fields);

/* clang-format on */

static const char *or_null(const char *s)
{
    return *s != '\0' ? s : NULL;
}

static void session_view_of(void *view, const void *session_info)
{
    const struct session_info *s = session_info;
    struct session_view *v = view;
    static const char *const states[] = {"idle", "busy", "ended"};

    *v = (struct session_view){
        .id = s->id,
        .state = states[s->state],
        .user = or_null(s->user),
        .cwd = or_null(s->cwd),
        .command = or_null(s->command),
        .reason = or_null(s->why),
        .pid = s->pid,
        .created_ms = s->created_ms,
        .ended_ms = s->ended_ms,
        .timeout_ms = s->timeout_ms,
        .restart = (s->flags & SESSION_RESTARTS) != 0,
        .restarts = s->restarts,
        .queued = s->queued,
        .code = s->code,
    };
    v->signal = signal_name(s->signal, v->signal_text);
}

/* ---- create ---- */

static_assert(sizeof(struct session_view) <= RESOURCE_VIEW_MAX, "");
static const struct resource sessions = {&session_shape, &list_shape, LIST_BYTES_MAX,
                                         session_view_of};

static void got(void *arg, const struct session_info *s, const struct err *e)
{
    resource_reply(arg, &sessions, s, e);
}

static void create(struct call *c, const void *body)
{
    autobuf struct buf env = BUF_INIT(PROCESS_ARGS_MAX);
    const struct command *in = body;
    struct session_opts o = {.id = in->o.id,
                             .cwd = in->o.cwd,
                             .user = in->o.user,
                             .timeout_ms = in->o.timeout_ms,
                             .restart = in->restart};
    struct err e;

    if (maps_env(in->env, &env, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    o.env = buf_data(&env);
    o.env_len = env.len;
    call_expect(c, &call_pending, NULL);
    session_create(c->ref, &o, got, c);
}

/* ---- list, get, delete, interrupt ---- */

static void list_session(void *arg, const struct session_info *s)
{
    listing_add(arg, s->id, s->created_ms, s);
}

static void list(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &sessions, in);

    if (l != NULL)
        session_list(c->ref, list_session, listing_done, l);
}

static void get(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    session_get(c->ref, call_param(c, 1), got, c);
}

static void delete (struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    session_delete(c->ref, call_param(c, 1), call_told_done, c);
}

static void interrupted(void *arg, uint64_t value, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        call_reply_shape(c, &interrupt_shape, &(struct interrupt_view){value != 0});
}

static void interrupt(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    session_interrupt(c->ref, call_param(c, 1), interrupted, c);
}

/* ---- what runs in it: commands, and processes from its state ---- */

struct command_view {
    const char *id, *state, *text;
    uint64_t started_ms, ended_ms, timeout_ms, first, end;
    const struct exit_view *exit;
    struct exit_view exit_of;
    bool never_ran;
};

/* clang-format off */
static const struct shape_field command_fields[] = {
    {"id", SHAPE_STR, offsetof(struct command_view, id), "Id of the command within the session."},
    {"state", SHAPE_STR, offsetof(struct command_view, state), "queued, running, done, or never_run if the session ended first."},
    {"command", SHAPE_STR, offsetof(struct command_view, text), "Text of the command; truncated if long."},
    {"started_at", SHAPE_TIME, offsetof(struct command_view, started_ms), "Time of the start, or of queueing."},
    {"ended_at", SHAPE_TIME, offsetof(struct command_view, ended_ms), "Time of its end; null if it has not ended.", SHAPE_NULLABLE},
    {"timeout_ms", SHAPE_U64, offsetof(struct command_view, timeout_ms), "Time limit in milliseconds; 0: none."},
    {"exit", SHAPE_OBJECT, offsetof(struct command_view, exit), "How it ended; null if it has not ended.", SHAPE_NULLABLE, &exit_shape},
    {"output_first", SHAPE_U64, offsetof(struct command_view, first), "Position of the oldest byte of its output that is kept."},
    {"output_end", SHAPE_U64, offsetof(struct command_view, end), "Position after the newest byte; background processes may add more."},
};
static SHAPE(command_shape, "SessionCommand", "A command of a session.", command_fields);

static const struct shape_field commands_fields[] = {
    {"commands", SHAPE_LIST, offsetof(struct listing_view, rows), "Commands in order; of the ended ones only the latest.", SHAPE_ALWAYS, &command_shape},
};
static SHAPE(commands_shape, "SessionCommandList", "Commands of a session.", commands_fields);

struct started_view {
    const char *id;
    uint64_t pid, started_ms;
};
static const struct shape_field started_fields[] = {
    {"id", SHAPE_STR, offsetof(struct started_view, id), "Id among the processes of the sandbox."},
    {"pid", SHAPE_U64, offsetof(struct started_view, pid), "Pid inside the sandbox."},
    {"started_at", SHAPE_TIME, offsetof(struct started_view, started_ms), "Time of the start."},
};
static SHAPE(started_shape, "SessionProcess", "A process started from a session.", started_fields);
/* clang-format on */

static void command_view_of(void *view, const void *process_info)
{
    const struct process_info *p = process_info;
    struct command_view *v = view;
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

static_assert(sizeof(struct command_view) <= RESOURCE_VIEW_MAX, "");
static const struct resource session_commands_of = {&command_shape, &commands_shape, LIST_BYTES_MAX,
                                                    command_view_of};

static void exec(struct call *c, const void *body)
{
    autobuf struct buf env = BUF_INIT(PROCESS_ARGS_MAX);
    const struct command *in = body;
    struct session_exec o = {.session = call_param(c, 1),
                             .id = in->o.id,
                             .cwd = in->o.cwd,
                             .timeout_ms = in->o.timeout_ms};
    struct err e;

    if (maps_env(in->env, &env, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    o.whole = &c->unfolded;
    o.text = buf_data(&c->unfolded);
    o.text_len = in->command_len;
    o.input_len = c->unfolded.len - in->command_len;
    o.env = buf_data(&env);
    o.env_len = env.len;
    exec_start(c, &(struct exec_opts){
                      .session = &o, .how = call_accept(c), .max_output = (size_t)in->max_output});
}

static void list_command(void *arg, const struct process_info *p)
{
    listing_add(arg, p->id, p->started_ms, p);
}

static void commands(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &session_commands_of, NULL);

    (void)in;
    if (l != NULL)
        session_commands(c->ref, call_param(c, 1), list_command, listing_done, l);
}

static void got_command(void *arg, const struct process_info *p, const struct err *e)
{
    resource_reply(arg, &session_commands_of, p, e);
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
     false, "Time limit in milliseconds (then 408). Default: 0, no limit."},
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

static void started(void *arg, const struct process_started *m, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        call_reply_shape(c, &started_shape, &(struct started_view){m->id, m->pid, m->started_ms});
}

static void start(struct call *c, const void *body)
{
    autocommand struct command_opts cmd = {0};
    struct err e;

    if (command_decode(body, &cmd, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_wait, session_start(c->ref, call_param(c, 1), &cmd.o, started, c));
}

/* clang-format off */
#define SESSIONS "/v1/sandboxes/{id}/sessions"
const struct surface_row surface_sessions[] = {
    {{"POST",   SESSIONS}, SCOPE_RUN, create, "createSession",
     "Starts a bash that keeps its state between commands.",
     .body = &command_session, .status = 201, .answers = {&session_shape}},
    {{"GET",    SESSIONS}, SCOPE_READ, list, "listSessions",
     "Lists running sessions, and ended ones that were not deleted.", .query = &listing_query,
     .status = 200, .answers = {&list_shape}},
    {{"GET",    SESSIONS "/{sid}"}, SCOPE_READ, get, "getSession",
     "Shows a session, and why it ended.",
     .status = 200, .answers = {&session_shape}},
    {{"DELETE", SESSIONS "/{sid}"}, SCOPE_RUN, delete, "deleteSession",
     "Deletes a session and kills everything its commands left running; answers when all is dead.",
     .status = 204},
    {{"POST",   SESSIONS "/{sid}/interrupt"}, SCOPE_RUN, interrupt, "interruptSession",
     "Interrupts the running command: kills everything it started. The shell keeps its state.",
     .status = 200, .answers = {&interrupt_shape}},
    {{"POST",   SESSIONS "/{sid}/exec"}, SCOPE_RUN, exec, "execInSession",
     "Runs a command in the session, after those queued before it. 410 if the session has ended. The command continues if the client disconnects.",
     .body = &command_session_exec, .status = 200, .answers = {&exec_session_shape},
     .events = "start (ExecStart); stdout and stderr ({data, encoding?}), with the position after the data as id; finally exit (SessionExit) or error (Error)",
     .event_shapes = {&exec_start_shape, &exec_session_exit_shape},
     .flags = SURFACE_RAW_ANSWER},
    {{"GET",    SESSIONS "/{sid}/commands"}, SCOPE_READ, commands, "listSessionCommands",
     "Lists queued, running and ended commands that are still kept.",
     .status = 200, .answers = {&commands_shape}},
    {{"GET",    SESSIONS "/{sid}/commands/{cid}"}, SCOPE_READ, get_command, "getSessionCommand",
     "Shows a command of a session.",
     .status = 200, .answers = {&command_shape}},
    {{"POST",   SESSIONS "/{sid}/commands/{cid}/wait"}, SCOPE_READ, wait_command, "waitForSessionCommand",
     "Waits until a command of a session ends.",
     .body = &wait_input, .status = 200, .answers = {&command_shape}},
    {{"POST",   SESSIONS "/{sid}/processes"}, SCOPE_RUN, start, "startSessionProcess",
     "Starts a process with the state of the session after the commands queued before it. The process does not change that state.",
     .body = &command_session_process, .status = 201, .answers = {&started_shape}},
    {.op = NULL},
};
/* clang-format on */
