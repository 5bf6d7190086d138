/* proc_life.c - what happens to a process: the table of states and events, its time limit,
 * signals, its end. See proc.h. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/own.h"
#include "init/run/proc.h"

#define CODE_TIMED_OUT 124
#define CODE_SIGNAL 128
#define THAW_MS 50u /* how often a timeout that came due in a pause is checked again */

/* ---- the table ---- */

struct cell {
    enum proc_act act;
    enum proc_state next;
};

/* clang-format off */
/* A second kill does not start a second grace: the first one stands, and a client in a hurry
 * sends a kill without grace, which is EV_FORCE. An empty group while the root is unreaped is
 * stale: a zombie is in no group, its exit comes next. */
static const struct cell table[PROC_STATE_COUNT][PROC_EVENT_COUNT] = {
    [PROC_RUNNING] = {
        [EV_KILL]    = {ACT_ASK,    PROC_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_FORCED},
        [EV_TIMEOUT] = {ACT_EXPIRE, PROC_FORCED},
        [EV_EXIT]    = {ACT_REAP,   PROC_LEFT},
        [EV_EMPTY]   = {ACT_STALE,  PROC_RUNNING}},
    [PROC_ASKED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_FORCED},
        [EV_TIMEOUT] = {ACT_EXPIRE, PROC_FORCED},
        [EV_EXIT]    = {ACT_REAP_ASK, PROC_LEFT_ASKED},
        [EV_EMPTY]   = {ACT_STALE,  PROC_ASKED}},
    [PROC_FORCED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_FORCED},
        [EV_FORCE]   = {ACT_STALE,  PROC_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_FORCED},
        [EV_EXIT]    = {ACT_REAP,   PROC_LEFT_FORCED},
        [EV_EMPTY]   = {ACT_STALE,  PROC_FORCED}},
    [PROC_LEFT] = {
        [EV_KILL]    = {ACT_ASK,    PROC_LEFT_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_LEFT_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_LEFT},
        [EV_EXIT]    = {ACT_STALE,  PROC_LEFT},
        [EV_EMPTY]   = {ACT_BURY,   PROC_GONE}},
    [PROC_LEFT_ASKED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_LEFT_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_LEFT_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_LEFT_ASKED},
        [EV_EXIT]    = {ACT_STALE,  PROC_LEFT_ASKED},
        [EV_EMPTY]   = {ACT_BURY,   PROC_GONE}},
    [PROC_LEFT_FORCED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_FORCE]   = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_EXIT]    = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_EMPTY]   = {ACT_BURY,   PROC_GONE}},
    [PROC_GONE] = {
        [EV_KILL]    = {ACT_STALE,  PROC_GONE},
        [EV_FORCE]   = {ACT_STALE,  PROC_GONE},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_GONE},
        [EV_EXIT]    = {ACT_STALE,  PROC_GONE},
        [EV_EMPTY]   = {ACT_STALE,  PROC_GONE}},
};
/* clang-format on */

enum proc_act proc_step(enum proc_state *s, enum proc_event ev)
{
    const struct cell *c = &table[*s][ev];

    *s = c->next;
    return c->act;
}

/* ---- time ---- */

static uint64_t bounded_ms(uint64_t ms)
{
    return ms < PROC_TIME_MAX ? ms : PROC_TIME_MAX;
}

/* A terminal is killed with all it started: an interactive shell ignores TERM, and its stdin
 * has no end. Else TERM comes before the end of stdin: a reader must not take that for the
 * regular end of its input. */
static void pull_leash(struct proc *p)
{
    if (p->flags & INIT_START_TERMINAL) {
        proc_event(p, EV_TIMEOUT);
        return;
    }
    if (p->pid != 0)
        kill(p->pid, SIGTERM);
    stdin_finish(p);
}

/* The time limit does not run while the sandbox is paused: the time it was frozen since the
 * timer was set is added again, rounded up to THAW_MS. */
