/* proc.c - see proc.h: records, their watches, and when they are dropped. What happens to a
 * process is in proc_life.c, how it starts in proc_start.c. */
#include "init/run/proc.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"

/* ---- records ---- */

/* How much of argv a record shows: whole strings while they fit, of the first at least a
 * part. */
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

bool proc_is_term(const struct proc *p)
{
    return (p->flags & INIT_START_TERMINAL) != 0;
}

struct proc *proc_new(struct procs *ps, const struct init_start *m, const char *id)
{
    bool term = (m->flags & INIT_START_TERMINAL) != 0;
    uint32_t argv_len = shown_len(&m->argv), ring = term ? TERM_RING_DEFAULT : RING_DEFAULT;
    size_t text = strlen(id) + strlen(m->cwd) + strlen(m->user) + 3 + argv_len;
    struct proc *p = calloc(1, sizeof(*p) + text);
    struct init_proc *r;
    char *at;

    if (p == NULL)
        return NULL;
    r = &p->record;
    at = p->text;
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
    p->all = ps;
    p->shelf = &ps->shelves[term];
    p->flags = m->flags;
    if (term) /* a screen has no lines */
        p->flags &= ~(uint32_t)INIT_START_LOG;
    p->forget = (m->flags & INIT_START_FORGET) != 0;
    ring_init(&p->ring, m->ring != 0 ? m->ring : ring, &ps->rings);
    buf_init(&p->in.queue, STDIN_QUEUE_MAX);
    p->out[0] = (struct outpipe){.fd = -1, .hold = -1, .done = -1, .stream = INIT_STDOUT};
    p->out[1] = (struct outpipe){.fd = -1, .hold = -1, .done = -1, .stream = INIT_STDERR};
    for (int i = 0; i < 2; i++)
        buf_init(&p->out[i].part.text, INIT_LINE_MAX);
    p->in.fd = p->slave = -1;
    list_init(&p->link);
    list_init(&p->ended);
    list_init(&p->watches);
    return p;
}

void proc_free(struct proc *p)
{
    list_del(&p->link);
    loop_undefer(&p->later);
    loop_timer_stop(p->all->loop, &p->timeout);
    loop_timer_stop(p->all->loop, &p->grace);
    loop_timer_stop(p->all->loop, &p->retry);
    output_close(p);
    output_log_rest(p);
    stdin_close(p);
    drop_fd(&p->slave);
    ring_free(&p->ring);
    group_put(p->group);
    free(p);
}

/* Pids are used again: the last process that had it. Not what the front runs for itself, which
 * clients cannot name. */
static struct proc *find_pid(struct procs *ps, const char *text)
{
    struct proc *p, *found = NULL;
    uint64_t pid;

    if (str_u64(text, INT32_MAX, &pid) < 0)
        return NULL;
    LIST_EACH (&ps->all, p, struct proc, link)
        if (p->record.pid == pid && !proc_is_own(p) && (p->flags & INIT_START_HELPER) == 0)
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
    /* front/engine/watch.c looks for the first two words */
    err_set(e, ERR_NOT_FOUND, "no process %s in this sandbox", id);
    return NULL;
}

struct proc *proc_of_pid(struct procs *ps, pid_t pid)
{
    struct proc *p;

    LIST_EACH (&ps->all, p, struct proc, link)
        if (p->pid == pid)
            return p;
    return NULL;
}

void proc_fill(const struct proc *p, struct init_proc *m)
{
    /* Also exited: no process of it runs, but its owner has not taken the last output. */
    bool over = p->output == OUTPUT_ENDED || (p->record.ended_ms != 0 && p->state == PROC_GONE);

    *m = p->record;
    m->state = over ? INIT_EXITED : p->queued ? INIT_QUEUED : INIT_RUNNING;
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

/* ---- dropping records ---- */

void proc_sink_closed(struct proc *p)
{
    p->all->nghosts--;
    proc_free(p);
}

/* A background child may hold the pipes: it must not die of SIGPIPE because the record was
 * dropped. */
static void become_ghost(struct proc *p)
{
    struct procs *ps = p->all;

    if (ps->nghosts >= PROCS_GHOSTS_MAX)
        proc_sink_closed(LIST_FIRST(&ps->ghosts, struct proc, link));
    ring_free(&p->ring);
    stdin_close(p);
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

/* Not while a kill is under way: it is carried out also when no watch waits for it. */
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

/* Deferred: the callback that made it possible still uses the proc. */
static void afterwards(struct loop_later *l)
{
    struct proc *p = CONTAINER_OF(l, struct proc, later);
    const struct shelf *shelf = p->shelf;
    struct procs *ps = p->all;

    if (p->paused && (p->owner == NULL || p->ring.end - p->owner->cursor <= p->ring.cap / 2))
        output_resume(p);
    if (p->forget && is_forgettable(p) && list_empty(&p->watches))
        forget(p);
    forget_oldest_kept(ps, shelf);
}

void proc_later(struct proc *p)
{
    loop_defer(p->all->loop, &p->later, afterwards);
}

bool proc_is_own(const struct proc *p)
{
    return p->record.id[0] == '.';
}

void proc_forget(struct proc *p)
{
    if (!p->forget && p->output == OUTPUT_ENDED)
        p->shelf->kept--;
    p->forget = true;
    proc_later(p);
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
    w->owns = owner;
    list_add_tail(&p->watches, &w->link);
    if (owner && p->owner == NULL)
        p->owner = w;
    if ((p->flags & INIT_START_LEASH) != 0)
        loop_timer_stop(p->all->loop, &p->timeout);
}

void proc_watch_stop(struct proc_watch *w)
{
    struct proc_watch *next;
    struct proc *p = w->proc;

    if (p == NULL)
        return;
    list_del(&w->link);
    w->proc = NULL;
    if (p->owner == w) {
        p->owner = NULL;
        /* The oldest; it may have missed output before, but does not from now on. */
        LIST_EACH (&p->watches, next, struct proc_watch, link)
            if (next->owns && p->owner == NULL)
                p->owner = next;
    }
    if (list_empty(&p->watches))
        proc_unwatched(p);
    proc_later(p);
}

void proc_watch_moved(struct proc_watch *w)
{
    if (w->proc->paused && w->proc->owner == w)
        proc_later(w->proc);
}

/* ---- records of what a session's shell runs ---- */

/* In PROC_GONE from the start: there is no root to reap and no group to empty. */
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

/* The oldest finished process with output loses it; its record stays. */
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
    if (groups_watch_freezes(&ps->groups, e) < 0)
        return -1;
    ps->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ps->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (ps->root_fd < 0 || ps->null_fd < 0)
        return err_sys(e, "open / and /dev/null");
    return spawner_init(&ps->spawner, nofile, e);
}
