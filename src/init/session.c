/* session.c - the life of a session, see session.h. */
#include "init/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/script.h"

#define SHELL "/bin/bash"

extern const char cove_shell_start[], cove_shell_end[]; /* from shell_blob.S */

void sessions_init(struct sessions *ss, struct procs *ps, const char *root)
{
    *ss = (struct sessions){.procs = ps, .root = root, .next_serial = 1, .object_fd = -1};
    map_init(&ss->by_id);
    list_init(&ss->all);
    list_init(&ss->ended);
}

struct session *session_find(struct sessions *ss, const char *id, struct err *e)
{
    struct map_node *n = map_get(&ss->by_id, id);

    if (n != NULL)
        return CONTAINER_OF(n, struct session, node);
    err_set(e, ERR_NOT_FOUND, "no session %s in this sandbox", id);
    return NULL;
}

/* ---- what is told about it ---- */

static void read_cwd(const struct session *s, char *out)
{
    char path[64];
    ssize_t n;

    str_fmt(path, sizeof(path), "/proc/%d/cwd", s->pid);
    n = session_signal(s, 0) ? readlink(path, out, INIT_PATH_MAX) : 0;
    out[n > 0 ? n : 0] = '\0';
}

/* The id within the session, of SESSION/COMMAND. */
static const char *short_id(const struct proc *p)
{
    const char *slash = strchr(p->record.id, '/');

    return slash != NULL ? slash + 1 : "";
}

void session_fill(const struct session *s, struct init_session *m, char *cwd)
{
    bool busy = s->call != NULL || s->nqueue > 0;

    *m = s->record;
    m->state = s->state == SESSION_ENDED ? INIT_SESSION_ENDED
               : busy                    ? INIT_SESSION_BUSY
                                         : INIT_SESSION_IDLE;
    m->queued = s->nqueue;
    m->why = s->why;
    m->command = s->call != NULL && s->call->kind == CALL_COMMAND ? short_id(s->call->proc) : "";
    cwd[0] = '\0';
    if (s->state != SESSION_ENDED)
        read_cwd(s, cwd);
    m->cwd = cwd;
}

void session_answer(struct list *conns, struct session *s)
{
    char cwd[INIT_PATH_MAX + 1];
    struct init_session m;
    struct conn *c;

    session_fill(s, &m, cwd);
    while ((c = LIST_FIRST(conns, struct conn, asking)) != NULL) {
        list_del(&c->asking);
        conn_send(c, INIT_SESSION, &m);
        conn_done(c);
    }
}

void session_refuse(struct list *conns, const struct err *e)
{
    struct conn *c;

    while ((c = LIST_FIRST(conns, struct conn, asking)) != NULL) {
        list_del(&c->asking);
        conn_fail(c, e);
    }
}

/* ---- the end ---- */

static void session_free(struct session *s)
{
    struct sessions *ss = s->all;
    struct conn *c;
    struct err e;

    session_drop_calls(s);
    session_unlisten(s);
    drop_fd(&s->pidfd);
    loop_timer_stop(ss->procs->loop, &s->timer);
    loop_undefer(&s->gone);
    groups_remove(&s->groups, s->group);
    s->group = NULL;
    group_put(s->home);
    session_dir_remove(&s->dir);
    procs_orphan(ss->procs, &s->shelf);
    map_del(&ss->by_id, &s->node);
    list_del(&s->link);
    list_del(&s->end_link);
    ss->running -= s->state != SESSION_ENDED;
    err_set(&e, ERR_CANNOT_START, "the session could not be started: %s", s->why);
    session_refuse(&s->askers, &e);
    while ((c = LIST_FIRST(&s->leavers, struct conn, asking)) != NULL) {
        struct init_ok ok = {0};

        list_del(&c->asking);
        conn_send(c, INIT_OK, &ok);
        conn_done(c);
    }
    free(s);
}

/* The moving of its processes must be over, too: a thread has its groups. */
static void free_if_gone(struct session *s)
{
    if (s->deleted && s->state == SESSION_ENDED && !session_is_moving(s) && s->dying == NULL &&
        group_is_empty(s->home))
        session_free(s);
}

static void home_is_empty(void *arg)
{
    free_if_gone(arg);
}

bool session_delete(struct session *s)
{
    struct err e;

    s->deleted = true;
    if (s->state != SESSION_ENDED)
        session_end(s, "it was deleted");
    group_kill(s->home, &e);
    group_hurry(s->home);
    if (group_watch(s->home, home_is_empty, s) && !session_is_moving(s) && s->dying == NULL) {
        session_free(s);
        return true;
    }
    return false;
}

static void on_gone(struct loop_later *l)
{
    session_delete(CONTAINER_OF(l, struct session, gone));
}

void session_delete_soon(struct session *s)
{
    loop_defer(s->all->procs->loop, &s->gone, on_gone);
}

