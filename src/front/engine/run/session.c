/* session.c - see session.h. */
#include "front/engine/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/command.h"
#include "front/engine/internal.h"

/* clang-format off */
static const struct talk_kind kind_create    = {INIT_SESSION_CREATE,    {{INIT_SESSION, TALK_LAST}}, .starts = true};
static const struct talk_kind kind_list      = {INIT_SESSION_LIST,      {{INIT_SESSION, TALK_MORE}, {INIT_END, TALK_LAST}}};
static const struct talk_kind kind_get       = {INIT_SESSION_GET,       {{INIT_SESSION, TALK_LAST}}};
static const struct talk_kind kind_delete    = {INIT_SESSION_DELETE,    {{INIT_OK, TALK_LAST}}};
static const struct talk_kind kind_interrupt = {INIT_SESSION_INTERRUPT, {{INIT_OK, TALK_LAST}}};
static const struct talk_kind kind_commands  = {INIT_SESSION_COMMANDS,  {{INIT_PROC, TALK_MORE}, {INIT_END, TALK_LAST}}};
static const struct talk_kind kind_start     = {INIT_SESSION_START,     {{INIT_STARTED, TALK_LAST}}, .starts = true};
/* clang-format on */

static const char noun[] = "session";

const char *session_ref(char out[INIT_REF_MAX + 1], const char *session, const char *command)
{
    str_fmt(out, INIT_REF_MAX + 1, "%.*s/%.*s", (int)INIT_ID_MAX, session, (int)INIT_ID_MAX,
            command);
    return out;
}

const char *session_ref_command(const char *ref)
{
    const char *slash = strchr(ref, '/');

    return slash != NULL ? slash + 1 : ref;
}

/* With the environment and the defaults of any command. */
void session_create(struct ref ref, const struct session_opts *o, session_cb *cb, void *arg)
{
    struct process_opts as = {.id = o->id,
                              .command = ":",
                              .cwd = o->cwd,
                              .user = o->user,
                              .env = o->env,
                              .env_len = o->env_len};
    struct process_call *c =
        process_call_new(ref.engine, &(struct process_call){.session = cb, .arg = arg});
    struct command cmd = {0};
    struct err e;
    struct box *b = box_running(ref, &e);

    if (b == NULL || command_build(&cmd, &b->pub, &as, &e) < 0) {
        process_call_fail(c, &e);
    } else {
        struct init_session_create m = {.id = o->id,
                                        .env = cmd.start.env,
                                        .cwd = cmd.start.cwd,
                                        .user = cmd.start.user,
                                        .timeout_ms = o->timeout_ms,
                                        .flags = o->restart ? INIT_SESSION_RESTART : 0,
                                        .ring = (uint32_t)ref.engine->o.config->output};

        process_call_begin(c, b, &kind_create, &m, 2 * PROCESS_DEADLINE_MS);
    }
    command_free(&cmd);
}

void session_list(struct ref ref, void (*each)(void *arg, const struct session_info *s),
                  engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .each_session = each, .arg = arg};
    struct init_session_list m = {0};

    process_ask(&as, ref, NULL, &kind_list, &m, PROCESS_DEADLINE_MS);
}

void session_get(struct ref ref, const char *id, session_cb *cb, void *arg)
{
    struct process_call as = {.session = cb, .arg = arg, .noun = noun};
    struct init_session_get m = {.id = id};

    process_ask(&as, ref, id, &kind_get, &m, PROCESS_DEADLINE_MS);
}

void session_delete(struct ref ref, const char *id, engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .arg = arg, .noun = noun};
    struct init_session_delete m = {.id = id};

    process_ask(&as, ref, id, &kind_delete, &m, SESSION_DELETE_MS);
}

void session_interrupt(struct ref ref, const char *id, process_value_cb *cb, void *arg)
{
    struct process_call as = {.value = cb, .arg = arg, .noun = noun};
    struct init_session_interrupt m = {.id = id};

    process_ask(&as, ref, id, &kind_interrupt, &m, PROCESS_DEADLINE_MS);
}

void session_commands(struct ref ref, const char *id,
                      void (*each)(void *arg, const struct process_info *p), engine_done_cb *cb,
                      void *arg)
{
    struct process_call as = {.done = cb, .each = each, .arg = arg, .noun = noun};
    struct init_session_commands m = {.id = id};

    process_ask(&as, ref, id, &kind_commands, &m, PROCESS_DEADLINE_MS);
}

/* ---- a command ---- */

static int strv_of(struct buf *out, const char *env, size_t len)
{
    for (size_t at = 0; at < len; at += strlen(env + at) + 1)
        wire_strv_add(out, env + at);
    return out->failed ? -1 : 0;
}

