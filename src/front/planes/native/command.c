/* command.c - see command.h. */
#include "front/planes/native/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/session.h"
#include "front/planes/native/internal.h"
#include "mem/mem.h"

#define ARGS_MAX 65536u /* elements of argv */
#define OUTPUT_DEFAULT (1u << 20)
#define OUTPUT_MAX (64u << 20)
#define RING_LEAST (4u << 10)
#define RING_MOST (16u << 20)
#define SCRIPT_BODY_MAX (40u << 20) /* a command of a session and its stdin, as JSON */

/* Every field that such a request may have: name, type and bounds are here only. The text is an
 * argument where it differs between inputs. */
/* clang-format off */
#define FIELD(name, type, member, min, max, text) \
    {name, JSON_FIELD_##type, offsetof(struct command, member), min, max, false, text}

#define ID FIELD("id", STR, o.id, 1, PROCESS_ID_MAX, \
    "Id of letters, digits, '.', '_' and '-', not beginning with '.'. Default: the server chooses one. 409 if it is in use.")
#define ARGV(text) FIELD("argv", STRLIST, argv, 1, ARGS_MAX, text)
#define COMMAND(max, text) FIELD("command", STR, o.command, 1, max, text)
#define COMMAND_BASE64 FIELD("command_base64", STR, command_base64, 1, SCRIPT_BODY_MAX, \
    "The command as base64, for bytes that are not UTF-8. Exactly one of command and command_base64.")
#define CWD(text) FIELD("cwd", STR, o.cwd, 1, ENGINE_PATH_MAX, text)
#define ENV(text) FIELD("env", STRMAP, env, 0, MAPS_ENV_MAX, text)
#define USER FIELD("user", STR, o.user, 1, ENGINE_USER_MAX, \
    "User name, uid, or uid:gid. Default: `user`, or the user of the template's image.")
#define TIMEOUT(text) FIELD("timeout_ms", U64, o.timeout_ms, 0, COMMAND_TIMEOUT_MAX, text)
#define STDIN_TEXT(max, base64_max) FIELD("stdin", STR, input, 0, max, \
    "Bytes for stdin, as text; stdin is then closed. Default: an empty stdin."), \
    FIELD("stdin_base64", STR, input_base64, 0, base64_max, \
    "Bytes for stdin, as base64. At most one of stdin and stdin_base64.")
#define STDIN_OPEN FIELD("stdin", BOOL, o.stdin_open, 0, 0, \
    "Keep stdin open for later writes. Default: an empty stdin.")
#define MAX_OUTPUT FIELD("max_output", U64, max_output, 1, OUTPUT_MAX, \
    "Maximum bytes of stdout, and of stderr, in a JSON answer; the middle of longer output is dropped. Default: 1 MiB.")

#define ONE_OF "Exactly one of argv and command."
#define CWD_DEFAULT "Working directory; an error if it does not exist. Default: /workspace, or the directory of the template's image."
#define KILLS "Time limit in milliseconds; then the process and all its descendants are killed. "

static const struct json_field exec_fields[] = {
    ARGV("Program and arguments, run without a shell. " ONE_OF),
    COMMAND(PROCESS_ARGS_MAX, "Text for `bash -c`. " ONE_OF),
    CWD(CWD_DEFAULT), ENV("Environment variables; they override those of the sandbox."), USER,
    TIMEOUT(KILLS "0: no limit. Default: the setting `exec-timeout`."),
    STDIN_TEXT(COMMAND_BODY_MAX, COMMAND_BODY_MAX), MAX_OUTPUT,
};
static const struct json_field process_fields[] = {
    ID,
    ARGV("Program and arguments, run without a shell. " ONE_OF),
    COMMAND(PROCESS_ARGS_MAX, "Text for `bash -c`. " ONE_OF),
    CWD(CWD_DEFAULT), ENV("Environment variables; they override those of the sandbox."), USER,
    TIMEOUT(KILLS "Default: 0, no limit."),
    STDIN_OPEN,
};
static const struct json_field terminal_fields[] = {
    ID,
    FIELD("get_or_create", BOOL, get_or_create, 0, 0,
          "If a terminal with this id is running, return it (200) and ignore the other fields. Safe to call concurrently."),
    ARGV("Program and arguments. Default, without argv and command: a login bash."),
    COMMAND(PROCESS_ARGS_MAX, "Text for `bash -c`, instead of argv."),
    CWD(CWD_DEFAULT), ENV("Environment variables; they override those of the sandbox. TERM is xterm-256color by default."), USER,
    FIELD("cols", U64, cols, 1, TERMINAL_SIDE_MAX, "Columns. Default: 80."),
    FIELD("rows", U64, rows, 1, TERMINAL_SIDE_MAX, "Rows. Default: 24."),
    FIELD("ring", U64, ring, RING_LEAST, RING_MOST,
          "Bytes of output kept for later viewers, rounded up to a power of two. Default: 256 KiB."),
};
static const struct json_field session_fields[] = {
    ID,
    CWD("Working directory at the start. Default: /workspace, or the directory of the template's image."),
    ENV("Environment variables at the start; they override those of the sandbox."), USER,
    TIMEOUT("Time limit in milliseconds of each command that has none. Default: 0, no limit."),
    FIELD("restart", BOOL, restart, 0, 0,
          "`exit` ends the command and not the session, which continues with its state."),
};
static const struct json_field session_exec_fields[] = {
    COMMAND(SESSION_SCRIPT_MAX, "Text for the bash of the session, at most 16 MiB."), COMMAND_BASE64,
    FIELD("id", STR, o.id, 1, PROCESS_ID_MAX, "Id of the command within the session, to get its result again. Default: the server chooses one."),
    CWD("Working directory of this command only. Default: the current one of the session."),
    ENV("Environment variables of this command only."),
    TIMEOUT("Time limit in milliseconds; then everything the command started is killed. Default, or 0: the limit of the session."),
    STDIN_TEXT(SESSION_SCRIPT_MAX, SCRIPT_BODY_MAX), MAX_OUTPUT,
};
static const struct json_field session_process_fields[] = {
    ID,
    ARGV("Program, or function of the session, and arguments. " ONE_OF),
    COMMAND(PROCESS_ARGS_MAX, "Text for bash. " ONE_OF),
    CWD("Working directory. Default: the current one of the session."),
    ENV("Environment variables; they override those of the session."),
    TIMEOUT(KILLS "Default: 0, no limit."),
    STDIN_OPEN,
};
/* clang-format on */