static void on_timeout(struct loop_timer *t)
{
    struct proc *p = CONTAINER_OF(t, struct proc, timeout);
    uint64_t frozen = groups_frozen_ms(&p->all->groups), more = frozen - p->frozen_ms;

    p->frozen_ms = frozen;
    if (more == 0 ||
        loop_timer_set(p->all->loop, t, more > THAW_MS ? more : THAW_MS, on_timeout) < 0) {
        if ((p->flags & INIT_START_LEASH) != 0) {
            pull_leash(p);
        } else if (p->late != NULL) {
            p->late(p);
        } else if ((p->flags & INIT_START_GENTLE) != 0) { /* it may clean up first */
            if (p->state == PROC_RUNNING)
                p->record.flags |= INIT_EXIT_TIMED_OUT;
            proc_kill(p, INIT_GENTLE_MS);
        } else { /* its root may have ended, while others hold its output open */
            output_cut(p);
            proc_event(p, p->pid != 0 ? EV_TIMEOUT : EV_FORCE);
        }
    }
}

static int set_timeout(struct proc *p)
{
    p->frozen_ms = groups_frozen_ms(&p->all->groups);
    return loop_timer_set(p->all->loop, &p->timeout, bounded_ms(p->record.timeout_ms), on_timeout);
}

int proc_set_timeout(struct proc *p, uint64_t ms)
{
    p->record.timeout_ms = ms;
    return ms != 0 ? set_timeout(p) : 0;
}

void proc_unwatched(struct proc *p)
{
    if ((p->flags & INIT_START_LEASH) == 0 || p->pid == 0)
        return;
    if (p->record.timeout_ms == 0 || set_timeout(p) < 0)
        pull_leash(p);
}

/* ---- the end ---- */

void proc_output_ended(struct proc *p)
{
    struct procs *ps = p->all;

    p->output = OUTPUT_ENDED;
    p->output_end = p->ring.end;
    output_log_rest(p);
    loop_timer_stop(ps->loop, &p->timeout);
    stdin_close(p);
    if (proc_is_term(p))
        term_close(p);
    ps->on_event(ps, p, INIT_EVENT_EXITED);
    list_add_tail(&ps->ended, &p->ended);
    p->shelf->kept += !p->forget;
    proc_changed(p);
    proc_later(p);
}

static void on_group_empty(void *arg)
{
    proc_event(arg, EV_EMPTY);
}

static void on_grace_over(struct loop_timer *t)
{
    proc_event(CONTAINER_OF(t, struct proc, grace), EV_FORCE);
}

static void act_stale(struct proc *p)
{
    (void)p;
}

static void act_ask(struct proc *p)
{
    struct err e;

    if (p->pid != 0)
        p->record.flags |= INIT_EXIT_KILLED;
    group_hurry(p->group);
    group_signal(p->group, SIGTERM, &e);
    group_signal(p->group, SIGCONT, &e); /* a stopped process gets TERM only when continued */
}

void proc_blame_memory(struct proc *p, unsigned code)
{
    if (code != 0 && groups_oom_kills(&p->all->groups) > p->oom_kills)
        p->record.flags |= INIT_EXIT_OOM_MEANWHILE;
}

/* We kill it now: OOM kills of the kernel before this are not why it dies. */
static void kill_is_ours(struct proc *p)
{
    p->oom_kills = groups_oom_kills(&p->all->groups);
}

static void act_force(struct proc *p)
{
    struct err e;

    if (p->pid != 0)
        p->record.flags |= INIT_EXIT_KILLED;
    kill_is_ours(p);
    group_hurry(p->group);
    group_kill(p->group, &e);
}

static void act_expire(struct proc *p)
{
    struct err e;

    p->record.flags |= INIT_EXIT_TIMED_OUT;
    kill_is_ours(p);
    group_hurry(p->group);
    group_kill(p->group, &e);
}

