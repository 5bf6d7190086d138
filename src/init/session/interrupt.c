/* interrupt.c - which processes belong to a session's command, and how they are killed.
 *
 * A command is interrupted by a client, or because its time limit is over: the timer of its
 * proc (run/proc_life.c) calls session_timed_out(). Both are ON_INTERRUPT. Then
 *
 *   1. the shell is moved to a fresh cgroup, away from what the command started;
 *   2. the old group is killed, with every process in it;
 *   3. the shell gets SHELL_INTERRUPT_SIGNAL: it leaves the command, as on Ctrl-C, and replies.
 *
 * Every TICK_MS this is repeated for what was born between 1 and 3. A shell that has not
 * returned after SESSION_BACK_MS is killed, and the session ends.
 *
 * Writing to cgroup.procs waits for RCU, for milliseconds (docs/architecture.md). So a thread
 * does it, and until it is done no other call begins in the session. */
#include <signal.h>

#include "base/own.h"
#include "init/session/session.h"
#include "shell/call.h"

#define TICK_MS 100u

void session_timed_out(struct proc *p)
{
    if (p->call != NULL)
        session_event(p->call->session, ON_INTERRUPT,
                      &(struct session_news){.why = INIT_EXIT_TIMED_OUT});
}

bool session_is_moving(const struct session *s)
{
    return s->move.to != NULL;
}

bool session_is_alone(struct session *s)
{
    return group_is_only(s->group, s->pid);
}

/* A shell that is not in the command, or has left it already, ignores the signal. */
static void signal_shell(struct session *s)
{
    if (s->state == SESSION_INTERRUPTING || s->state == SESSION_INTERRUPTING_EXIT)
        session_signal(s, SHELL_INTERRUPT_SIGNAL);
}

static void has_died(void *arg)
{
    struct session *s = arg;

    group_put(take_ptr(&s->dying));
    session_event(s, ON_DIED, NULL);
}

static void move_run(struct job *j)
{
    group_move(&CONTAINER_OF(j, struct session, move.job)->move.how);
}

static void move_done(struct job *j)
{
    struct session *s = CONTAINER_OF(j, struct session, move.job);
    struct group *old = s->group;
    struct err e;

    group_move_end(&s->move.how);
    s->group = take_ptr(&s->move.to);
    if (s->move.kill) {
        signal_shell(s);
        /* Of several killed groups only the last is waited for. */
        group_kill(old, &e);
        group_hurry(old);
        group_put(take_ptr(&s->dying));
        if (group_watch(old, has_died, s))
            group_put(old);
        else
            s->dying = old;
    } else {
        group_put(old);
    }
    session_event(s, ON_MOVED, NULL);
}

void session_move(struct session *s, bool kill_rest)
{
    struct err e;

    if (session_is_moving(s)) /* it cannot be; and a tick would try again */
        return;
    if (group_take(&s->groups, &s->move.to, &e) < 0) {
        /* At the limit of groups a command that was not interrupted may share its group with
         * the next: an interrupt of that one then kills what this one left. */
        if (kill_rest || e.kind != ERR_LIMIT)
            session_fail(s, "no cgroup for the shell: %s", e.msg);
        return;
    }
    group_move_begin(s->move.to, session_signal(s, 0) ? s->pid : 0, &s->move.how);
    s->move.kill = kill_rest;
    job_start(s->all->procs->loop, &s->move.job, move_run, move_done);
}

void interrupt_begin(struct session *s)
{
    s->ticks = 0;
    s->frozen_ms = groups_frozen_ms(&s->all->procs->groups);
    if (session_set_timer(s, TICK_MS) < 0)
        session_fail(s, "out of memory");
    else
        session_move(s, true);
}

bool interrupt_is_under_way(struct session *s)
{
    if (!session_is_moving(s) && s->dying == NULL && !session_is_alone(s))
        session_move(s, true);
    return session_is_moving(s) || s->dying != NULL;
}

void interrupt_tick(struct session *s)
{
    bool back = s->state == SESSION_FINISHING;
    uint64_t frozen = groups_frozen_ms(&s->all->procs->groups);

    s->ticks += frozen == s->frozen_ms; /* a paused sandbox is not late */
    s->frozen_ms = frozen;
    if (s->ticks >= SESSION_BACK_MS / TICK_MS) {
        s->record.signal = SIGKILL;
        s->record.code = 128 + SIGKILL;
        session_fail(s, "a command %s, and %s within %u ms; the shell was killed",
                     (s->interrupted & INIT_EXIT_TIMED_OUT) != 0 ? "timed out" : "was interrupted",
                     back ? "its processes did not end" : "the shell did not come back",
                     SESSION_BACK_MS);
        return;
    }
    if (!session_is_moving(s) && !session_is_alone(s))
        session_move(s, true);
    else if (!session_is_moving(s))
        signal_shell(s);
    if (s->state != SESSION_ENDED && session_set_timer(s, TICK_MS) < 0)
        session_fail(s, "out of memory");
}
