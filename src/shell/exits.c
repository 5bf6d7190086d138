/* exits.c - see exits.h. */
#include "shell/exits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shell/bash.h"
#include "shell/call.h"
#include "shell/kernel.h"

#define JUMP_SIZE 200 /* of a sigjmp_buf, in both libcs */
#define SAID_MAX 15   /* so many interrupts wait until bash has parsed; the next does not */

struct exits exits;
static long own_pid;
static char top[JUMP_SIZE];    /* our own top_level: nested code of bash replaces the global one */
static volatile bool deferred; /* the interrupt of a `wait` */

void exits_begin(void)
{
    own_pid = sys(SYS_getpid, 0, 0, 0, 0);
}

/* Parsing is fast, except of a very long text; init repeats the signal. */
static bool can_wait(void)
{
    static int said;

    said = exits.phase == READING && running_trap == 0 ? said + 1 : 0;
    return exits.phase == TAKING || (said > 0 && said < SAID_MAX);
}

/* Like Ctrl-C in a script. One that comes after its call is delivered before the next call is
 * read, and dropped here. */
static void on_interrupt(int sig)
{
    if (exits.phase == WAITING)
        return;
    exits.interrupted = exits.killed = true;
    if (!can_wait())
        sigint_sighandler(sig);
}

bool is_session_shell(void)
{
    return sys(SYS_getpid, 0, 0, 0, 0) == own_pid;
}

static bool is_running(void)
{
    return exits.phase == RUNNING || exits.phase == READING;
}

/* Code of bash that waits for the jump must not run if what it works on is gone: an interrupt and
 * errors outside of `eval` have unwound everything, and `time` would write to a freed command.
 * It must not run either if the command is left for good: `eval` would not unwind the functions below it, since
 * bash was about to exit. An EXIT trap may wait for the jump. */
static bool skips_others(int value)
{
    if (exits.interrupted)
        return true;
    if (parse_and_execute_level == 0)
        return value == FORCE_EOF || value == DISCARD;
    return value == ERREXIT || (value == EXITBLTIN && exits.survives_exit);
}

static bool is_for_us(const void *env, int value)
{
    return env == top_level && is_running() && is_session_shell() && skips_others(value) &&
           !signal_in_progress(0);
}

/* Replaces libc's, which has the same function under other names. */
__attribute__((noreturn, visibility("default"))) void siglongjmp(void *env, int value)
{
    longjmp(is_for_us(env, value) ? top : env, value);
}

__attribute__((noreturn, visibility("default"))) void __longjmp_chk(void *env, int value)
{
    siglongjmp(env, value);
}

/* Replaces libc's: of its work bash needs only the flush. */
__attribute__((noreturn, visibility("default"))) void exit(int status)
{
    if (is_running() && is_session_shell()) {
        exits.exit_status = status;
        longjmp(top, LEFT_BY_EXIT);
    }
    fflush(NULL);
    for (;;)
        sys(SYS_exit_group, status, 0, 0, 0);
}

/* bash would report the children that an interrupt killed, in that call or the next. It does not
 * report a broken pipe, so that is what it is told; with set -m it reports all. */
static void hide_kill(int *status)
{
    if (exits.killed && !job_control && status != NULL && WIFSIGNALED(*status) &&
        WTERMSIG(*status) == SIGKILL)
        *status = SIGPIPE;
}

/* Replaces libc's. bash leaves an interrupted `wait` at its next check, and that is before it
 * records the child that has just been reaped: the child would seem to run without end. So the
 * interrupt is deferred until no child is left to reap. */
__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int *status, int options)
{
    long ret = sys(SYS_wait4, pid, (long)status, options | (deferred ? WNOHANG : 0), 0);

    if (ret > 0 && wait_signal_received == SHELL_INTERRUPT_SIGNAL) {
        wait_signal_received = 0;
        deferred = true;
    } else if (ret <= 0 && deferred) {
        wait_signal_received = SHELL_INTERRUPT_SIGNAL;
        deferred = false;
        ret = ret == 0 ? NEG_EINTR : ret;
    }
    if (ret > 0)
        hide_kill(status);
    if (ret >= 0)
        return (pid_t)ret;
    errno = (int)-ret;
    return -1;
}

void exits_prepare(void)
{
    exits.interrupted = false;
    set_signal_handler(SHELL_INTERRUPT_SIGNAL, on_interrupt);
}

void exits_lead_here(void)
{
    memcpy(top, top_level, sizeof(top));
}

void exits_end(void)
{
    exits.phase = WAITING; /* also after a call that ran nothing */
    interrupt_state = wait_signal_received = 0;
    deferred = false;
}
