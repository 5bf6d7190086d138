/* serve_start.c - see serve.h: what init makes of itself before it serves and what every
 * command inherits of that, who may come in, and who is told of what happens. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "init/serve.h"
#include "init/serve_state.h"
#include "init/session.h"

#define ACCEPTS_PER_TURN 16
#define MMAP_FROM (64u << 10) /* blocks that go back to the kernel when freed */
#define SIGNALS 64            /* the kernel's, whatever libc says */

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

    /* Also behind a call: whoever has its answer may stop the sandbox, and the journal goes
     * with it. */
    journal_hurry(&ps->journal);
    /* An exec is a call, not a thing with a life: its caller hears of it. So is a
     * session's command. */
    if ((p->flags & INIT_START_FORGET) != 0 || proc_is_own(p) || p->session != 0)
        return;
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

    if (s->nconns >= INIT_CONNS_MAX || conn_open(s, fd, &e) < 0)
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
