/* command.c - see command.h. */
#include "front/planes/native/command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/inside.h"

#define SIGNALS_MAX 64

void command_opts_free(struct command_opts *c)
{
    free(c->argv);
    buf_free(&c->env);
}

int command_env(json_t *env, struct buf *out, struct err *e)
{
    const char *name;
    json_t *value;

    json_object_foreach(env, name, value)
    {
        if (*name == '\0' || strchr(name, '=') != NULL)
            return err_set(e, ERR_INVALID, "env: '%.60s' cannot be the name of a variable", name);
        buf_adds(out, name);
        buf_addc(out, '=');
        buf_add(out, json_string_value(value), json_string_length(value) + 1);
    }
    if (out->failed)
        return err_set(e, ERR_TOO_LARGE, "env: more than %zu bytes", out->max);
    return 0;
}

static int decode_argv(json_t *list, const char ***ret, struct err *e)
{
    size_t n = json_array_size(list);
    const char **argv = calloc(n + 1, sizeof(*argv));

    if (argv == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < n; i++)
        argv[i] = json_string_value(json_array_get(list, i));
    *ret = argv;
    if (*argv[0] == '\0')
        return err_set(e, ERR_INVALID, "argv[0]: expected the name of a program");
    return 0;
}

int command_decode(const struct command *in, struct command_opts *ret, struct err *e)
{
    buf_init(&ret->env, INIT_ARGS_MAX);
    ret->argv = NULL;
    if ((in->argv == NULL) == (in->command == NULL))
        return err_set(e, ERR_INVALID, "exactly one of argv and command is wanted");
    if (in->argv != NULL && decode_argv(in->argv, &ret->argv, e) < 0)
        return -1;
    if (command_env(in->env, &ret->env, e) < 0)
        return -1;
    ret->o = (struct process_opts){
        .argv = ret->argv,
        .command = in->command,
        .cwd = in->cwd,
        .user = in->user,
        .env = buf_data(&ret->env),
        .env_len = ret->env.len,
        .timeout_ms = in->timeout_ms,
    };
    return 0;
}

int command_streams(const char *name, unsigned *ret, struct err *e)
{
    static const struct {
        const char *name;
        unsigned mask;
    } names[] = {{"stdout", INIT_STDOUT}, {"stderr", INIT_STDERR}, {"both", 0}};

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

/* clang-format off */
static const struct shape_field exit_fields[] = {
    {"code", SHAPE_U64, offsetof(struct exit_view, code),
     "Exit code; 128 and the signal's number after a signal, 124 after the time limit."},
    {"signal", SHAPE_STR, offsetof(struct exit_view, signal),
     "The signal that ended it, as SIGTERM.", SHAPE_NULLABLE},
    {"timed_out", SHAPE_BOOL, offsetof(struct exit_view, timed_out), "Its time limit passed and the whole tree was killed."},
    {"core", SHAPE_BOOL, offsetof(struct exit_view, core), "A core was dumped."},
    {"killed", SHAPE_BOOL, offsetof(struct exit_view, killed), "A kill was asked for."},
    {"oom", SHAPE_BOOL, offsetof(struct exit_view, oom), "The kernel killed it for want of memory."},
    {"cpu_ms", SHAPE_U64, offsetof(struct exit_view, cpu_ms), "CPU time used, user and system."},
    {"max_rss_kb", SHAPE_U64, offsetof(struct exit_view, max_rss_kb), "Most memory it held at one time, in KiB."},
    {"ended_at", SHAPE_TIME, offsetof(struct exit_view, ended_ms), "When it ended.", SHAPE_NULLABLE},
};
/* clang-format on */
SHAPE(exit_shape, "Exit", "How a command ended.", exit_fields);

void exit_view_of(struct exit_view *v, const struct init_exit *m)
{
    *v = (struct exit_view){
        .timed_out = m->flags & INIT_EXIT_TIMED_OUT,
        .core = m->flags & INIT_EXIT_CORE,
        .killed = m->flags & INIT_EXIT_KILLED,
        .oom = m->flags & INIT_EXIT_OOM,
        .cpu_ms = m->cpu_us / 1000,
        .max_rss_kb = m->maxrss_kb,
        .ended_ms = m->ended_ms,
    };
    v->signal = signal_name(m->signal, v->name);
    v->code = v->timed_out ? 124 : m->signal != 0 ? 128 + m->signal : m->code;
}

/* The real-time signals have no names; SIG40 is read back by signal_from(). */
const char *signal_name(unsigned signo, char out[16])
{
    const char *abbrev = signo < NSIG ? sigabbrev_np((int)signo) : NULL;

    if (signo == 0)
        return NULL;
    if (abbrev != NULL)
        str_fmt(out, 16, "SIG%s", abbrev);
    else
        str_fmt(out, 16, "SIG%u", signo);
    return out;
}

static int signal_named(const char *s)
{
    uint64_t number;

    if (strncasecmp(s, "SIG", 3) == 0)
        s += 3;
    if (str_u64(s, SIGNALS_MAX, &number) == 0)
        return (int)number;
    for (int i = 1; i < NSIG; i++) {
        const char *abbrev = sigabbrev_np(i);

        if (abbrev != NULL && strcasecmp(abbrev, s) == 0)
            return i;
    }
    return 0;
}

int signal_from(json_t *j, int *ret, struct err *e)
{
    json_int_t n = 0;

    if (json_is_integer(j))
        n = json_integer_value(j);
    else if (json_is_string(j))
        n = signal_named(json_string_value(j));
    if (n < 1 || n > SIGNALS_MAX)
        return err_set(e, ERR_INVALID,
                       "signal: expected a name such as TERM or SIGTERM, or a number of 1 to %d",
                       SIGNALS_MAX);
    *ret = (int)n;
    return 0;
}
