/* sessions.c - shells that remember: create, list, see, delete, interrupt. What they run is
 * in session_commands.c. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/session.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/listing.h"

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
    {"id", SHAPE_STR, offsetof(struct session_view, id), "Its name in every other call."},
    {"state", SHAPE_STR, offsetof(struct session_view, state), "idle, busy or ended."},
    {"pid", SHAPE_U64, offsetof(struct session_view, pid), "Number of its bash inside the sandbox."},
    {"user", SHAPE_STR, offsetof(struct session_view, user), "As whom it runs.", SHAPE_NULLABLE},
    {"cwd", SHAPE_STR, offsetof(struct session_view, cwd), "Where it is now.", SHAPE_NULLABLE},
    {"created_at", SHAPE_TIME, offsetof(struct session_view, created_ms), "When it was created."},
    {"timeout_ms", SHAPE_U64, offsetof(struct session_view, timeout_ms), "Time limit of a command that names none; 0: none."},
    {"restart", SHAPE_BOOL, offsetof(struct session_view, restart), "`exit` ends a command only."},
    {"restarts", SHAPE_U64, offsetof(struct session_view, restarts), "How often a command ended its shell and it went on with its state."},
    {"queued", SHAPE_U64, offsetof(struct session_view, queued), "Commands that wait."},
    {"command", SHAPE_STR, offsetof(struct session_view, command), "The one that runs.", SHAPE_NULLABLE},
    {"ended_at", SHAPE_TIME, offsetof(struct session_view, ended_ms), "When it ended; null: it did not.", SHAPE_NULLABLE},
    {"reason", SHAPE_STR, offsetof(struct session_view, reason), "Why it ended.", SHAPE_NULLABLE},
    {"exit_code", SHAPE_U64, offsetof(struct session_view, code), "With what its shell ended.", SHAPE_OMITTED},
    {"signal", SHAPE_STR, offsetof(struct session_view, signal), "The signal that ended its shell.", SHAPE_NULLABLE},
};
static SHAPE(session_shape, "Session", "A shell that remembers.", session_fields);

static const struct shape_field list_fields[] = {
    {"sessions", SHAPE_LIST, offsetof(struct listing_view, rows), "Those that run, and those that ended and were not deleted.", SHAPE_ALWAYS, &session_shape},
    LISTING_NEXT,
};
static SHAPE(list_shape, "SessionList", "Sessions of a sandbox.", list_fields);

struct interrupt_view {
    bool interrupted;
};
static const struct shape_field interrupt_fields[] = {
    {"interrupted", SHAPE_BOOL, offsetof(struct interrupt_view, interrupted), "A command was running; it ends with 130."},
};
static SHAPE(interrupt_shape, "SessionInterrupt", "Whether there was something to interrupt.", interrupt_fields);

/* clang-format on */

static const char *or_null(const char *s)
{
    return *s != '\0' ? s : NULL;
}

static void session_view_of(struct session_view *v, const struct session_info *s)
{
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

struct create_in {
    const char *id, *cwd, *user;
    json_t *env;
    uint64_t timeout_ms;
    bool restart;
};
/* clang-format off */
static const struct json_field create_fields[] = {
    {"id", JSON_FIELD_STR, offsetof(struct create_in, id), 1, PROCESS_ID_MAX, false,
     "Its name, of letters, digits, '.', '_' and '-'; without it one is chosen. One that is in use is refused (409)."},
    {"cwd", JSON_FIELD_STR, offsetof(struct create_in, cwd), 1, ENGINE_PATH_MAX, false,
     "Where it begins; without it /workspace."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct create_in, env), 0, MAPS_ENV_MAX, false,
     "Variables it begins with, over those of the sandbox."},
    {"user", JSON_FIELD_STR, offsetof(struct create_in, user), 1, ENGINE_USER_MAX, false,
     "A user's name, uid, or uid:gid; without it user."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct create_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false,
     "Time limit of each command that names none; 0 or nothing: none."},
    {"restart", JSON_FIELD_BOOL, offsetof(struct create_in, restart), 0, 0, false,
     "`exit` ends a command and not the session, which goes on with all its state."},
};
/* clang-format on */
static const struct surface_input create_input = {
    SURFACE_INPUT(create_fields, struct create_in),
    .body_max = COMMAND_BODY_MAX,
};

static void got(void *arg, const struct session_info *s, const struct err *e)
{
    struct call *c = arg;
    struct session_view v;

    if (!call_got(c, e))
        return;
    session_view_of(&v, s);
    call_reply_shape(c, &session_shape, &v);
}

static void create(struct call *c, const void *body)
{
    autobuf struct buf env = BUF_INIT(PROCESS_ARGS_MAX);
    const struct create_in *in = body;
    struct session_opts o = {.id = in->id,
                             .cwd = in->cwd,
                             .user = in->user,
                             .timeout_ms = in->timeout_ms,
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
    struct listing *l = arg;
    struct session_view v;

    if (!listing_takes(l, s->id, s->created_ms))
        return;
    session_view_of(&v, s);
    shape_append(&l->rows, &session_shape, &v);
}

static void list(struct call *c, const void *in)
{
    struct listing *l = listing_new(c, &list_shape, LIST_BYTES_MAX, in);

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

    if (!call_told(c))
        return;
    if (e != NULL)
        call_fail(c, e);
    else
        call_reply_shape(c, &interrupt_shape, &(struct interrupt_view){value != 0});
}

static void interrupt(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    session_interrupt(c->ref, call_param(c, 1), interrupted, c);
}

/* clang-format off */
#define SESSIONS "/v1/sandboxes/{id}/sessions"
const struct surface_row surface_sessions[] = {
    {{"POST",   SESSIONS}, SCOPE_RUN, create, "createSession",
     "Starts a bash whose state is kept from one command to the next.",
     .body = &create_input, .status = 201, .answers = {&session_shape}},
    {{"GET",    SESSIONS}, SCOPE_READ, list, "listSessions",
     "Lists the sessions that run, and those that ended and were not deleted.", .query = &listing_query,
     .status = 200, .answers = {&list_shape}},
    {{"GET",    SESSIONS "/{sid}"}, SCOPE_READ, get, "getSession",
     "Shows a session, also one that has ended, and why it did.",
     .status = 200, .answers = {&session_shape}},
    {{"DELETE", SESSIONS "/{sid}"}, SCOPE_RUN, delete, "deleteSession",
     "Ends a session and everything its commands left running; answers when all of it is dead.",
     .status = 204},
    {{"POST",   SESSIONS "/{sid}/interrupt"}, SCOPE_RUN, interrupt, "interruptSession",
     "Kills everything the running command started; the shell keeps its state and goes on.",
     .status = 200, .answers = {&interrupt_shape}},
    {.op = NULL},
};
/* clang-format on */
