/* exit.c - see exit.h. */
#include "front/plane/exit.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/surface.h"

#define SIGNALS_MAX 64

/* clang-format off */
static const struct shape_field exit_fields[] = {
    {"code", SHAPE_U64, offsetof(struct exit_view, code),
     "Exit code; 128 + the signal number after a signal, 124 after a timeout."},
    {"signal", SHAPE_STR, offsetof(struct exit_view, signal),
     "Signal that ended it, for example SIGTERM.", SHAPE_NULLABLE},
    {"timed_out", SHAPE_BOOL, offsetof(struct exit_view, timed_out), "It was killed because its time limit was exceeded."},
    {"core", SHAPE_BOOL, offsetof(struct exit_view, core), "It dumped a core."},
    {"killed", SHAPE_BOOL, offsetof(struct exit_view, killed), "It was killed by request."},
    {"oom", SHAPE_BOOL, offsetof(struct exit_view, oom), "It was killed because the sandbox ran out of memory."},
    {"oom_meanwhile", SHAPE_BOOL, offsetof(struct exit_view, oom_meanwhile), "It failed, and another process of the sandbox was killed meanwhile because the sandbox ran out of memory.", SHAPE_OMITTED},
    {"interrupted", SHAPE_BOOL, offsetof(struct exit_view, interrupted), "The command of a session was interrupted.", SHAPE_OMITTED},
    {"cpu_ms", SHAPE_U64, offsetof(struct exit_view, cpu_ms), "CPU time, user and system, in milliseconds."},
    {"max_rss_kb", SHAPE_U64, offsetof(struct exit_view, max_rss_kb), "Peak memory in KiB."},
    {"ended_at", SHAPE_TIME, offsetof(struct exit_view, ended_ms), "Time of the exit.", SHAPE_NULLABLE},
};
/* clang-format on */
SHAPE(exit_shape, "Exit", "How a command exited.", exit_fields);

void exit_view_of(struct exit_view *v, const struct process_exit *m)
{
    *v = (struct exit_view){
        .timed_out = m->flags & PROCESS_EXIT_TIMED_OUT,
        .core = m->flags & PROCESS_EXIT_CORE,
        .killed = m->flags & PROCESS_EXIT_KILLED,
        .oom = m->flags & PROCESS_EXIT_OOM,
        .oom_meanwhile = m->flags & PROCESS_EXIT_OOM_MEANWHILE,
        .interrupted = m->flags & PROCESS_EXIT_INTERRUPTED,
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
