/* life.c - what happens to a session when: the table of states and events, see session.h. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/own.h"
#include "init/session/session.h"

static void stale(struct session *s, const struct session_news *n)
{
    (void)s;
    (void)n;
}

/* ---- the end ---- */

/* Drops the oldest records of ended sessions. Deferred: a caller may be walking the list. */
static void forget_oldest(struct loop_later *l)
{
    struct sessions *ss = CONTAINER_OF(l, struct sessions, forget);
    unsigned kept = 0;
    struct session *s;

    LIST_EACH (&ss->ended, s, struct session, end_link)
        kept += s->state == SESSION_ENDED;
    LIST_EACH (&ss->ended, s, struct session, end_link) {
        if (kept <= SESSIONS_ENDED_MAX)
            return;
        if (s->state == SESSION_ENDED) {
            session_delete(s);
            kept--;
        }
    }
}

static void end(struct session *s, enum session_state to, const char *why)
{
    struct sessions *ss = s->all;
    bool began = s->state != SESSION_STARTING;
    struct err e;

    snprintf(s->why, sizeof(s->why), "%s", why);
    s->state = to;
    s->record.ended_ms = clock_real_ms();
    ss->running--;
    list_add_tail(&ss->ended, &s->end_link);
    loop_timer_stop(ss->procs->loop, &s->timer);
    if (s->pid != 0) { /* a shell that ended by itself may leave processes running */
        session_signal(s, SIGKILL);
        group_kill(s->group, &e);
    }
    session_drop_calls(s);
    channel_close(s);
    if (began) {
        ss->on_event(ss, s, INIT_EVENT_SESSION_ENDED);
        loop_defer(ss->procs->loop, &ss->forget, forget_oldest);
    } else {
        session_delete_soon(s); /* the create fails when it is gone, and its id is free */
    }
}

static void fail(struct session *s, const struct session_news *n)
{
    end(s, SESSION_ENDED, n->text);
}