static void exec_defaults(void *in, const struct config *c)
{
    struct command *x = in;

    x->o.timeout_ms = c->exec_ms;
    x->max_output = OUTPUT_DEFAULT;
}

static void session_exec_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct command *)in)->max_output = OUTPUT_DEFAULT;
}

/* A field that may be text or base64, but not both; both NULL: nothing. */
static int decode_text(const char *name, const char *text, const char *b64, struct buf *out,
                       struct err *e)
{
    if (text != NULL && b64 != NULL)
        return err_set(e, ERR_INVALID, "at most one of %s and %s_base64 is allowed", name, name);
    if (text != NULL)
        buf_adds(out, text);
    else if (b64 != NULL && str_unbase64(out, b64, strlen(b64)) < 0)
        return err_set(e, ERR_INVALID, "%s_base64: expected base64 with padding", name);
    return out->failed ? err_set(e, ERR_TOO_LARGE, "%s: more than %zu bytes", name, out->max) : 0;
}

static int unfold_stdin(void *in, struct buf *out, struct err *e)
{
    const struct command *x = in;

    buf_init(out, COMMAND_BODY_MAX);
    return decode_text("stdin", x->input, x->input_base64, out, e);
}

static int unfold_script(void *in, struct buf *out, struct err *e)
{
    struct command *x = in;

    buf_init(out, SESSION_SCRIPT_MAX);
    if (decode_text("command", x->o.command, x->command_base64, out, e) < 0)
        return -1;
    x->command_len = out->len;
    out->max += SESSION_SCRIPT_MAX;
    if (decode_text("stdin", x->input, x->input_base64, out, e) < 0)
        return -1;
    if (out->len - x->command_len > SESSION_SCRIPT_MAX)
        return err_set(e, ERR_TOO_LARGE, "stdin: more than %u bytes", SESSION_SCRIPT_MAX);
    return 0;
}

#define INPUT(table, max) SURFACE_INPUT(table, struct command), .body_max = (max)
const struct surface_input command_exec = {INPUT(exec_fields, COMMAND_BODY_MAX),
                                           .defaults = exec_defaults, .unfold = unfold_stdin};
const struct surface_input command_process = {INPUT(process_fields, COMMAND_BODY_MAX)};
const struct surface_input command_terminal = {INPUT(terminal_fields, COMMAND_BODY_MAX)};
const struct surface_input command_session = {INPUT(session_fields, COMMAND_BODY_MAX)};
const struct surface_input command_session_exec = {INPUT(session_exec_fields, SCRIPT_BODY_MAX),
                                                   .defaults = session_exec_defaults,
                                                   .unfold = unfold_script};
const struct surface_input command_session_process = {
    INPUT(session_process_fields, COMMAND_BODY_MAX)};

void command_opts_free(struct command_opts *c)
{
    free(c->argv);
    buf_free(&c->env);
}

int command_decode(const struct command *in, struct command_opts *ret, struct err *e)
{
    if ((in->argv == NULL) == (in->o.command == NULL))
        return err_set(e, ERR_INVALID, "exactly one of argv and command is required");
    return command_decode_rest(in, ret, e);
}

int command_decode_rest(const struct command *in, struct command_opts *ret, struct err *e)
{
    size_t n = json_array_size(in->argv);

    buf_init(&ret->env, PROCESS_ARGS_MAX);
    ret->argv = in->argv != NULL ? mem_zeroed(n + 1, sizeof(*ret->argv)) : NULL;
    for (size_t i = 0; i < n; i++)
        ret->argv[i] = json_string_value(json_array_get(in->argv, i));
    if (n > 0 && *ret->argv[0] == '\0')
        return err_set(e, ERR_INVALID, "argv[0]: expected the name of a program");
    if (maps_env(in->env, &ret->env, e) < 0)
        return -1;
    ret->o = in->o;
    ret->o.argv = ret->argv;
    ret->o.env = buf_data(&ret->env);
    ret->o.env_len = ret->env.len;
    return 0;
}

int command_streams(const char *name, unsigned *ret, struct err *e)
{
    static const struct {
        const char *name;
        unsigned mask;
    } names[] = {{"stdout", PROCESS_STDOUT}, {"stderr", PROCESS_STDERR}, {"both", 0}};

    *ret = 0;
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i].name) == 0) {
            *ret = names[i].mask;
            return 0;
        }
    }
    if (name != NULL)
        return err_set(e, ERR_INVALID, "stream: expected stdout, stderr or both");
    return 0;
}
