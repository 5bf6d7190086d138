/* proc.c - see proc.h. */
#include "init/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"

#define CODE_TIMED_OUT 124
#define CODE_SIGNAL 128
#define THAW_MS 50u /* how often a timeout that came due in a pause is looked at */

/* ---- records ---- */

/* How much of argv a record shows: whole strings while they fit, and of the first
 * at least a part. */
static uint32_t shown_len(const struct wire_strv *argv)
{
    uint32_t at = 0, len = 0;

    while (wire_strv_next(argv, &at) != NULL && at <= INIT_ARGV_SHOWN)
        len = at;
    return len > 0 || argv->len == 0 ? len : INIT_ARGV_SHOWN;
}

static char *put(char **at, const char *s, size_t n)
{
    char *p = *at;

    memcpy(p, s, n);
    *at += n;
    return p;
}

static void fill_record(struct proc *p, const struct init_start *m, const char *id,
                        uint32_t argv_len)
{
    struct init_proc *r = &p->record;
    char *at = p->text;

    r->id = put(&at, id, strlen(id) + 1);
    r->cwd = put(&at, m->cwd, strlen(m->cwd) + 1);
    r->user = put(&at, m->user, strlen(m->user) + 1);
    r->argv.p = at;
    r->argv.len = argv_len;
    put(&at, m->argv.p, argv_len);
    if (argv_len > 0)
        at[-1] = '\0';
    for (uint32_t i = 0; i < argv_len; i++)
        r->argv.count += r->argv.p[i] == '\0';
    r->timeout_ms = m->timeout_ms;
    p->flags = m->flags;
    p->forget = (m->flags & INIT_START_FORGET) != 0;
}

static uint32_t ring_size(const struct init_start *m)
{
    if (m->ring != 0)
        return m->ring;
    return (m->flags & INIT_START_TERMINAL) != 0 ? TERM_RING_DEFAULT : RING_DEFAULT;
}

bool proc_is_term(const struct proc *p)
{
    return (p->flags & INIT_START_TERMINAL) != 0;
}

static struct proc *proc_new(struct procs *ps, const struct init_start *m, const char *id)
{
    uint32_t argv_len = shown_len(&m->argv);
    size_t text = strlen(id) + strlen(m->cwd) + strlen(m->user) + 3 + argv_len;
    struct proc *p = calloc(1, sizeof(*p) + text);

    if (p == NULL)
        return NULL;
    p->all = ps;
    p->shelf = &ps->shelves[(m->flags & INIT_START_TERMINAL) != 0];
    fill_record(p, m, id, argv_len);
    ring_init(&p->ring, ring_size(m), &ps->rings);
    buf_init(&p->in.queue, STDIN_QUEUE_MAX);
    p->out[0] = (struct outpipe){.fd = -1, .stream = INIT_STDOUT};
    p->out[1] = (struct outpipe){.fd = -1, .stream = INIT_STDERR};
    p->in.fd = p->slave = -1;
    list_init(&p->link);
    list_init(&p->ended);
    list_init(&p->watches);
    return p;
}

static void proc_free(struct proc *p)
{
    list_del(&p->link);
    loop_undefer(&p->later);
    loop_timer_stop(p->all->loop, &p->timeout);
    loop_timer_stop(p->all->loop, &p->grace);
    loop_timer_stop(p->all->loop, &p->retry);
    output_close(p);
    feed_close(p);
    drop_fd(&p->slave);
    ring_free(&p->ring);
    group_put(p->group);
    free(p);
}

/* Pids are used again: the last one that had it. */
static struct proc *find_pid(struct procs *ps, const char *text)
{
    struct proc *p, *found = NULL;
    uint64_t pid;

    if (str_u64(text, INT32_MAX, &pid) < 0)
        return NULL;
    LIST_EACH (&ps->all, p, struct proc, link)
        if (p->record.pid == pid && !proc_is_own(p))
            found = p;
    return found;
}

