/* group.c - see group.h. */
#include "init/run/group.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/run/mark.h"

#define SWEEP_MS 250u     /* after a reap, for groups that are not urgent */
#define SWEEP_FIRST_MS 2u /* for urgent groups; then twice that, and so on */
#define GROUP_NAME_MAX 24
#define GROUPS_END_MS 3000u
#define GROUPS_END_STEP_MS 5
#define GROUP_TEXT_MAX 4096u /* bytes of cgroup.procs, to look for a few pids */

static const struct group_way cgroup_way, mark_way;

void groups_init(struct groups *gs, struct loop *l, int run_fd, int oom_fd)
{
    *gs = (struct groups){.way = run_fd >= 0 ? &cgroup_way : &mark_way,
                          .loop = l,
                          .run_fd = run_fd,
                          .oom_fd = oom_fd,
                          .next = 1,
                          .max = GROUPS_MAX};
    gs->stat_fd = run_fd < 0 ? -1 : openat(run_fd, "cgroup.stat.local", O_RDONLY | O_CLOEXEC);
    gs->freezes.fd = -1;
    list_init(&gs->spare);
    list_init(&gs->watched);
}

void groups_init_in(struct groups *gs, struct loop *l, struct group *home)
{
    groups_init(gs, l, home->fd, 0);
    gs->home = home;
    home->is_home = true;
}

/* Init is in none of them, so it sees a freeze happen, at most some 10 ms late. */
static void freeze_changed(struct loop_io *io, uint32_t events)
{
    struct groups *gs = CONTAINER_OF(io, struct groups, freezes.io);
    struct freezes *f = &gs->freezes;
    uint64_t now = clock_mono_ns();
    char text[128];
    ssize_t n = pread(f->fd, text, sizeof(text) - 1, 0);
    bool frozen;

    (void)events;
    text[n > 0 ? n : 0] = '\0';
    frozen = strstr(text, "frozen 1") != NULL;
    if (frozen == (f->since_ns != 0))
        return;
    f->total_ns += frozen ? 0 : now - f->since_ns;
    f->since_ns = frozen ? now : 0;
}

