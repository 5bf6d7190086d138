/* proc_start.c - from a request to a running process with a record, or to neither. See
 * proc.h. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/proc.h"

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
    p->oom_kills = groups_oom_kills(&ps->groups);
    return spawn(&ps->spawner, &o, &p->pid, e);
}

/* Where a failure would leave a running child without a record, the child goes. */
static int enter(struct proc *p, struct err *e)
{
    struct procs *ps = p->all;

    if (map_put(&ps->by_id, &p->node, p->record.id) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (proc_set_timeout(p, p->record.timeout_ms) < 0) {
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
