/* session_stop.c - which processes are a command's, and how it is stopped: see the
 * head of session.h.
 *
 * Moving a process to another group waits for the whole machine (architecture.md), so
 * a thread does it; until it is done nothing else begins in the session. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session.h"
#include "shell/call.h"

#define TICK_MS 100u

bool session_is_moving(const struct session *s)
{
    return s->move.to != NULL;
}

bool session_is_alone(struct session *s)
{
    return group_is_only(s->group, s->pid);
}

/* In a thread. */
static void move_run(struct job *j)
{
    struct session *s = CONTAINER_OF(j, struct session, move.job);
    char text[16];
    int n = snprintf(text, sizeof(text), "%d\n", s->move.pid);

    if (s->move.pid != 0 && write(s->move.fd, text, (size_t)n) < 0)
        return; /* it is gone now */
}

/* Whoever calls is looking through the session's groups: it must not be freed under them,
 * so one that was deleted goes when this turn is over. */
static void has_died(void *arg)
{
    struct session *s = arg;

    group_put(take_ptr(&s->dying));
    if (s->state == SESSION_ENDED && s->deleted)
        session_delete_soon(s);
    else if (s->finishing)
        session_over(s, s->status);
    else
        session_next(s);
}

/* Somebody waits for it to be empty; only the last such one is waited for. */
static void watch_die(struct session *s, struct group *g)
{
    struct err e;

    group_kill(g, &e);
    group_hurry(g);
    group_put(take_ptr(&s->dying));
    if (group_watch(g, has_died, s))
        group_put(g);
    else
        s->dying = g;
}

/* Whoever has left the call already, or has not come to it, does not mind: on_tick() says it
 * again. */
static void tell_shell(struct session *s)
{
    if (s->state == SESSION_BUSY)
        session_signal(s, SHELL_STOP_SIGNAL);
}

static void move_done(struct job *j)
{
    struct session *s = CONTAINER_OF(j, struct session, move.job);
    struct group *old = s->group;
    bool again = s->move.again;

    drop_fd(&s->move.fd);
    s->group = take_ptr(&s->move.to);
    s->move.again = false;
    if (s->move.kill)
        tell_shell(s);
    if (s->move.kill)
        watch_die(s, old);
    else
        group_put(old);
    if (s->state == SESSION_ENDED) {
        struct err e;

        group_kill(s->group, &e);
        if (s->deleted)
            session_delete(s);
        return;
    }
    if (again)
        session_move(s, true);
    else if (s->finishing && s->dying == NULL)
        session_over(s, s->status);
    else
        session_next(s);
}

void session_move(struct session *s, bool kill_rest)
{
    struct err e;

    if (session_is_moving(s)) {
        s->move.again |= kill_rest;
        return;
    }
    if (group_take(&s->groups, &s->move.to, &e) < 0) {
        if (kill_rest || e.kind != ERR_LIMIT)
            session_end(s, "no group for its shell: %s", e.msg);
        return; /* what is left behind will be taken for the next command's */
    }
    s->move.fd = openat(s->move.to->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    s->move.kill = kill_rest;
    s->move.pid = session_signal(s, 0) ? s->pid : 0;
    job_start(s->all->procs->loop, &s->move.job, move_run, move_done);
}

static void not_back(struct session *s)
{
    s->record.signal = SIGKILL;
    s->record.code = 128 + SIGKILL;
    session_end(s, "its shell%s did not %s when its command was %s, and was killed",
                s->finishing ? "'s processes" : "", s->finishing ? "end" : "come back",
                (s->stop & INIT_EXIT_TIMED_OUT) != 0 ? "timed out" : "interrupted");
}

/* What was born between the move and the signal holds the shell up: again. A paused
 * sandbox is not late. */
static void on_tick(struct loop_timer *t)
{
    struct session *s = CONTAINER_OF(t, struct session, timer);
    uint64_t frozen = groups_frozen_ms(&s->all->procs->groups);

    s->ticks += frozen == s->frozen_ms;
    s->frozen_ms = frozen;
    if (s->state != SESSION_BUSY && !s->finishing)
        return;
    if (s->ticks >= SESSION_BACK_MS / TICK_MS) {
        not_back(s);
        return;
    }
    if (!session_is_moving(s) && !session_is_alone(s))
        session_move(s, true);
    else if (!session_is_moving(s))
        tell_shell(s);
    if (s->state != SESSION_ENDED)
        loop_timer_set(s->all->procs->loop, t, TICK_MS, on_tick);
}

void session_stop(struct session *s, uint32_t why)
{
    if (s->stop != 0 || s->state != SESSION_BUSY)
        return;
    s->stop = why;
    s->ticks = 0;
    s->frozen_ms = groups_frozen_ms(&s->all->procs->groups);
    if (loop_timer_set(s->all->procs->loop, &s->timer, TICK_MS, on_tick) < 0)
        session_end(s, "out of memory");
    else
        session_move(s, true);
}