/* When nobody is looking through sessions or has one in hand. */
static void forget_oldest(struct loop_later *l)
{
    struct sessions *ss = CONTAINER_OF(l, struct sessions, forget);
    unsigned kept = 0;
    struct session *s;

    LIST_EACH (&ss->ended, s, struct session, end_link)
        kept += !s->deleted;
    LIST_EACH (&ss->ended, s, struct session, end_link) {
        if (kept <= SESSIONS_ENDED_MAX)
            return;
        if (!s->deleted) {
            session_delete(s);
            kept--;
        }
    }
}

/* One that never began is nobody's: whoever asked for it is told when it is gone, and its id
 * is free again. */
void session_end(struct session *s, const char *fmt, ...)
{
    struct sessions *ss = s->all;
    bool began = s->state != SESSION_STARTING;
    struct err e;
    va_list ap;

    if (s->state == SESSION_ENDED)
        return;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof(s->why), fmt, ap);
    va_end(ap);
    s->state = SESSION_ENDED;
    s->record.ended_ms = clock_real_ms();
    ss->running--;
    list_add_tail(&ss->ended, &s->end_link);
    loop_timer_stop(ss->procs->loop, &s->timer);
    if (s->pid != 0) { /* else it ended by itself, and what it left behind may go on */
        session_signal(s, SIGKILL);
        group_kill(s->group, &e);
    }
    session_drop_calls(s);
    session_unlisten(s);
    if (began) {
        sessions_told(ss, s, INIT_EVENT_SESSION_ENDED);
        loop_defer(ss->procs->loop, &ss->forget, forget_oldest);
    } else {
        session_delete_soon(s);
    }
}

bool session_signal(const struct session *s, int signo)
{
    return syscall(SYS_pidfd_send_signal, s->pidfd, signo, NULL, 0) == 0;
}

static void describe_end(struct session *s, int status)
{
    struct init_session *r = &s->record;

    if (WIFSIGNALED(status)) {
        r->signal = (uint32_t)WTERMSIG(status);
        r->code = 128 + r->signal;
        session_end(s, "its shell was killed by signal %u", r->signal);
        return;
    }
    r->code = (uint32_t)WEXITSTATUS(status);
    if (s->state == SESSION_STARTING)
        session_end(s,
                    SHELL
                    " ended with %u before it began: it must be a bash, 5.1 or newer, that "
                    "can load a builtin, and nothing in env (as BASH_ENV) may keep it from it",
                    r->code);
    else if (s->leaving == REPLY_EXIT)
        session_end(s, "its shell exited with %u", r->code);
    else if (s->leaving == REPLY_QUIET)
        session_end(s, "its shell reads commands and runs none any more (set -n)");
    else
        session_end(s, "its shell was replaced, or left without a word, and ended with %u",
                    r->code);
}

/* A shell that stopped itself would never come back. */
bool sessions_reaped(struct sessions *ss, pid_t pid, int status)
{
    struct session *s;

    LIST_EACH (&ss->all, s, struct session, link) {
        if (pid != s->pid)
            continue;
        if (WIFSTOPPED(status)) {
            kill(pid, SIGCONT);
            return true;
        }
        session_hear(s); /* its last word may come to us behind its end */
        s->pid = 0;
        describe_end(s, status);
        if (s->deleted)
            free_if_gone(s);
        return true;
    }
    return false;
}

void sessions_poke(struct sessions *ss)
{
    struct session *s;

    LIST_EACH (&ss->all, s, struct session, link)
        groups_poke(&s->groups);
}

/* ---- the beginning ---- */

static int choose_id(struct sessions *ss, const char *wish, char out[INIT_ID_MAX + 1],
                     struct err *e)
{
    if (wish[0] != '\0' && !proc_id_is_valid(wish))
        return err_set(e, ERR_INVALID, "an id is 1 to %u of A-Z a-z 0-9 . _ -", INIT_ID_MAX);
    if (map_get(&ss->by_id, wish) != NULL)
        return err_set(e, ERR_CONFLICT, "there is a session %s already", wish);
    if (ss->running >= SESSIONS_MAX)
        return err_set(e, ERR_LIMIT, "%u sessions run already", ss->running);
    if (wish[0] != '\0') {
        strcpy(out, wish);
        return 0;
    }
    do
        str_fmt(out, INIT_ID_MAX + 1, "s%llu", (unsigned long long)++ss->next_id);
    while (map_get(&ss->by_id, out) != NULL);
    return 0;
}

static struct session *session_new(struct sessions *ss, const struct init_session_create *m,
                                   const char *id)
{
    size_t ids = strlen(id) + 1, users = strlen(m->user) + 1;
    struct session *s = calloc(1, sizeof(*s) + ids + users);

    if (s == NULL)
        return NULL;
    s->all = ss;
    s->record.id = memcpy(s->text, id, ids);
    s->record.user = memcpy(s->text + ids, m->user, users);
    s->record.flags = m->flags;
    s->record.timeout_ms = m->timeout_ms;
    s->record.created_ms = clock_real_ms();
    s->ring = m->ring;
    s->shelf.max = SESSION_KEPT_MAX;
    s->pidfd = s->reply.fd = s->send.fd = s->move.fd = s->dir.fd = s->out[0] = s->out[1] = -1;
    buf_init(&s->reply.text, REPLY_MAX);
    list_init(&s->link);
    list_init(&s->end_link);
    list_init(&s->queue);
    list_init(&s->askers);
    list_init(&s->leavers);
    return s;
}

