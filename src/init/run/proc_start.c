/* proc_start.c - from a request to a running process with a record, or to neither. See
 * proc.h. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/run/proc.h"

bool proc_id_is_valid(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    _Static_assert(INIT_ID_MAX == 64, "PROC_ID_RULE says so");
    return n > 0 && n <= INIT_ID_MAX && s[n] == '\0';
}

static int choose_id(struct procs *ps, const struct init_start *m, char out[INIT_ID_MAX + 1],
                     struct err *e)
{
    char letter = (m->flags & INIT_START_TERMINAL) != 0 ? 't' : 'p';
    const char *wish = m->id;
    struct map_node *n = map_get(&ps->by_id, wish);
    struct proc *p = n != NULL ? CONTAINER_OF(n, struct proc, node) : NULL;

    if (wish[0] != '\0' && !proc_id_is_valid(wish))
        return err_set(e, ERR_INVALID, "start process '%s': " PROC_ID_RULE, wish);
    if (p != NULL && p->output == OUTPUT_ENDED && (m->flags & INIT_START_REUSE) != 0) {
        proc_forget(p);
        proc_unname(p);
    } else if (p != NULL) {
        return err_set(e, ERR_CONFLICT, "start process %s: the id is already in use", wish);
    }
    if (wish[0] != '\0') {
        strcpy(out, wish);
        return 0;
    }
    do
        str_fmt(out, INIT_ID_MAX + 1, "%c%llu", letter, (unsigned long long)++ps->next_id);
    while (map_get(&ps->by_id, out) != NULL);
    return 0;
}

static int launch(struct proc *p, const struct init_start *m, const struct user *u, int fd,
                  struct err *e)
{
    struct procs *ps = p->all;
    /* the child's ends, ours only until it runs */
    autofd int in = -1, out = -1, error = -1;
    struct spawn_opts o = {.argv = &m->argv,
                           .env = &m->env,
                           .cwd = m->cwd,
                           .user = u,
                           .extra = fd,
                           .helper = (m->flags & INIT_START_HELPER) != 0};

    o.tty = proc_is_term(p);
    if (o.tty && term_open(p, m, u, e) < 0)
        return -1;
    if (!o.tty && output_open(p, &out, &error, e) < 0)
        return -1;
    if (!o.tty && (m->flags & INIT_START_STDIN) != 0 && stdin_open(p, &in, e) < 0)
        return -1;
    if (output_start(p, e) < 0 || group_take(&ps->groups, &p->group, e) < 0)
        return -1;
    o.stdio[0] = o.tty ? p->slave : in >= 0 ? in : ps->null_fd;
    o.stdio[1] = o.tty ? p->slave : out;
    o.stdio[2] = o.tty ? p->slave : error;
    o.cgroup_fd = p->group->fd;
    o.mark = p->group->mark;
    p->oom_kills = groups_oom_kills(&ps->groups);
    return spawn(&ps->spawner, &o, &p->pid, e);
}

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

/* The terminal that INIT_START_GET means, if it runs; one that has ended gives up its id. */
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
        return err_set(
            e, ERR_LIMIT,
            "start process: %u processes run in this sandbox, which is the limit; kill one",
            ps->running);
    if (m->id[0] == '.' && ps->own >= PROCS_OWN_MAX)
        return err_set(e, ERR_LIMIT,
                       "watch: %u watches are open in this sandbox, which is the limit", ps->own);
    if ((m->flags & INIT_START_TERMINAL) != 0 && ps->terms >= TERMS_RUNNING_MAX)
        return err_set(
            e, ERR_LIMIT,
            "start terminal: %u terminals run in this sandbox, which is the limit; delete "
            "one first",
            ps->terms);
    return 0;
}

int proc_start_as(struct procs *ps, const struct init_start *m, const struct wire_strv *shown,
                  int fd, struct proc **ret, struct err *e)
{
    struct init_start record = *m;
    char id[INIT_ID_MAX + 1];
    struct user u;
    struct proc *p;
    struct err ignored;

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
    if (launch(p, m, &u, fd, e) < 0) {
        proc_free(p);
        return -1;
    }
    if (enter(p, e) < 0) { /* without a record it cannot be reached: it is killed */
        group_kill(p->group, &ignored);
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