struct proc *proc_find(struct procs *ps, const char *id, struct err *e)
{
    struct map_node *n = map_get(&ps->by_id, id);
    struct proc *p = id[0] == '@' ? find_pid(ps, id + 1) : NULL;

    if (p != NULL)
        return p;
    if (n != NULL)
        return CONTAINER_OF(n, struct proc, node);
    err_set(e, ERR_NOT_FOUND, "no process %s in this sandbox", id);
    return NULL;
}

void proc_fill(const struct proc *p, struct init_proc *m)
{
    *m = p->record;
    m->state = p->output == OUTPUT_ENDED ? INIT_EXITED : p->queued ? INIT_QUEUED : INIT_RUNNING;
    m->stdin_open = p->in.fd >= 0 && !p->in.closing;
    m->output_first = p->ring.first;
    m->output_end = p->ring.end;
    if (proc_is_term(p))
        term_size(p, &m->cols, &m->rows);
}

void proc_fill_exit(const struct proc *p, struct init_exit *m)
{
    const struct init_proc *r = &p->record;

    *m = (struct init_exit){.id = r->id,
                            .code = r->code,
                            .signal = r->signal,
                            .flags = r->flags,
                            .ended_ms = r->ended_ms,
                            .output_end = p->output == OUTPUT_ENDED ? p->output_end : p->ring.end,
                            .cpu_us = r->cpu_us,
                            .maxrss_kb = r->maxrss_kb};
}

/* ---- watches ---- */

void proc_changed(struct proc *p)
{
    struct proc_watch *w;

    LIST_EACH (&p->watches, w, struct proc_watch, link)
        w->changed(w);
}

/* ---- being forgotten ---- */

void proc_sink_closed(struct proc *p)
{
    p->all->nghosts--;
    proc_free(p);
}

static void cut_oldest_ghost(struct procs *ps)
{
    struct proc *p = LIST_FIRST(&ps->ghosts, struct proc, link);

    proc_sink_closed(p);
}

/* A background child may hold the pipes: it must not die of SIGPIPE because we
 * lost interest. */
static void become_ghost(struct proc *p)
{
    struct procs *ps = p->all;

    if (ps->nghosts >= PROCS_GHOSTS_MAX)
        cut_oldest_ghost(ps);
    ring_free(&p->ring);
    feed_close(p);
    loop_undefer(&p->later);
    loop_timer_stop(ps->loop, &p->retry);
    group_put(take_ptr(&p->group));
    list_add_tail(&ps->ghosts, &p->link);
    ps->nghosts++;
    output_sink(p);
    if (!output_is_open(p))
        proc_sink_closed(p);
}

static void forget(struct proc *p)
{
    struct proc_watch *w;

    if (!p->unnamed)
        map_del(&p->all->by_id, &p->node);
    list_del(&p->link);
    list_del(&p->ended);
    p->shelf->kept -= !p->forget;
    p->owner = NULL;
    LIST_EACH (&p->watches, w, struct proc_watch, link) {
        list_del(&w->link);
        w->proc = NULL;
        w->changed(w);
    }
    if (output_is_open(p))
        become_ghost(p);
    else
        proc_free(p);
}

/* A kill that was asked for is carried out even when nobody waits for it. */
static bool is_forgettable(const struct proc *p)
{
    return p->output == OUTPUT_ENDED && (p->state == PROC_LEFT || p->state == PROC_GONE);
}

static void forget_oldest_kept(struct procs *ps, const struct shelf *shelf)
{
    struct proc *p;

    LIST_EACH (&ps->ended, p, struct proc, ended) {
        if (shelf->kept <= shelf->max)
            return;
        if (p->shelf == shelf && is_forgettable(p) && !p->forget && p->owner == NULL)
            forget(p);
    }
}

static bool may_resume(const struct proc *p)
{
    return p->owner == NULL || p->ring.end - p->owner->cursor <= p->ring.cap / 2;
}