static void act_reap(struct proc *p)
{
    p->all->running--;
    p->all->own -= proc_is_own(p);
    p->all->terms -= proc_is_term(p);
    p->pid = 0;
    if ((p->flags & INIT_START_WHOLE) == 0)
        loop_timer_stop(p->all->loop, &p->timeout);
    output_drain(p);
    if (group_watch(p->group, on_group_empty, p))
        proc_event(p, EV_EMPTY);
}

/* A shell that gets TERM while it forks leaves a child that never got it. */
static void act_reap_ask(struct proc *p)
{
    struct err e;

    group_signal(p->group, SIGTERM, &e);
    act_reap(p);
}

static void act_bury(struct proc *p)
{
    loop_timer_stop(p->all->loop, &p->grace);
    group_put(take_ptr(&p->group));
    proc_changed(p);
    proc_later(p);
}

/* clang-format off */
static void (*const acts[PROC_ACT_COUNT])(struct proc *p) = {
    [ACT_UNDECIDED] = act_stale,
    [ACT_STALE]     = act_stale,
    [ACT_ASK]       = act_ask,
    [ACT_FORCE]     = act_force,
    [ACT_EXPIRE]    = act_expire,
    [ACT_REAP]      = act_reap,
    [ACT_REAP_ASK]  = act_reap_ask,
    [ACT_BURY]      = act_bury,
};
/* clang-format on */

void proc_event(struct proc *p, enum proc_event ev)
{
    acts[proc_step(&p->state, ev)](p);
}

void proc_kill(struct proc *p, uint64_t grace_ms)
{
    enum proc_state before = p->state;

    output_cut(p);
    if (grace_ms == 0) {
        proc_event(p, EV_FORCE);
        return;
    }
    proc_event(p, EV_KILL);
    if (p->state == before)
        return;
    if (loop_timer_set(p->all->loop, &p->grace, bounded_ms(grace_ms), on_grace_over) < 0)
        proc_event(p, EV_FORCE);
}

int proc_signal(struct proc *p, int signo, enum init_signal_to to, struct err *e)
{
    if (signo == SIGTERM || signo == SIGKILL)
        output_cut(p);
    if (signo == SIGKILL)
        kill_is_ours(p);
    if (to == INIT_TO_FOREGROUND)
        return term_signal(p, signo, e);
    if (to == INIT_TO_TREE && p->group != NULL)
        return group_signal(p->group, signo, e);
    if (p->pid == 0)
        return err_set(e, ERR_GONE, "signal process %s: it has ended", p->record.id);
    if (kill(p->pid, signo) < 0)
        return err_set(e, ERR_INVALID, "send signal %d to process %s: %s", signo, p->record.id,
                       strerror(errno));
    return 0;
}

/* The kernel's maxrss counts from before the exec, when the memory was ours: for a program
 * smaller than init it is the size of init. */
void proc_reaped(struct proc *p, int status, const struct rusage *ru)
{
    struct init_proc *r = &p->record;

    r->ended_ms = clock_real_ms();
    r->cpu_us = (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000u +
                (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec);
    r->maxrss_kb = (uint64_t)ru->ru_maxrss;
    if (WIFSIGNALED(status)) {
        r->signal = (uint32_t)WTERMSIG(status);
        r->code = CODE_SIGNAL + r->signal;
        r->flags |= WCOREDUMP(status) ? INIT_EXIT_CORE : 0;
    } else {
        r->code = (uint32_t)WEXITSTATUS(status);
    }
    /* A killed process dies of SIGKILL and nothing else: this one had ended before the kill,
     * and was not reaped yet. */
    if (p->state == PROC_FORCED && r->signal != SIGKILL && (p->flags & INIT_START_GENTLE) == 0)
        r->flags &= ~(uint32_t)INIT_EXIT_TIMED_OUT;
    if (r->signal == SIGKILL && groups_had_oom(&p->all->groups, p->oom_kills))
        r->flags |= INIT_EXIT_OOM;
    else
        proc_blame_memory(p, r->code);
    if ((r->flags & INIT_EXIT_TIMED_OUT) != 0)
        r->code = CODE_TIMED_OUT;
    proc_event(p, EV_EXIT);
}
