/* ways.c - see ways.h. */
#include "shell/ways.h"

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
#define SAID_MAX 15   /* times that a stop waits for bash to have read */

struct ways ways;
static long own_pid;
static char top[JUMP_SIZE];   /* our own top_level: what is inside a command has others */
static volatile bool put_off; /* the stop of a `wait` */

void ways_begin(void)
{
    own_pid = sys(SYS_getpid, 0, 0, 0, 0);
}

/* Reading takes no time, but of what is very long; init says it again. */
static bool can_wait(void)
{
    static int said;

    said = ways.phase == READING && running_trap == 0 ? said + 1 : 0;
    return ways.phase == TAKING || (said > 0 && said < SAID_MAX);
}

/* As Ctrl-C does to a script. What comes too late for a call comes before the next. */
static void on_stop(int sig)
{
    if (ways.phase == WAITING)
        return;
    ways.stopped = ways.killed = true;
    if (!can_wait())
        sigint_sighandler(sig);
}

bool ways_is_shell(void)
{
    return sys(SYS_getpid, 0, 0, 0, 0) == own_pid;
}

static bool is_running(void)
{
    return ways.phase == RUNNING || ways.phase == READING;
}

/* Between where bash jumps to its top and here others wait, to go on from there. They must not
 * if there is nothing left that they know: a stop and errors outside of `eval` have undone all,
 * and `time` would write to a command that is no more. Nor if the command is left for good: an
 * `eval` would not undo what the functions below it began, for bash was to end there. Whoever
 * waits in an EXIT trap is let. */
static bool is_straight(int value)
{
    if (ways.stopped)
        return true;
    if (parse_and_execute_level == 0)
        return value == FORCE_EOF || value == DISCARD;
    return value == ERREXIT || (value == EXITBLTIN && ways.goes_on);
}

static bool is_for_us(const void *env, int value)
{
    return env == top_level && is_running() && ways_is_shell() && is_straight(value) &&
           !signal_in_progress(0);
}

/* In the place of libc's, which has the same under other names. */
__attribute__((noreturn, visibility("default"))) void siglongjmp(void *env, int value)
{
    longjmp(is_for_us(env, value) ? top : env, value);
}

__attribute__((noreturn, visibility("default"))) void __longjmp_chk(void *env, int value)
{
    siglongjmp(env, value);
}

/* In the place of libc's: bash has nothing that would have to be done there but this. */
__attribute__((noreturn, visibility("default"))) void exit(int status)
{
    if (is_running() && ways_is_shell()) {
        ways.exit_status = status;
        longjmp(top, LEFT_BY_EXIT);
    }
    fflush(NULL);
    for (;;)
        sys(SYS_exit_group, status, 0, 0, 0);
}

/* Who was killed with a call that was stopped is not news: bash would tell of it, in that call
 * or the next. Of a broken pipe it does not, unless it is to tell of all (set -m). */
static void hush(int *status)
{
    if (ways.killed && !job_control && status != NULL && WIFSIGNALED(*status) &&
        WTERMSIG(*status) == SIGKILL)
        *status = SIGPIPE;
}

/* In the place of libc's: a `wait` that is stopped is left where bash looks at that next, and
 * that would be before what it has just heard of a child: to it, that one would run for ever. */
__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int *status, int options)
{
    long ret = sys(SYS_wait4, pid, (long)status, options | (put_off ? WNOHANG : 0), 0);

    if (ret > 0 && wait_signal_received == SHELL_STOP_SIGNAL) {
        wait_signal_received = 0;
        put_off = true;
    } else if (ret <= 0 && put_off) {
        wait_signal_received = SHELL_STOP_SIGNAL;
        put_off = false;
        ret = ret == 0 ? NEG_EINTR : ret;
    }
    if (ret > 0)
        hush(status);
    if (ret >= 0)
        return (pid_t)ret;
    errno = (int)-ret;
    return -1;
}

void ways_prepare(void)
{
    ways.stopped = false;
    set_signal_handler(SHELL_STOP_SIGNAL, on_stop);
}

void ways_to_here(void)
{
    memcpy(top, top_level, sizeof(top));
}

void ways_end(void)
{
    ways.phase = WAITING; /* also of a call that ran nothing */
    interrupt_state = wait_signal_received = 0;
    put_off = false;
}
