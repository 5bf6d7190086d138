/* session.c - the table of sessions, and how one starts. See session.h; what happens to it
 * afterwards is in life.c. */
#include "init/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
#include "init/session/script.h"

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

/* ---- its record ---- */

void session_fill(const struct session *s, struct init_session *m, char *cwd)
{
    bool ended = s->state == SESSION_ENDED || s->state == SESSION_DELETED;
    char path[64];
    ssize_t n = 0;

    *m = s->record;
    m->state = ended                              ? INIT_SESSION_ENDED
               : s->call != NULL || s->nqueue > 0 ? INIT_SESSION_BUSY
                                                  : INIT_SESSION_IDLE;
    m->queued = s->nqueue;
    m->why = s->why;
    m->command = "";
    if (s->call != NULL && s->call->kind == CALL_COMMAND) /* its id is SESSION/COMMAND */
        m->command = strchr(s->call->proc->record.id, '/') + 1;
    str_fmt(path, sizeof(path), "/proc/%d/cwd", s->pid);
    if (!ended && session_signal(s, 0))
        n = readlink(path, cwd, INIT_PATH_MAX);
    cwd[n > 0 ? n : 0] = '\0';
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

void session_free(struct session *s)
{
    struct sessions *ss = s->all;
    struct conn *c;
    struct err e;

    channel_close(s);
    drop_fd(&s->pidfd);
    loop_timer_stop(ss->procs->loop, &s->timer);
    loop_undefer(&s->gone);
    if (s->home != NULL)
        groups_remove(&s->groups, s->group);
    group_put(s->home);
    session_dir_remove(&s->dir);
    procs_orphan(ss->procs, &s->shelf);
    map_del(&ss->by_id, &s->node);
    list_del(&s->link);
    list_del(&s->end_link);
    err_set(&e, ERR_CANNOT_START, "the session could not be started: %s", s->why);
    session_refuse(&s->askers, &e);
    while ((c = LIST_FIRST(&s->leavers, struct conn, asking)) != NULL) {
        list_del(&c->asking);
        conn_ok(c, 0);
    }
    free(s);
}

bool session_signal(const struct session *s, int signo)
{
    return syscall(SYS_pidfd_send_signal, s->pidfd, signo, NULL, 0) == 0;
}

/* A stopped shell is continued: it would never return by itself. */
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
        channel_hear(s); /* its last reply may still be unread */
        s->pid = 0;
        session_event(s, ON_SHELL_GONE, &(struct session_news){.status = status});
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

/* ---- the start ---- */

static int choose_id(struct sessions *ss, const char *wish, char out[INIT_ID_MAX + 1],
                     struct err *e)
{
    if (wish[0] != '\0' && !proc_id_is_valid(wish))
        return err_set(e, ERR_INVALID, "create session '%s': " PROC_ID_RULE, wish);
    if (map_get(&ss->by_id, wish) != NULL)
        return err_set(e, ERR_CONFLICT, "create session %s: the id is already in use", wish);
    if (ss->running >= SESSIONS_MAX)
        return err_set(e, ERR_LIMIT,
                       "create session: %u sessions run in this sandbox, which is the limit; "
                       "delete one first",
                       ss->running);
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
    s->pidfd = s->reply.fd = s->send.fd = s->move.how.fd = s->dir.fd = -1;
    s->outputs[0].fd = s->outputs[1].fd = -1;
    buf_init(&s->reply.text, REPLY_MAX);
    list_init(&s->link);
    list_init(&s->end_link);
    list_init(&s->queue);
    list_init(&s->askers);
    list_init(&s->leavers);
    return s;
}

/* The builtin, as a file that bash can load; all shells of a sandbox share it. */
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
        return err_set(e, ERR_UNAVAILABLE, "create session: memfd for the builtin: %s",
                       strerror(errno));
    }
    return ss->object_fd = fd;
}

/* LD_PRELOAD names the builtin, before what the client preloads; shell/begin.c takes it out of
 * the environment again before bash looks. */
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
    const char *const argv[] = {SESSION_SHELL, "--noprofile", "--norc", script};
    struct wire_strv argv_of, env_of;
    struct spawn_opts o = {.argv = &argv_of,
                           .env = &env_of,
                           .cwd = m->cwd,
                           .user = &s->user,
                           .stdio = {ps->null_fd, ps->null_fd, ps->null_fd},
                           .cgroup_fd = s->group->fd,
                           .mark = s->group->mark,
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
        return err_sys(e, "pidfd_open of the shell");
    }
    return 0;
}

static int bring_up(struct session *s, const struct init_session_create *m, struct err *e)
{
    struct sessions *ss = s->all;
    struct procs *ps = ss->procs;

    if (user_find(ps->root_fd, m->user[0] != '\0' ? m->user : "root", &s->user, e) < 0 ||
        session_dir_make(&s->dir, ss->root, &s->user, e) < 0 ||
        group_take(&ps->groups, &s->home, e) < 0)
        return -1;
    s->home->spent = true; /* it gets children, so no other command can use it again */
    groups_init_in(&s->groups, ps->loop, s->home);
    s->groups.max = SESSION_GROUPS_MAX;
    if (group_take(&s->groups, &s->group, e) < 0 || channel_open(s, e) < 0)
        return -1;
    if (session_set_timer(s, SESSION_START_MS) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    return spawn_shell(s, m, e);
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
        session_free(s);
        return -1;
    }
    s->serial = ss->next_serial++;
    list_add_tail(&ss->all, &s->link);
    ss->running++;
    *ret = s;
    return 0;
}
