/* serve.c - see serve.h. One row per request; what takes longer than an answer is
 * a talk, see conn.h. */
#include "init/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/own.h"
#include "init/file.h"
#include "init/serve_state.h"
#include "init/session.h"
#include "init/wait.h"

#define ACCEPTS_PER_TURN 16
#define MMAP_FROM (64u << 10) /* blocks that go back to the kernel when freed */
#define SIGNALS 64            /* the kernel's, whatever libc says */

static void send_ok(struct conn *c, uint64_t value)
{
    struct init_ok m = {.value = value};

    conn_send(c, INIT_OK, &m);
    conn_done(c);
}

/* The process a request names; NULL after answering that there is none. */
static struct proc *named(struct conn *c, const char *id)
{
    struct err e;
    struct proc *p = proc_find(&c->serve->procs, id, &e);

    if (p == NULL)
        conn_fail(c, &e);
    return p;
}

static void on_start(struct conn *c, const union request *r)
{
    struct init_started m = {0};
    struct err e = {0};
    struct proc *p;
    int ret = proc_start(&c->serve->procs, &r->start, &p, &e);

    if (ret < 0) {
        conn_fail(c, &e);
        return;
    }
    m.existed = ret > 0;
    m.id = p->record.id;
    m.pid = p->record.pid;
    m.started_ms = p->record.started_ms;
    conn_send(c, INIT_STARTED, &m);
    c->streams = 0;
    if (c->closing) {
        proc_unwatched(p);
        return;
    }
    if ((r->start.flags & INIT_START_OWN) != 0 && !m.existed)
        conn_watch(c, TALK_OWN, p, 0);
    else if ((r->start.flags & INIT_START_FOLLOW) != 0)
        conn_watch(c, TALK_FOLLOW, p, 0);
    else
        conn_done(c);
}

static void on_attach(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->attach.id);
    struct err e;

    if (p == NULL)
        return;
    if (stream_check(p, r->attach.since, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    c->streams = r->attach.streams;
    c->stop = p->ring.end;
    conn_watch(c, (r->attach.flags & INIT_ATTACH_FOLLOW) != 0 ? TALK_FOLLOW : TALK_LOOK, p,
               r->attach.since);
}

static void on_stdin(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->in.id);
    struct err e = {0};

    if (p == NULL)
        return;
    if (r->in.close && proc_is_term(p)) {
        err_set(&e, ERR_INVALID, "%s is a terminal: what is typed into it has no end",
                p->record.id);
        conn_fail(c, &e);
        return;
    }
    if (feed_add(p, &r->in.data, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    if (r->in.close)
        feed_finish(p);
    send_ok(c, 0);
}

/* From the owner, in the middle of its talk: nothing is answered, and what a
 * process no longer reads is dropped as a pipe would. */
static void on_own_stdin(struct conn *c, const union request *r)
{
    struct proc *p = c->watch.proc;
    struct err e;

    if (feed_add(p, &r->in.data, &e) < 0 && e.kind == ERR_UNAVAILABLE)
        conn_close(c); /* out of memory: better cut than a gap */
    else if (r->in.close)
        feed_finish(p);
}

static void on_signal(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->signal.id);
    struct err e = {0};

    if (p == NULL)
        return;
    if (proc_signal(p, (int)r->signal.signal, r->signal.to, &e) < 0)
        conn_fail(c, &e);
    else
        send_ok(c, 0);
}

/* The terminal a request names; NULL after answering that there is none. */
static struct proc *named_term(struct conn *c, const char *id)
{
    struct proc *p = proc_find(&c->serve->procs, id, &(struct err){0});
    struct err e;

    if (p != NULL && proc_is_term(p))
        return p;
    err_set(&e, ERR_NOT_FOUND, "no terminal %s in this sandbox", id);
    conn_fail(c, &e);
    return NULL;
}

static void on_kill(struct conn *c, const union request *r)
{
    bool forget = (r->kill.flags & INIT_KILL_FORGET) != 0;
    struct proc *p = forget ? named_term(c, r->kill.id) : named(c, r->kill.id);

    if (p == NULL)
        return;
    if (forget)
        proc_forget(p);
    proc_kill(p, r->kill.grace_ms);
    conn_watch(c, TALK_KILL, p, 0);
}

void list_pump(struct conn *c)
{
    struct proc *p;
    struct init_end end = {0};

    LIST_EACH (&c->serve->procs.all, p, struct proc, link) {
        struct init_proc m;

        if (p->serial < c->stop || p->unnamed || proc_is_own(p) != c->own ||
            p->session != c->session)
            continue;
        if (!conn_has_room(c))
            return;
        proc_fill(p, &m);
        m.viewers = view_count(c->serve, p);
        conn_send(c, INIT_PROC, &m);
        if (c->closing)
            return;
        c->stop = p->serial + 1;
    }
    conn_send(c, INIT_END, &end);
    conn_done(c);
}

static void on_list(struct conn *c, const union request *r)
{
    c->own = r->list.own != 0;
    c->session = 0;
    c->talk = TALK_LIST;
    c->stop = 0;
    conn_pump(c);
}

static void on_get(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->get.id);
    struct init_proc m;

    if (p == NULL)
        return;
    proc_fill(p, &m);
    m.viewers = view_count(c->serve, p);
    conn_send(c, INIT_PROC, &m);
    conn_done(c);
}