/* What cannot be done inside the callback that made it possible. */
static void afterwards(struct loop_later *l)
{
    struct proc *p = CONTAINER_OF(l, struct proc, later);
    const struct shelf *shelf = p->shelf;
    struct procs *ps = p->all;

    if (p->paused && may_resume(p))
        output_resume(p);
    if (p->forget && is_forgettable(p) && list_empty(&p->watches))
        forget(p);
    forget_oldest_kept(ps, shelf);
}

static void look_later(struct proc *p)
{
    loop_defer(p->all->loop, &p->later, afterwards);
}

bool proc_is_own(const struct proc *p)
{
    return p->record.id[0] == '.';
}

/* ---- time ---- */

static uint64_t bounded_ms(uint64_t ms)
{
    return ms < PROC_TIME_MAX ? ms : PROC_TIME_MAX;
}

/* A terminal is killed with all it started: an interactive shell heeds neither. Else TERM
 * first: what reads its stdin must not take the end of it for the end of what
 * was to come. */
static void pull_leash(struct proc *p)
{
    if (p->flags & INIT_START_TERMINAL) {
        proc_event(p, EV_TIMEOUT);
        return;
    }
    if (p->pid != 0)
        kill(p->pid, SIGTERM);
    feed_finish(p);
}

/* Its root may have ended, and those it left behind hold its output open. */
static void expire(struct proc *p)
{
    output_cut(p);
    proc_event(p, p->pid != 0 ? EV_TIMEOUT : EV_FORCE);
}

static void time_is_over(struct proc *p)
{
    if ((p->flags & INIT_START_LEASH) != 0)
        pull_leash(p);
    else if (p->late != NULL)
        p->late(p);
    else
        expire(p);
}

/* A process's time stands still while the sandbox is paused: what it was frozen
 * for since the timer was set is granted again, a little more at most. */