static int check_exec(const struct session_exec *o, struct err *e)
{
    if (!command_id_is_valid(o->session))
        return err_set(e, ERR_NOT_FOUND, "no session %.64s", o->session);
    if (o->text_len == 0)
        return err_set(e, ERR_INVALID, "command: must not be empty");
    if (o->text_len > INIT_SCRIPT_MAX || o->input_len > INIT_SCRIPT_MAX)
        return err_set(e, ERR_TOO_LARGE, "command and stdin: at most %u bytes each",
                       INIT_SCRIPT_MAX);
    if (memchr(o->text, '\0', o->text_len) != NULL)
        return err_set(e, ERR_INVALID, "command: must not contain a NUL byte");
    if (o->cwd != NULL && (*o->cwd == '\0' || strlen(o->cwd) > INIT_PATH_MAX))
        return err_set(e, ERR_INVALID, "cwd: expected a path of at most %u bytes", INIT_PATH_MAX);
    if (command_check_id(o->id, e) < 0)
        return -1;
    return command_check_env(o->env, o->env_len, e);
}

/* What does not fit into the first message. */
static int rest_of(const struct session_exec *o, size_t first, struct buf *out)
{
    if (o->whole != NULL) {
        *out = *o->whole;
        *o->whole = (struct buf){.max = out->max};
        buf_consume(out, first);
        return 0;
    }
    buf_init(out, 2 * (size_t)INIT_SCRIPT_MAX);
    buf_add(out, o->text + first, o->text_len - first);
    if (o->input_len > 0)
        buf_add(out, o->input, o->input_len);
    return out->failed ? -1 : 0;
}

struct process_stream *session_run(struct ref ref, const struct session_exec *o,
                                   const struct process_ops *ops, void *arg)
{
    autobuf struct buf env = BUF_INIT(INIT_ARGS_MAX), rest = {0};
    size_t first = o->text_len < INIT_CHUNK_MAX ? o->text_len : INIT_CHUNK_MAX;
    struct init_session_exec m;
    struct err e;
    struct box *b = box_running(ref, &e);

    if (b == NULL || check_exec(o, &e) < 0)
        return stream_fail(ref.engine, &e, ops, arg);
    if (strv_of(&env, o->env, o->env_len) < 0 || rest_of(o, first, &rest) < 0) {
        err_set(&e, ERR_TOO_LARGE, "environment: more than %u bytes", INIT_ARGS_MAX);
        return stream_fail(ref.engine, &e, ops, arg);
    }
    m = (struct init_session_exec){.session = o->session,
                                   .id = o->id,
                                   .text_len = (uint32_t)o->text_len,
                                   .stdin_len = (uint32_t)o->input_len,
                                   .cwd = o->cwd,
                                   .env = wire_strv_of(&env),
                                   .timeout_ms = o->timeout_ms,
                                   .flags =
                                       INIT_START_OWN | (b->pub.log_output ? INIT_START_LOG : 0u),
                                   .data = {o->text, (uint32_t)first}};
    return stream_session(ref.engine, b, &m, &rest, ops, arg);
}

/* ---- a process ---- */

struct process_call *session_start(struct ref ref, const char *session,
                                   const struct process_opts *o, process_started_cb *cb, void *arg)
{
    struct process_call as = {.started = cb, .arg = arg, .noun = noun};
    autobuf struct buf argv = BUF_INIT(INIT_ARGS_MAX), env = BUF_INIT(INIT_ARGS_MAX);
    struct init_session_start m = {.session = session,
                                   .id = o->id,
                                   .cwd = o->cwd,
                                   .flags = (o->stdin_open ? INIT_START_STDIN : 0u) |
                                            (o->command != NULL ? INIT_START_TEXT : 0u),
                                   .timeout_ms = o->timeout_ms,
                                   .ring = (uint32_t)ref.engine->o.config->output};
    const struct sandbox *sb = engine_get(ref);
    struct err e;

    if (sb != NULL && sb->log_output)
        m.flags |= INIT_START_LOG;
    if (o->command != NULL)
        wire_strv_add(&argv, o->command);
    for (size_t i = 0; o->argv != NULL && o->argv[i] != NULL; i++)
        wire_strv_add(&argv, o->argv[i]);
    if (strv_of(&env, o->env, o->env_len) < 0 || argv.failed ||
        argv.len + env.len > INIT_ARGS_MAX) {
        struct process_call *c = process_call_new(ref.engine, &as);

        err_set(&e, ERR_TOO_LARGE, "arguments and environment: more than %u bytes together",
                INIT_ARGS_MAX);
        process_call_fail(c, &e);
        return c;
    }
    m.argv = wire_strv_of(&argv);
    m.env = wire_strv_of(&env);
    ref.engine->stats.processes++;
    return process_ask(&as, ref, session, &kind_start, &m, 0);
}