static void on_wait(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->wait.id);

    if (p != NULL)
        wait_exit(c, p, r->wait.timeout_ms);
}

static void on_wait_port(struct conn *c, const union request *r)
{
    struct proc *p = NULL;

    if (r->port.id[0] != '\0' && (p = named(c, r->port.id)) == NULL)
        return;
    wait_port(c, p, &r->port);
}

static void on_wait_log(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->log.id);

    if (p != NULL)
        wait_log(c, p, &r->log);
}

static void on_monitor(struct conn *c, const union request *r)
{
    (void)r;
    c->talk = TALK_MONITOR;
}

void journal_pump(struct conn *c)
{
    const struct journal *j = &c->serve->procs.journal;

    for (const struct journal_line *l = journal_from(j, c->stop); l != NULL && conn_has_room(c);
         l = journal_after(j, l)) {
        c->stop = l->m.seq + 1;
        conn_send(c, INIT_LINE, &l->m);
    }
}

static void on_journal(struct conn *c, const union request *r)
{
    c->talk = TALK_JOURNAL;
    c->stop = r->journal.since;
    conn_pump(c);
}

static void on_view(struct conn *c, const union request *r)
{
    struct proc *p = named_term(c, r->view.id);

    if (p != NULL)
        view_start(c, p, &r->view);
}

static void on_resize(struct conn *c, const union request *r)
{
    struct proc *p = named_term(c, r->resize.id);
    struct err e;

    if (p == NULL)
        return;
    if (term_resize(p, r->resize.cols, r->resize.rows, &e) < 0)
        conn_fail(c, &e);
    else
        send_ok(c, 0);
}

/* From a viewer, in the middle of its talk; one that comes too late is nothing. */
static void on_view_resize(struct conn *c, const union request *r)
{
    struct err e;

    term_resize(c->watch.proc, r->resize.cols, r->resize.rows, &e);
}

static void on_open(struct conn *c, const union request *r)
{
    struct err e;
    int fd = file_open(c->serve->procs.root_fd, &r->open, &e);

    if (fd < 0)
        conn_fail(c, &e);
    else
        conn_pass(c, INIT_FD_FILE, fd);
}

static void send_file(struct conn *c, const struct file_answer *a, int r, const struct err *e)
{
    if (r < 0) {
        conn_fail(c, e);
        return;
    }
    conn_send(c, INIT_FILE, &a->file);
    conn_done(c);
}

static void on_look(struct conn *c, const union request *r)
{
    autofree struct file_answer *a = malloc(sizeof(*a));
    struct err e;

    if (a == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "out of memory");
        conn_fail(c, &e);
        return;
    }
    send_file(c, a, file_look(c->serve->procs.root_fd, &r->look, a, &e), &e);
}

static void on_write(struct conn *c, const union request *r)
{
    autofree struct file_answer *a = malloc(sizeof(*a));
    struct err e;

    if (a == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "out of memory");
        conn_fail(c, &e);
        return;
    }
    send_file(c, a, file_write(c->serve->procs.root_fd, &r->write, a, &e), &e);
}

static void on_connect(struct conn *c, const union request *r)
{
    dial_port(c, &r->connect);
}