static void on_timeout(struct loop_timer *t)
{
    struct proc *p = CONTAINER_OF(t, struct proc, timeout);
    uint64_t frozen = groups_frozen_ms(&p->all->groups), more = frozen - p->frozen_ms;

    p->frozen_ms = frozen;
    if (more == 0 ||
        loop_timer_set(p->all->loop, t, more > THAW_MS ? more : THAW_MS, on_timeout) < 0)
        time_is_over(p);
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

void proc_forget(struct proc *p)
{
    if (!p->forget && p->output == OUTPUT_ENDED)
        p->shelf->kept--;
    p->forget = true;
    look_later(p);
}

void proc_unname(struct proc *p)
{
    if (!p->unnamed)
        map_del(&p->all->by_id, &p->node);
    p->unnamed = true;
}

void proc_watch_start(struct proc_watch *w, struct proc *p, uint64_t cursor,
                      void (*changed)(struct proc_watch *w), bool owner)
{
    w->proc = p;
    w->cursor = cursor;
    w->changed = changed;
    list_add_tail(&p->watches, &w->link);
    if (owner)
        p->owner = w;
    if ((p->flags & INIT_START_LEASH) != 0)
        loop_timer_stop(p->all->loop, &p->timeout);
}

void proc_watch_stop(struct proc_watch *w)
{
    struct proc *p = w->proc;

    if (p == NULL)
        return;
    list_del(&w->link);
    w->proc = NULL;
    if (p->owner == w)
        p->owner = NULL;
    if (list_empty(&p->watches))
        proc_unwatched(p);
    look_later(p);
}

void proc_watch_moved(struct proc_watch *w)
{
    if (w->proc->paused && w->proc->owner == w)
        look_later(w->proc);
}

/* ---- the end ---- */

void proc_output_ended(struct proc *p)
{
    struct procs *ps = p->all;

    p->output = OUTPUT_ENDED;
    p->output_end = p->ring.end;
    loop_timer_stop(ps->loop, &p->timeout);
    feed_close(p);
    if (proc_is_term(p))
        term_close(p);
    ps->on_event(ps, p, INIT_EVENT_EXITED);
    list_add_tail(&ps->ended, &p->ended);
    p->shelf->kept += !p->forget;
    proc_changed(p);
    look_later(p);
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
    group_signal(p->group, SIGCONT, &e); /* a stopped one hears TERM only when continued */
}

static void act_force(struct proc *p)
{
    struct err e;

    if (p->pid != 0)
        p->record.flags |= INIT_EXIT_KILLED;
    group_hurry(p->group);
    group_kill(p->group, &e);
}

static void act_expire(struct proc *p)
{
    struct err e;

    p->record.flags |= INIT_EXIT_TIMED_OUT;
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
    look_later(p);
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
    if (to == INIT_TO_FOREGROUND)
        return term_signal(p, signo, e);
    if (to == INIT_TO_TREE && p->group != NULL)
        return group_signal(p->group, signo, e);
    if (p->pid == 0)
        return err_set(e, ERR_GONE, "process %s has ended", p->record.id);
    if (kill(p->pid, signo) < 0)
        return err_set(e, ERR_INVALID, "signal %d cannot be sent: %s", signo, strerror(errno));
    return 0;
}

static uint64_t us(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000u + (uint64_t)t->tv_usec;
}

/* The kernel's maxrss counts from before the exec, when the memory was ours: for
 * a program smaller than init it says how big init was. */
void proc_reaped(struct proc *p, int status, const struct rusage *ru)
{
    struct init_proc *r = &p->record;

    r->ended_ms = clock_real_ms();
    r->cpu_us = us(&ru->ru_utime) + us(&ru->ru_stime);
    r->maxrss_kb = (uint64_t)ru->ru_maxrss;
    if (WIFSIGNALED(status)) {
        r->signal = (uint32_t)WTERMSIG(status);
        r->code = CODE_SIGNAL + r->signal;
        r->flags |= WCOREDUMP(status) ? INIT_EXIT_CORE : 0;
    } else {
        r->code = (uint32_t)WEXITSTATUS(status);
    }
    if (r->signal == SIGKILL && groups_had_oom(&p->all->groups))
        r->flags |= INIT_EXIT_OOM;
    if ((r->flags & INIT_EXIT_TIMED_OUT) != 0)
        r->code = CODE_TIMED_OUT;
    proc_event(p, EV_EXIT);
}

/* ---- the start ---- */

bool proc_id_is_valid(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n > 0 && n <= INIT_ID_MAX && s[n] == '\0';
}

/* The ended process whose id is wanted again gives it up; whoever looks at it still
 * sees its end. */
static void make_room(struct procs *ps, const struct init_start *m)
{
    struct map_node *n = map_get(&ps->by_id, m->id);
    struct proc *p = n != NULL ? CONTAINER_OF(n, struct proc, node) : NULL;

    if ((m->flags & INIT_START_REUSE) == 0 || p == NULL || p->output != OUTPUT_ENDED)
        return;
    proc_forget(p);
    proc_unname(p);
}

static int choose_id(struct procs *ps, const struct init_start *m, char out[INIT_ID_MAX + 1],
                     struct err *e)
{
    char letter = (m->flags & INIT_START_TERMINAL) != 0 ? 't' : 'p';
    const char *wish = m->id;

    if (wish[0] != '\0' && !proc_id_is_valid(wish))
        return err_set(e, ERR_INVALID, "an id is 1 to %u of A-Z a-z 0-9 . _ -", INIT_ID_MAX);
    make_room(ps, m);
    if (map_get(&ps->by_id, wish) != NULL)
        return err_set(e, ERR_CONFLICT, "there is a process %s already", wish);
    if (wish[0] != '\0') {
        strcpy(out, wish);
        return 0;
    }
    do
        str_fmt(out, INIT_ID_MAX + 1, "%c%llu", letter, (unsigned long long)++ps->next_id);
    while (map_get(&ps->by_id, out) != NULL);
    return 0;
}

/* The child's ends of stdio are ours only until it runs. */
struct child_ends {
    int in, out[2];
};

static void drop_ends(struct child_ends *c)
{
    drop_fd(&c->in);
    drop_fd(&c->out[0]);
    drop_fd(&c->out[1]);
}

static int open_stdio(struct proc *p, const struct init_start *m, const struct user *u,
                      struct child_ends *c, struct err *e)
{
    if (proc_is_term(p))
        return term_open(p, m, u, e);
    if (output_open(p, c->out, e) < 0)
        return -1;
    return (m->flags & INIT_START_STDIN) != 0 ? feed_open(p, &c->in, e) : 0;
}

static int launch(struct proc *p, const struct init_start *m, const struct user *u, int fd,
                  struct child_ends *c, struct err *e)
{
    struct procs *ps = p->all;
    struct spawn_opts o = {.argv = &m->argv,
                           .env = &m->env,
                           .cwd = m->cwd,
                           .user = u,
                           .extra = fd,
                           .helper = (m->flags & INIT_START_HELPER) != 0};

    if (open_stdio(p, m, u, c, e) < 0)
        return -1;
    if (output_start(p, e) < 0 || group_take(&ps->groups, &p->group, e) < 0)
        return -1;
    o.tty = proc_is_term(p);
    o.stdio[0] = o.tty ? p->slave : c->in >= 0 ? c->in : ps->null_fd;
    o.stdio[1] = o.tty ? p->slave : c->out[0];
    o.stdio[2] = o.tty ? p->slave : c->out[1];
    o.cgroup_fd = p->group->fd;
    return spawn(&ps->spawner, &o, &p->pid, e);
}

/* Where a failure would leave a running child without a record, the child goes. */
static int enter(struct proc *p, struct err *e)
{
    struct procs *ps = p->all;

    if (map_put(&ps->by_id, &p->node, p->record.id) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (p->record.timeout_ms != 0 && set_timeout(p) < 0) {
        map_del(&ps->by_id, &p->node);
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    }
    list_add_tail(&ps->all, &p->link);
    ps->running++;
    ps->own += proc_is_own(p);
    ps->terms += proc_is_term(p);
    p->serial = ps->next_serial++;
    p->record.pid = (uint32_t)p->pid;
    p->record.started_ms = clock_real_ms();
    ps->on_event(ps, p, INIT_EVENT_STARTED);
    return 0;
}

static int start_record(struct proc *p, const struct init_start *m, const struct user *u, int fd,
                        struct err *e)
{
    struct child_ends ends = {-1, {-1, -1}};
    struct err ignored;
    int ret = launch(p, m, u, fd, &ends, e);

    drop_ends(&ends);
    if (ret < 0)
        return -1;
    if (enter(p, e) == 0)
        return 0;
    group_kill(p->group, &ignored);
    return -1;
}

/* The terminal that INIT_START_GET means, if it runs; one that has ended makes
 * room for the next of its id. */
static struct proc *get_term(struct procs *ps, const struct init_start *m)
{
    struct map_node *n = map_get(&ps->by_id, m->id);
    struct proc *p = n != NULL ? CONTAINER_OF(n, struct proc, node) : NULL;

    if (p == NULL || !proc_is_term(p))
        return NULL;
    if (p->output != OUTPUT_ENDED)
        return p;
    proc_forget(p);
    proc_unname(p);
    return NULL;
}

static int check_room(const struct procs *ps, const struct init_start *m, struct err *e)
{
    if (ps->running >= PROCS_RUNNING_MAX)
        return err_set(e, ERR_LIMIT, "%u processes run already", ps->running);
    if (m->id[0] == '.' && ps->own >= PROCS_OWN_MAX)
        return err_set(e, ERR_LIMIT, "%u watches of this sandbox are open already", ps->own);
    if ((m->flags & INIT_START_TERMINAL) != 0 && ps->terms >= TERMS_RUNNING_MAX)
        return err_set(e, ERR_LIMIT, "%u terminals run already", ps->terms);
    return 0;
}

int proc_start_as(struct procs *ps, const struct init_start *m, const struct wire_strv *shown,
                  int fd, struct proc **ret, struct err *e)
{
    struct init_start record = *m;
    char id[INIT_ID_MAX + 1];
    struct user u;
    struct proc *p;

    if ((m->flags & INIT_START_GET) != 0 && (*ret = get_term(ps, m)) != NULL)
        return 1;
    if (choose_id(ps, m, id, e) < 0 || check_room(ps, m, e) < 0)
        return -1;
    if (user_find(ps->root_fd, m->user[0] != '\0' ? m->user : "root", &u, e) < 0)
        return -1;
    record.argv = *shown;
    p = proc_new(ps, &record, id);
    if (p == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (start_record(p, m, &u, fd, e) < 0) {
        proc_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

int proc_start(struct procs *ps, const struct init_start *m, struct proc **ret, struct err *e)
{
    return proc_start_as(ps, m, &m->argv, -1, ret, e);
}

/* ---- records of what others run ---- */

/* In PROC_GONE from the first: there is no root to reap and no group to empty. */
int proc_add(struct procs *ps, const struct init_start *m, const char *name, struct shelf *shelf,
             struct proc **ret, struct err *e)
{
    struct proc *p = proc_new(ps, m, name != NULL ? name : "");

    if (p == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    p->shelf = shelf;
    p->state = PROC_GONE;
    p->unnamed = name == NULL;
    p->forget = name == NULL;
    if (name != NULL && map_put(&ps->by_id, &p->node, p->record.id) < 0) {
        proc_free(p);
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    }
    list_add_tail(&ps->all, &p->link);
    p->serial = ps->next_serial++;
    p->record.started_ms = clock_real_ms();
    *ret = p;
    return 0;
}

void proc_ended(struct proc *p, unsigned code, unsigned signal)
{
    p->record.ended_ms = clock_real_ms();
    p->record.code = code;
    p->record.signal = signal;
    p->queued = false;
    p->call = NULL;
    loop_timer_stop(p->all->loop, &p->timeout);
    output_drain(p);
}

void procs_orphan(struct procs *ps, const struct shelf *shelf)
{
    struct proc *p;

    LIST_EACH (&ps->all, p, struct proc, link) {
        if (p->shelf != shelf)
            continue;
        proc_forget(p);
        proc_unname(p);
        p->shelf = &ps->shelves[0];
    }
}

/* ---- the table ---- */

/* The oldest finished process with output loses it; its end stays known. */
static bool reclaim(struct ring_budget *b, const struct ring *r)
{
    struct procs *ps = CONTAINER_OF(b, struct procs, rings);
    struct proc *p;

    LIST_EACH (&ps->ended, p, struct proc, ended) {
        if (&p->ring != r && p->owner == NULL && p->ring.cap > 0) {
            ring_free(&p->ring);
            return true;
        }
    }
    return false;
}

int procs_init(struct procs *ps, struct loop *l, int run_fd, int oom_fd, uint64_t nofile,
               struct err *e)
{
    *ps = (struct procs){.loop = l,
                         .rings = {.max = PROCS_RINGS_MAX, .reclaim = reclaim},
                         .shelves = {{.max = PROCS_KEPT_MAX}, {.max = TERMS_KEPT_MAX}}};
    map_init(&ps->by_id);
    list_init(&ps->all);
    list_init(&ps->ended);
    list_init(&ps->ghosts);
    groups_init(&ps->groups, l, run_fd, oom_fd);
    ps->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ps->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (ps->root_fd < 0 || ps->null_fd < 0)
        return err_sys(e, "open / and /dev/null");
    return spawner_init(&ps->spawner, nofile, e);
}