int groups_watch_freezes(struct groups *gs, struct err *e)
{
    struct freezes *f = &gs->freezes;
    int r;

    if (gs->stat_fd >= 0 || gs->run_fd < 0) /* what has no cgroup is never frozen */
        return 0;
    f->fd = openat(gs->run_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return err_sys(e, "open cgroup.events of run");
    r = loop_io_start(gs->loop, &f->io, f->fd, EPOLLPRI, freeze_changed, e);
    if (r == 0)
        freeze_changed(&f->io, 0); /* the kernel reports only changes after a read */
    return r;
}

uint64_t groups_frozen_ms(const struct groups *gs)
{
    static const char key[] = "frozen_usec ";
    const struct freezes *f = &gs->freezes;
    char text[256], *at;
    ssize_t n;
    uint64_t us;

    if (gs->stat_fd < 0)
        return (f->total_ns + (f->since_ns == 0 ? 0 : clock_mono_ns() - f->since_ns)) / 1000000;
    n = pread(gs->stat_fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, key);
    if (at == NULL)
        return 0;
    at += strlen(key);
    *strchrnul(at, '\n') = '\0';
    return str_u64(at, UINT64_MAX, &us) == 0 ? us / 1000 : 0;
}

static void name_of(const struct group *g, char out[GROUP_NAME_MAX])
{
    str_fmt(out, GROUP_NAME_MAX, "%llu", (unsigned long long)g->number);
}

/* ---- with cgroups ---- */

static int make_cgroup(struct group *g, struct err *e)
{
    struct groups *gs = g->all;
    char name[GROUP_NAME_MAX];
    int made;

    do {
        g->number = gs->next++;
        name_of(g, name);
        made = mkdirat(gs->run_fd, name, 0755);
    } while (made < 0 && errno == EEXIST);
    if (made < 0 && (errno == EAGAIN || errno == ENOMEM))
        return err_set(e, ERR_UNAVAILABLE, "make cgroup run/%s: %s", name, strerror(errno));
    if (made < 0)
        return err_sys(e, "make cgroup run/%s", name);
    g->fd = openat(gs->run_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->fd >= 0)
        g->events_fd = openat(g->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (g->events_fd < 0) {
        err_sys(e, "open cgroup.events of run/%s", name);
        drop_fd(&g->fd);
        unlinkat(gs->run_fd, name, AT_REMOVEDIR);
        return -1;
    }
    return 0;
}

/* -1: EBUSY, a process is still in it that was reaped a moment ago. */
static int remove_cgroup(struct group *g)
{
    char name[GROUP_NAME_MAX];

    name_of(g, name);
    return unlinkat(g->all->run_fd, name, AT_REMOVEDIR) < 0 && errno == EBUSY ? -1 : 0;
}

/* An unreadable file counts as empty: then the directory is gone, too. */
static bool cgroup_is_empty(const struct group *g)
{
    char text[128];
    ssize_t n = pread(g->events_fd, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "populated 1") == NULL;
}

static int kill_cgroup(struct group *g, struct err *e)
{
    autofd int fd = openat(g->fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "1", 1) != 1)
        return err_sys(e, "kill cgroup run/%llu", (unsigned long long)g->number);
    return 0;
}

/* kernfs returns at most a page or so per read. */
static size_t read_procs(struct group *g, char *text, size_t room)
{
    autofd int fd = openat(g->fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    while (fd >= 0 && len < room && (n = read(fd, text + len, room - len)) > 0)
        len += (size_t)n;
    return len;
}

/* The next pid of such a text, 0 at its end. A 0 in it stands for a process of another pid
 * namespace: to kill() it would mean our own process group. A last line without newline may
 * be cut. */
static pid_t next_pid(char **at)
{
    char *line;
    uint64_t pid;

    while ((line = strsep(at, "\n")) != NULL)
        if (*at != NULL && str_u64(line, 1u << 30, &pid) == 0 && pid > 1)
            return (pid_t)pid;
    return 0;
}

static int signal_cgroup(struct group *g, int signo, struct err *e)
{
    autofree char *text = malloc(GROUP_SIGNAL_MAX + 1);
    char *at = text;
    pid_t pid;

    if (text == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    text[read_procs(g, text, GROUP_SIGNAL_MAX)] = '\0';
    while ((pid = next_pid(&at)) != 0)
        kill(pid, signo);
    return 0;
}

/* One read is enough: it has two lines, if there are so many. */
static bool cgroup_is_only(struct group *g, pid_t one)
{
    char text[GROUP_TEXT_MAX + 1], *at = text;
    pid_t pid;
    ssize_t got;

    if (g->procs_fd < 0)
        g->procs_fd = openat(g->fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    got = pread(g->procs_fd, text, GROUP_TEXT_MAX, 0);
    text[got > 0 ? got : 0] = '\0';
    while ((pid = next_pid(&at)) != 0)
        if (pid != one)
            return false;
    return true;
}

static void move_begin_cgroup(struct group *to, struct group_move *m)
{
    m->fd = openat(to->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

/* It fails if the process is gone by now. */
static void move_cgroup(const struct group_move *m)
{
    char text[16];

    str_fmt(text, sizeof(text), "%d\n", (int)m->pid);
    if (write(m->fd, text, strlen(text)) < 0)
        return;
}

static bool kill_all_cgroups(const struct groups *gs)
{
    autofd int kill_fd = openat(gs->run_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    autofd int fd = openat(gs->run_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    struct group all = {.events_fd = fd};

    return kill_fd < 0 || write(kill_fd, "1", 1) != 1 || cgroup_is_empty(&all);
}

static const struct group_way cgroup_way = {
    .kill_all = kill_all_cgroups,
    .make = make_cgroup,
    .remove = remove_cgroup,
    .is_empty = cgroup_is_empty,
    .kill = kill_cgroup,
    .signal = signal_cgroup,
    .is_only = cgroup_is_only,
    .move_begin = move_begin_cgroup,
    .move = move_cgroup,
};

/* ---- with marks ---- */

static enum mark_what what_of(const struct group *g)
{
    return g->is_home ? MARK_HOME : MARK_ONE;
}

static int make_mark(struct group *g, struct err *e)
{
    struct groups *gs = g->all;

    g->number = gs->next++;
    if (gs->home == NULL) {
        g->mark = mark_new();
        return 0;
    }
    if (g->number >= MARK_NUMBERS_MAX)
        return err_set(e, ERR_LIMIT,
                       "this session ran %u commands that left processes running, "
                       "which is the limit; make another",
                       MARK_NUMBERS_MAX);
    g->mark = mark_in(gs->home->mark, (uint32_t)g->number);
    return 0;
}

static int remove_mark(struct group *g)
{
    (void)g;
    return 0;
}

static bool stop_at_first(void *arg, pid_t pid)
{
    (void)arg;
    (void)pid;
    return false;
}

static bool mark_is_empty(const struct group *g)
{
    return mark_each(g->mark, what_of(g), false, stop_at_first, NULL);
}

static bool signal_one(void *arg, pid_t pid)
{
    kill(pid, *(const int *)arg);
    return true;
}

static bool kill_one(void *arg, pid_t pid)
{
    *(bool *)arg = true;
    kill(pid, SIGKILL);
    return true;
}

/* First all are stopped, so that none starts another between two looks; then all are killed. What
 * was being born meanwhile is found when the caller looks again whether it is empty. */
static int kill_mark(struct group *g, struct err *e)
{
    static const int order[] = {SIGSTOP, SIGSTOP, SIGKILL, SIGKILL};

    (void)e;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        mark_each(g->mark, what_of(g), true, signal_one, &(int){order[i]});
    return 0;
}

static int signal_mark(struct group *g, int signo, struct err *e)
{
    (void)e;
    mark_each(g->mark, what_of(g), false, signal_one, &signo);
    return 0;
}

static bool is_one(void *arg, pid_t pid)
{
    return pid == *(const pid_t *)arg;
}

static bool mark_is_only(struct group *g, pid_t one)
{
    return mark_each(g->mark, what_of(g), false, is_one, &one);
}

static void move_begin_mark(struct group *to, struct group_move *m)
{
    m->mark = to->mark;
}

static void move_mark(const struct group_move *m)
{
    mark_set(m->pid, m->mark);
}

static bool kill_all_marks(const struct groups *gs)
{
    bool some = false;

    (void)gs;
    mark_each(mark_any(), MARK_ANY, true, signal_one, &(int){SIGSTOP});
    mark_each(mark_any(), MARK_ANY, true, kill_one, &some);
    return !some;
}

static const struct group_way mark_way = {
    .kill_all = kill_all_marks,
    .make = make_mark,
    .remove = remove_mark,
    .is_empty = mark_is_empty,
    .kill = kill_mark,
    .signal = signal_mark,
    .is_only = mark_is_only,
    .move_begin = move_begin_mark,
    .move = move_mark,
};

/* ---- with either ---- */

bool group_is_empty(const struct group *g)
{
    struct err e;

    if (g->all->way->is_empty(g))
        return true;
    /* What was born while it was killed; a cgroup kills those by itself. */
    if (g->spent && g->mark != 0 && g->killed)
        g->all->way->kill((struct group *)g, &e);
    return false;
}

bool group_is_only(struct group *g, pid_t one)
{
    return g->all->way->is_only(g, one);
}

int group_signal(struct group *g, int signo, struct err *e)
{
    return g->all->way->signal(g, signo, e);
}

int group_kill(struct group *g, struct err *e)
{
    g->spent = g->killed = true;
    return g->all->way->kill(g, e);
}

void group_move_begin(struct group *to, pid_t pid, struct group_move *ret)
{
    *ret = (struct group_move){.pid = pid, .fd = -1};
    to->all->way->move_begin(to, ret);
    ret->way = to->all->way;
}

void group_move(const struct group_move *m)
{
    if (m->pid != 0)
        m->way->move(m);
}

void group_move_end(struct group_move *m)
{
    drop_fd(&m->fd);
}

/* -1: not yet. */
static int remove_group(struct group *g)
{
    if (g->all->way->remove(g) < 0)
        return -1;
    drop_fd(&g->events_fd);
    drop_fd(&g->procs_fd);
    drop_fd(&g->fd);
    g->all->count--;
    list_del(&g->link);
    free(g);
    return 0;
}

static int make_group(struct groups *gs, struct group **ret, struct err *e)
{
    struct group *g;

    if (gs->count >= gs->max)
        return err_set(e, ERR_LIMIT,
                       "%u commands run or left processes running, which is the limit; kill some",
                       gs->count);
    g = calloc(1, sizeof(*g));
    if (g == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    g->all = gs;
    g->fd = g->events_fd = g->procs_fd = -1;
    list_init(&g->link);
    if (gs->way->make(g, e) < 0) {
        free(g);
        return -1;
    }
    gs->count++;
    *ret = g;
    return 0;
}

int group_take(struct groups *gs, struct group **ret, struct err *e)
{
    struct group *g = LIST_FIRST(&gs->spare, struct group, link);

    if (g == NULL)
        return make_group(gs, ret, e);
    list_del(&g->link);
    gs->nspare--;
    *ret = g;
    return 0;
}

/* It has no owner and is empty: to the spares, or removed. */
static void retire(struct group *g)
{
    struct groups *gs = g->all;

    /* A mark costs nothing to make, and a shell can only be moved to a younger one. */
    if (g->spent || g->mark != 0 || gs->nspare >= GROUPS_SPARE_MAX) {
        if (remove_group(g) < 0)
            list_add_tail(&gs->watched, &g->link);
        return;
    }
    g->urgent = false;
    gs->nspare++;
    list_add_head(&gs->spare, &g->link);
}

void group_put(struct group *g)
{
    if (g == NULL)
        return;
    list_del(&g->link);
    g->on_empty = NULL;
    g->urgent = false;
    if (group_is_empty(g))
        retire(g);
    else
        list_add_tail(&g->all->watched, &g->link);
}

bool group_watch(struct group *g, void (*on_empty)(void *arg), void *arg)
{
    if (group_is_empty(g))
        return true;
    g->on_empty = on_empty;
    g->arg = arg;
    list_del(&g->link);
    list_add_tail(&g->all->watched, &g->link);
    return false;
}

static void swept(struct group *g)
{
    void (*on_empty)(void *arg) = g->on_empty;

    list_del(&g->link);
    if (on_empty == NULL) {
        retire(g);
        return;
    }
    g->on_empty = NULL;
    on_empty(g->arg);
}

/* Checks the watched groups, all or only the urgent ones; each once, from the front to the
 * back, since on_empty may add and remove. True if urgent ones remain. */
static bool look(struct groups *gs, bool urgent_only)
{
    struct list todo = gs->watched, *l;
    bool urgent_left = false;

    if (list_empty(&gs->watched))
        return false;
    todo.next->prev = todo.prev->next = &todo;
    list_init(&gs->watched);
    while ((l = todo.next) != &todo) {
        struct group *g = CONTAINER_OF(l, struct group, link);

        list_del(l);
        list_add_tail(&gs->watched, l);
        if ((g->urgent || !urgent_only) && group_is_empty(g))
            swept(g);
        else
            urgent_left |= g->urgent;
    }
    return urgent_left;
}

static void sweep(struct loop_timer *t)
{
    struct groups *gs = CONTAINER_OF(t, struct groups, sweep);

    gs->sweep_ms = gs->sweep_ms * 2 < SWEEP_MS ? gs->sweep_ms * 2 : SWEEP_MS;
    if (look(gs, false))
        loop_timer_set(gs->loop, &gs->sweep, gs->sweep_ms, sweep);
}

static void sweep_soon(struct groups *gs)
{
    gs->sweep_ms = SWEEP_FIRST_MS;
    loop_timer_set(gs->loop, &gs->sweep, gs->sweep_ms, sweep);
}

/* Urgent groups are checked now and then repeatedly: a process may be reaped by its tracer and
 * not by us, and newer kernels count it in its group until a moment after we reaped it. The
 * others are checked once after a burst of exits; without exits no timer runs. */
void groups_poke(struct groups *gs)
{
    if (list_empty(&gs->watched))
        return;
    if (look(gs, true))
        sweep_soon(gs);
    else if (gs->sweep.slot == 0 && !list_empty(&gs->watched))
        loop_timer_set(gs->loop, &gs->sweep, SWEEP_MS, sweep);
}

void group_hurry(struct group *g)
{
    g->urgent = true;
    sweep_soon(g->all);
}

/* Only while the server ends: it waits. */
void groups_kill_all(struct groups *gs)
{
    uint64_t until = clock_mono_ns() + GROUPS_END_MS * 1000000ull;

    while (!gs->way->kill_all(gs) && clock_mono_ns() < until)
        poll(NULL, 0, GROUPS_END_STEP_MS);
}

void groups_remove(struct groups *gs, struct group *own)
{
    struct group *g;

    if (own != NULL)
        remove_group(own);
    LIST_EACH (&gs->spare, g, struct group, link)
        remove_group(g);
    LIST_EACH (&gs->watched, g, struct group, link)
        remove_group(g);
    loop_timer_stop(gs->loop, &gs->sweep);
    own_close(&gs->stat_fd);
    gs->stat_fd = -1;
    loop_io_stop(gs->loop, &gs->freezes.io);
    drop_fd(&gs->freezes.fd);
}

uint64_t groups_oom_kills(const struct groups *gs)
{
    static const char key[] = "oom_kill ";
    char text[512], *at;
    ssize_t n = gs->oom_fd > 0 ? pread(gs->oom_fd, text, sizeof(text) - 1, 0) : -1;
    uint64_t kills = 0;

    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, key);
    if (at == NULL)
        return 0;
    at += strlen(key);
    *strchrnul(at, '\n') = '\0';
    return str_u64(at, UINT64_MAX, &kills) == 0 ? kills : 0;
}

/* The counter is the sandbox's, not the group's: a process that is killed by another SIGKILL
 * after an OOM kill of its neighbour is reported as OOM too, if no other exit was. */
bool groups_had_oom(struct groups *gs, uint64_t since)
{
    uint64_t kills = groups_oom_kills(gs);

    if (kills <= since || kills <= gs->oom_told)
        return false;
    gs->oom_told = kills;
    return true;
}