/* The builtin, as a file that bash can load; of one sandbox all shells share it. */
static int object_fd(struct sessions *ss, struct err *e)
{
    size_t n = (size_t)(cove_shell_end - cove_shell_start);
    int fd = ss->object_fd;

    if (fd >= 0)
        return fd;
    fd = memfd_create("session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, cove_shell_start, n) != (ssize_t)n ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
        drop_fd(&fd);
        return err_set(e, ERR_UNAVAILABLE, "a file for bash to load: %s", strerror(errno));
    }
    return ss->object_fd = fd;
}

/* Its own variables, and where the builtin is: that is taken away again before bash looks. */
static void add_env(struct buf *out, const struct wire_strv *env)
{
    static const char name[] = "LD_PRELOAD=";
    const char *v, *theirs = NULL;
    uint32_t at = 0;

    while ((v = wire_strv_next(env, &at)) != NULL)
        if (strncmp(v, name, sizeof(name) - 1) == 0)
            theirs = v + sizeof(name) - 1;
        else
            wire_strv_add(out, v);
    if (theirs == NULL) {
        wire_strv_add(out, "LD_PRELOAD=" SHELL_OBJECT);
    } else {
        buf_adds(out, "LD_PRELOAD=" SHELL_OBJECT ":");
        buf_add(out, theirs, strlen(theirs) + 1);
    }
}

static int spawn_shell(struct session *s, const struct init_session_create *m, struct err *e)
{
    struct procs *ps = s->all->procs;
    autobuf struct buf args = BUF_INIT(256), vars = BUF_INIT(2 * (size_t)INIT_ARGS_MAX);
    char script[sizeof(s->dir.path) + sizeof(SESSION_SCRIPT)];
    const char *const argv[] = {SHELL, "--noprofile", "--norc", script};
    struct wire_strv argv_of, env_of;
    struct spawn_opts o = {.argv = &argv_of,
                           .env = &env_of,
                           .cwd = m->cwd,
                           .user = &s->user,
                           .stdio = {ps->null_fd, ps->null_fd, ps->null_fd},
                           .cgroup_fd = s->group->fd,
                           .extra = object_fd(s->all, e)};

    if (o.extra < 0 || session_dir_begin(&s->dir, e) < 0)
        return -1;
    str_fmt(script, sizeof(script), "%s/%s", s->dir.path, SESSION_SCRIPT);
    for (size_t i = 0; i < ARRAY_LEN(argv); i++)
        wire_strv_add(&args, argv[i]);
    add_env(&vars, &m->env);
    if (args.failed || vars.failed)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    argv_of = wire_strv_of(&args);
    env_of = wire_strv_of(&vars);
    if (spawn(&ps->spawner, &o, &s->pid, e) < 0)
        return -1;
    s->record.pid = (uint32_t)s->pid;
    s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    if (s->pidfd < 0) {
        kill(s->pid, SIGKILL);
        return err_sys(e, "pidfd_open");
    }
    return 0;
}

static void on_late_start(struct loop_timer *t)
{
    session_end(CONTAINER_OF(t, struct session, timer), "bash did not begin in time");
}

static int bring_up(struct session *s, const struct init_session_create *m, struct err *e)
{
    struct sessions *ss = s->all;
    struct procs *ps = ss->procs;

    if (user_find(ps->root_fd, m->user[0] != '\0' ? m->user : "root", &s->user, e) < 0 ||
        session_dir_make(&s->dir, ss->root, &s->user, e) < 0 ||
        group_take(&ps->groups, &s->home, e) < 0)
        return -1;
    s->home->spent = true; /* it will have children, and be nobody else's */
    groups_init(&s->groups, ps->loop, s->home->fd, 0);
    s->groups.max = SESSION_GROUPS_MAX;
    if (group_take(&s->groups, &s->group, e) < 0 || session_listen(s, e) < 0)
        return -1;
    if (loop_timer_set(ps->loop, &s->timer, SESSION_START_MS, on_late_start) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    return spawn_shell(s, m, e);
}

static void undo(struct session *s)
{
    session_unlisten(s);
    drop_fd(&s->pidfd);
    loop_timer_stop(s->all->procs->loop, &s->timer);
    if (s->home != NULL)
        groups_remove(&s->groups, s->group);
    group_put(s->home);
    session_dir_remove(&s->dir);
    free(s);
}

int session_create(struct sessions *ss, const struct init_session_create *m, struct session **ret,
                   struct err *e)
{
    char id[INIT_ID_MAX + 1];
    struct session *s;

    if (choose_id(ss, m->id, id, e) < 0)
        return -1;
    s = session_new(ss, m, id);
    if (s == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (map_put(&ss->by_id, &s->node, s->record.id) < 0) {
        free(s);
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    }
    if (bring_up(s, m, e) < 0) {
        map_del(&ss->by_id, &s->node);
        undo(s);
        return -1;
    }
    s->serial = ss->next_serial++;
    list_add_tail(&ss->all, &s->link);
    ss->running++;
    *ret = s;
    return 0;
}