/* clang-format off */
static const struct {
    uint16_t type;
    enum talk in; /* the talk in which it may come */
    void (*serve)(struct conn *c, const union request *r);
} requests[] = {
    {INIT_START,     TALK_NONE, on_start},
    {INIT_ATTACH,    TALK_NONE, on_attach},
    {INIT_STDIN,     TALK_NONE, on_stdin},
    {INIT_STDIN,     TALK_OWN,  on_own_stdin},
    {INIT_STDIN,     TALK_VIEW, on_own_stdin},
    {INIT_SIGNAL,    TALK_NONE, on_signal},
    {INIT_KILL,      TALK_NONE, on_kill},
    {INIT_LIST,      TALK_NONE, on_list},
    {INIT_GET,       TALK_NONE, on_get},
    {INIT_WAIT,      TALK_NONE, on_wait},
    {INIT_WAIT_PORT, TALK_NONE, on_wait_port},
    {INIT_WAIT_LOG,  TALK_NONE, on_wait_log},
    {INIT_MONITOR,   TALK_NONE, on_monitor},
    {INIT_JOURNAL,   TALK_NONE, on_journal},
    {INIT_VIEW,      TALK_NONE, on_view},
    {INIT_RESIZE,    TALK_NONE, on_resize},
    {INIT_RESIZE,    TALK_VIEW, on_view_resize},
    {INIT_OPEN,      TALK_NONE, on_open},
    {INIT_LOOK,      TALK_NONE, on_look},
    {INIT_WRITE,     TALK_NONE, on_write},
    {INIT_CONNECT,   TALK_NONE, on_connect},
    {INIT_SESSION_CREATE,    TALK_NONE,   on_session_create},
    {INIT_SESSION_LIST,      TALK_NONE,   on_session_list},
    {INIT_SESSION_GET,       TALK_NONE,   on_session_get},
    {INIT_SESSION_DELETE,    TALK_NONE,   on_session_delete},
    {INIT_SESSION_EXEC,      TALK_NONE,   on_session_exec},
    {INIT_SESSION_MORE,      TALK_UPLOAD, on_session_more},
    {INIT_SESSION_INTERRUPT, TALK_NONE,   on_session_interrupt},
    {INIT_SESSION_COMMANDS,  TALK_NONE,   on_session_commands},
    {INIT_SESSION_START,     TALK_NONE,   on_session_start},
};
/* clang-format on */

static void serve_row(struct conn *c, size_t row, const struct wire_head *h, const char *body)
{
    union request r;
    struct err e;

    if (wire_get(init_msg(h->type), body, h->len, &r, &e) < 0) {
        conn_close(c);
        return;
    }
    if (c->talk == TALK_NONE)
        c->seq = h->seq;
    requests[row].serve(c, &r);
}

/* A type from a newer front is refused politely; a known one at the wrong time
 * means that we lost each other, and only a new connection helps. */
void serve_request(struct conn *c, const struct wire_head *h, const char *body)
{
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].type == h->type && requests[i].in == c->talk) {
            serve_row(c, i, h, body);
            return;
        }
    }
    if (c->talk != TALK_NONE || init_msg(h->type) != NULL) {
        conn_close(c);
        return;
    }
    c->seq = h->seq;
    err_set(&e, ERR_UNSUPPORTED, "this sandbox's init (version %u) does not know request %u",
            INIT_VERSION, h->type);
    e.sys = 0;
    conn_fail(c, &e);
}

static void tell(struct serve *s, const struct init_event *m)
{
    struct conn *c;

    LIST_EACH (&s->conns, c, struct conn, link)
        if (c->talk == TALK_MONITOR)
            conn_send(c, INIT_EVENT, m);
}

static void tell_monitors(struct procs *ps, const struct proc *p, enum init_event_kind kind)
{
    struct serve *s = CONTAINER_OF(ps, struct serve, procs);
    struct init_event m = {.kind = kind,
                           .id = p->record.id,
                           .pid = p->record.pid,
                           .code = p->record.code,
                           .signal = p->record.signal,
                           .flags = p->record.flags,
                           .at_ms = kind == INIT_EVENT_STARTED ? p->record.started_ms
                                                               : p->record.ended_ms};

    /* An exec is a call, not a thing with a life: its caller hears of it. So is a
     * session's command. */
    if ((p->flags & INIT_START_FORGET) != 0 || proc_is_own(p) || p->session != 0)
        return;
    journal_hurry(&ps->journal);
    tell(s, &m);
}

void sessions_told(struct sessions *ss, const struct session *session, enum init_event_kind kind)
{
    const struct init_session *r = &session->record;
    struct init_event m = {.kind = kind,
                           .id = r->id,
                           .pid = r->pid,
                           .code = r->code,
                           .signal = r->signal,
                           .at_ms = kind == INIT_EVENT_SESSION_ENDED ? r->ended_ms : r->created_ms};

    tell(CONTAINER_OF(ss, struct serve, sessions), &m);
}