void session_fail(struct session *s, const char *fmt, ...)
{
    char text[INIT_WHY_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    session_event(s, ON_FAIL, &(struct session_news){.text = text});
}

static void on_timer(struct loop_timer *t)
{
    session_event(CONTAINER_OF(t, struct session, timer), ON_TIMER, NULL);
}

int session_set_timer(struct session *s, uint64_t ms)
{
    return loop_timer_set(s->all->procs->loop, &s->timer, ms, on_timer);
}

static void start_too_late(struct session *s, const struct session_news *n)
{
    (void)n;
    session_fail(s, SESSION_SHELL " was not ready after %u ms", SESSION_START_MS);
}

/* A reply that the state does not allow. The session's user can write such replies, in a
 * loop: init must not go on listening. */
static void unasked(struct session *s, const struct session_news *n)
{
    (void)n;
    session_fail(s, "the shell sent a reply that no command had asked for");
}

static void note_exit(struct session *s, const struct session_news *n)
{
    if (WIFSIGNALED(n->status)) {
        s->record.signal = (uint32_t)WTERMSIG(n->status);
        s->record.code = 128 + s->record.signal;
    } else {
        s->record.code = (uint32_t)WEXITSTATUS(n->status);
    }
}

static void shell_gone(struct session *s, const struct session_news *n)
{
    bool exiting = s->state == SESSION_EXITING || s->state == SESSION_INTERRUPTING_EXIT;

    note_exit(s, n);
    if (WIFSIGNALED(n->status))
        session_fail(s, "the shell was killed by signal %u", s->record.signal);
    else if (s->state == SESSION_STARTING)
        session_fail(s,
                     SESSION_SHELL " exited with %u before it was ready: it must be bash 5.1 or "
                                   "newer that can load a builtin, and nothing in env "
                                   "(such as BASH_ENV) may end it",
                     s->record.code);
    else if (exiting && s->exit == REPLY_EXIT)
        session_fail(s, "the shell exited with %u", s->record.code);
    else if (exiting)
        session_fail(s, "the shell no longer runs commands (set -n)");
    else
        session_fail(s, "the shell was replaced (exec) or ended without a reply; it exited with %u",
                     s->record.code);
}

/* ---- being deleted ---- */

/* A thread that moves the shell has its groups in hand. */
static void free_if_gone(struct session *s)
{
    if (!session_is_moving(s) && s->dying == NULL && group_is_empty(s->home))
        session_free(s);
}

static void home_is_empty(void *arg)
{
    free_if_gone(arg);
}

static void kill_all(struct session *s, const struct session_news *n)
{
    struct err e;

    (void)n;
    s->state = SESSION_DELETED;
    group_kill(s->home, &e);
    group_hurry(s->home);
    if (group_watch(s->home, home_is_empty, s))
        free_if_gone(s);
}

static void end_and_kill_all(struct session *s, const struct session_news *n)
{
    end(s, SESSION_DELETED, "it was deleted");
    kill_all(s, n);
}

static void on_gone(struct loop_later *l)
{
    session_delete(CONTAINER_OF(l, struct session, gone));
}

void session_delete(struct session *s)
{
    session_event(s, ON_DELETE, NULL);
}

void session_delete_soon(struct session *s)
{
    loop_defer(s->all->procs->loop, &s->gone, on_gone);
}

static void deleted_shell_gone(struct session *s, const struct session_news *n)
{
    note_exit(s, n);
    free_if_gone(s);
}

/* The shell was moved out of the reach of the kill that ended the session. */
static void kill_moved(struct session *s, const struct session_news *n)
{
    struct err e;

    (void)n;
    group_kill(s->group, &e);
}

static void kill_moved_and_all(struct session *s, const struct session_news *n)
{
    kill_moved(s, n);
    kill_all(s, n);
}

/* Deferred: the caller is walking the groups of this session. */
static void delete_soon(struct session *s, const struct session_news *n)
{
    (void)n;
    session_delete_soon(s);
}

/* ---- calls ---- */

static void ready(struct session *s, const struct session_news *n)
{
    (void)n;
    s->state = SESSION_IDLE;
    loop_timer_stop(s->all->procs->loop, &s->timer);
    session_answer(&s->askers, s);
    s->all->on_event(s->all, s, INIT_EVENT_SESSION_CREATED);
    session_next(s);
}

static void next(struct session *s, const struct session_news *n)
{
    (void)n;
    session_next(s);
}

static void finish(struct session *s, const struct session_news *n)
{
    bool interrupted = s->interrupted != 0;

    (void)n;
    s->state = SESSION_FINISHING;
    if (interrupted && interrupt_is_under_way(s))
        return;
    if (s->state == SESSION_ENDED) /* there was no group for its shell */
        return;
    loop_timer_stop(s->all->procs->loop, &s->timer);
    s->state = SESSION_IDLE;
    call_finish(s);
    if (!interrupted && !session_is_alone(s))
        session_move(s, false); /* what the command left running keeps its group */
    session_next(s);
}

static void done(struct session *s, const struct session_news *n)
{
    s->call->status = n->reply.status;
    finish(s, n);
}

static void left(struct session *s, const struct session_news *n)
{
    s->record.restarts++;
    done(s, n);
}

static void exits(struct session *s, const struct session_news *n)
{
    s->exit = n->reply.kind;
    s->state = s->state == SESSION_RUNNING ? SESSION_EXITING : SESSION_INTERRUPTING_EXIT;
}

static void interrupt(struct session *s, const struct session_news *n)
{
    s->state = s->state == SESSION_RUNNING ? SESSION_INTERRUPTING : SESSION_INTERRUPTING_EXIT;
    s->interrupted = n->why;
    interrupt_begin(s);
}

static void tick(struct session *s, const struct session_news *n)
{
    (void)n;
    interrupt_tick(s);
}

/* ---- the table ---- */

/* Every cell is a decision; `stale` is one too. test_init_session.c walks it. A state whose
 * four replies are stale does not listen: what the shell says then stays in the FIFO, and is
 * dropped before the next call. */
/* clang-format off */
#define DEAF      [ON_READY] = stale, [ON_DONE] = stale, [ON_LEFT] = stale, [ON_EXIT] = stale
#define NO_MOVE   [ON_MOVED] = stale, [ON_DIED] = stale
#define CAN_END   [ON_SHELL_GONE] = shell_gone, [ON_FAIL] = fail, [ON_DELETE] = end_and_kill_all

session_reaction *const session_reactions[SESSION_STATE_COUNT][SESSION_EVENT_COUNT] = {
    [SESSION_STARTING] = {
        [ON_READY] = ready,   [ON_DONE] = unasked, [ON_LEFT] = unasked, [ON_EXIT] = unasked,
        [ON_CALL] = stale,    [ON_INTERRUPT] = stale,     [ON_TIMER] = start_too_late,
        NO_MOVE, CAN_END},
    [SESSION_IDLE] = {
        DEAF,
        [ON_CALL] = next,     [ON_INTERRUPT] = stale,     [ON_TIMER] = stale,
        [ON_MOVED] = next,    [ON_DIED] = next, CAN_END},
    [SESSION_RUNNING] = {
        [ON_READY] = unasked, [ON_DONE] = done, [ON_LEFT] = left, [ON_EXIT] = exits,
        [ON_CALL] = stale,    [ON_INTERRUPT] = interrupt, [ON_TIMER] = stale,
        NO_MOVE, CAN_END},
    [SESSION_EXITING] = {
        [ON_READY] = unasked, [ON_DONE] = done, [ON_LEFT] = left, [ON_EXIT] = unasked,
        [ON_CALL] = stale,    [ON_INTERRUPT] = interrupt, [ON_TIMER] = stale,
        NO_MOVE, CAN_END},
    [SESSION_INTERRUPTING] = {
        [ON_READY] = unasked, [ON_DONE] = done, [ON_LEFT] = done, [ON_EXIT] = exits,
        [ON_CALL] = stale,    [ON_INTERRUPT] = stale,     [ON_TIMER] = tick,
        NO_MOVE, CAN_END},
    [SESSION_INTERRUPTING_EXIT] = {
        [ON_READY] = unasked, [ON_DONE] = done, [ON_LEFT] = done, [ON_EXIT] = unasked,
        [ON_CALL] = stale,    [ON_INTERRUPT] = stale,     [ON_TIMER] = tick,
        NO_MOVE, CAN_END},
    [SESSION_FINISHING] = {
        DEAF,
        [ON_CALL] = stale,    [ON_INTERRUPT] = stale,     [ON_TIMER] = tick,
        [ON_MOVED] = finish,  [ON_DIED] = finish, CAN_END},
    [SESSION_ENDED] = {
        DEAF,
        [ON_CALL] = stale,    [ON_INTERRUPT] = stale,     [ON_TIMER] = stale,
        [ON_MOVED] = kill_moved, [ON_DIED] = stale,
        [ON_SHELL_GONE] = note_exit, [ON_FAIL] = stale, [ON_DELETE] = kill_all},
    [SESSION_DELETED] = {
        DEAF,
        [ON_CALL] = stale,    [ON_INTERRUPT] = stale,     [ON_TIMER] = stale,
        [ON_MOVED] = kill_moved_and_all, [ON_DIED] = delete_soon,
        [ON_SHELL_GONE] = deleted_shell_gone, [ON_FAIL] = stale, [ON_DELETE] = kill_all},
};
/* clang-format on */

bool session_listens(enum session_state state)
{
    session_reaction *const *row = session_reactions[state];

    return row[ON_READY] != stale || row[ON_DONE] != stale || row[ON_LEFT] != stale ||
           row[ON_EXIT] != stale;
}

void session_event(struct session *s, enum session_event ev, const struct session_news *n)
{
    static const struct session_news none;

    session_reactions[s->state][ev](s, n != NULL ? n : &none);
}