static void tell_journals(struct journal *j)
{
    struct serve *s = CONTAINER_OF(j, struct serve, procs.journal);
    struct conn *c;

    LIST_EACH (&s->conns, c, struct conn, link)
        if (c->talk == TALK_JOURNAL)
            conn_pump(c);
}

/* Without this, a full fd table would leave the connection in the backlog and
 * the loop spinning on it. */
static void refuse_one(struct serve *s)
{
    drop_fd(&s->spare_fd);
    own_close(&(int){accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC)});
    s->spare_fd = fcntl(s->procs.null_fd, F_DUPFD_CLOEXEC, 3);
}

static void take_conn(struct serve *s, int fd)
{
    struct err e;

    if (s->nconns >= CONNS_MAX || conn_open(s, fd, &e) < 0)
        close(fd);
}

static void on_accept(struct loop_io *io, uint32_t events)
{
    struct serve *s = CONTAINER_OF(io, struct serve, listen);

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take_conn(s, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE)
            refuse_one(s);
        return;
    }
}

void serve_default_signals(void)
{
    static const uint64_t dfl[4]; /* the kernel's struct, all zero: SIG_DFL */

    /* Not sigaction(): libc keeps 32 to 34 to itself and would leave them ignored
     * if whoever started the daemon ignored them. KILL and STOP fail and need nothing. */
    for (int i = 1; i <= SIGNALS; i++)
        syscall(SYS_rt_sigaction, i, dfl, NULL, SIGNALS / 8);
}

/* Nothing is caught, so everything is blocked: what reaches us comes through the loop's
 * signalfd. */
static void quiet_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

/* What every command inherits from us rather than being told each time. */
static uint64_t set_limits(uint64_t nofile)
{
    struct rlimit files, core;

    getrlimit(RLIMIT_NOFILE, &files);
    if (nofile == 0)
        nofile = files.rlim_cur;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
    umask(022);
    return nofile;
}

/* fds 0 to 2 must be taken: a pipe that landed there would be overwritten in the
 * child while its stdio is put in place. */
static int prepare_fds(int listen_fd, struct err *e)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < 3);
    if (fd < 0)
        return err_sys(e, "open /dev/null");
    close(fd);
    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(e, "listening socket");
    return 0;
}

/* Rings go back to the kernel when they are freed; musl's malloc does that of its
 * own accord. */
static void set_malloc(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    mallopt(M_TRIM_THRESHOLD, MMAP_FROM);
#endif
}

static int serve_start(struct serve *s, const struct serve_opts *o, struct err *e)
{
    s->hello = (struct init_hello){INIT_VERSION, o->boot_id, o->booted_ms};
    s->listen_fd = o->listen_fd;
    list_init(&s->conns);
    /* Orphans come to pid 1 by themselves; a test's init is not pid 1. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    set_malloc();
    quiet_signals();
    if (prepare_fds(o->listen_fd, e) < 0 || loop_new(&s->loop, e) < 0)
        return -1;
    if (procs_init(&s->procs, s->loop, o->run_fd, o->oom_fd, set_limits(o->nofile), e) < 0)
        return -1;
    if (o->helper_fd > 3) /* below are stdio, and where the child puts it */
        s->procs.spawner.helper_fd = o->helper_fd;
    s->procs.on_event = tell_monitors;
    journal_init(&s->procs.journal, s->loop, tell_journals);
    s->spare_fd = fcntl(s->procs.null_fd, F_DUPFD_CLOEXEC, 3);
    sessions_init(&s->sessions, &s->procs,
                  o->session_root != NULL ? o->session_root : SESSION_ROOT);
    if (reap_start(&s->reaper, &s->procs, &s->sessions, e) < 0)
        return -1;
    if (o->statfs != NULL && statfs_start(o->statfs, s->loop, e) < 0)
        return -1;
    return loop_io_start(s->loop, &s->listen, s->listen_fd, EPOLLIN, on_accept, e);
}

int serve_run(const struct serve_opts *o)
{
    struct serve *s = calloc(1, sizeof(*s));
    struct err e = {.msg = "out of memory"};

    if (s != NULL && serve_start(s, o, &e) == 0)
        loop_run(s->loop, &e);
    dprintf(STDERR_FILENO, "init: %s\n", e.msg);
    return -1;
}
