/* serve.c - see serve.h: how init prepares itself and what commands inherit of that, which
 * connections it takes, and which of them hear of events. */
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
#include "init/serve/internal.h"
#include "init/serve/serve.h"

#define ACCEPTS_PER_TURN 16
#define MMAP_FROM (64u << 10) /* blocks that go back to the kernel when freed */
#define SIGNALS 64            /* the kernel's, whatever libc says */

/* ---- events ---- */

static void tell(struct serve *s, const struct init_event *m)
{
    struct conn *c;

    LIST_EACH (&s->conns.all, c, struct conn, link)
        if (c->talk == TALK_MONITOR)
            conn_send(c, INIT_EVENT, m);
}

static void on_proc_event(struct procs *ps, const struct proc *p, enum init_event_kind kind)
{
    struct serve *s = CONTAINER_OF(ps, struct serve, procs);
    struct init_event m = {.kind = kind,
                           .id = p->record.id,
                           .pid = p->record.pid,
                           .code = p->record.code,
                           .signal = p->record.signal,
                           .flags = p->record.flags,
                           .at_ms = kind == INIT_EVENT_STARTED ? p->record.started_ms
                                                               : p->record.ended_ms,
                           .argv = p->record.argv,
                           .user = p->record.user};

    /* After an exec too: its client may stop the sandbox as soon as it has the answer, and
     * the journal goes with it. */
    journal_hurry(&ps->journal);
    /* An exec is a call without a life of its own, and so is a session's command: its caller
     * gets the answer, and there is no event. */
    if ((p->flags & INIT_START_FORGET) != 0 || proc_is_own(p) || p->session != 0)
        return;
    tell(s, &m);
}

static void on_session_event(struct sessions *ss, const struct session *session,
                             enum init_event_kind kind)
{
    const struct init_session *r = &session->record;
    struct init_event m = {.kind = kind,
                           .id = r->id,
                           .pid = r->pid,
                           .code = r->code,
                           .signal = r->signal,
                           .user = r->user,
                           .at_ms = kind == INIT_EVENT_SESSION_ENDED ? r->ended_ms : r->created_ms};

    tell(CONTAINER_OF(ss, struct serve, sessions), &m);
}

static void on_lines(struct journal *j)
{
    struct serve *s = CONTAINER_OF(j, struct serve, procs.journal);
    struct conn *c;

    LIST_EACH (&s->conns.all, c, struct conn, link)
        if (c->talk == TALK_JOURNAL)
            conn_pump(c);
}

/* ---- connections ---- */

static void on_accept(struct loop_io *io, uint32_t events)
{
    struct serve *s = CONTAINER_OF(io, struct serve, listen);
    struct err e;

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            /* Without this, a full fd table would leave the connection in the backlog, and the
             * loop would wake for it again and again. */
            drop_fd(&s->spare_fd);
            own_close(&(int){accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC)});
            s->spare_fd = fcntl(s->procs.null_fd, F_DUPFD_CLOEXEC, 3);
        }
        if (fd < 0)
            return;
        if (s->conns.count >= INIT_CONNS_MAX || conn_open(&s->conns, fd, &e) < 0)
            close(fd);
    }
}

/* ---- the start ---- */

void serve_default_signals(void)
{
    static const uint64_t dfl[4]; /* the kernel's struct, all zero: SIG_DFL */

    /* Not sigaction(): libc reserves 32 to 34 and would leave them ignored if the parent of
     * the daemon ignored them. KILL and STOP fail, which is right. */
    for (int i = 1; i <= SIGNALS; i++)
        syscall(SYS_rt_sigaction, i, dfl, NULL, SIGNALS / 8);
}

/* Commands inherit these; spawn() need not set them each time. */
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

/* fds 0 to 2 must be open: a pipe with such a number would be overwritten in the child while
 * it sets up its stdio. */
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
        return err_sys(e, "make the listening socket non-blocking");
    return 0;
}

/* Only in host mode: pid 1 of a sandbox ends with its namespace, and no signal from inside or from
 * a client reaches it. */
static void on_end(void *arg, int signo)
{
    struct serve *s = arg;

    (void)signo;
    groups_kill_all(&s->procs.groups);
    _exit(0);
}

static int serve_start(struct serve *s, const struct serve_opts *o, struct err *e)
{
    sigset_t all;

    s->listen_fd = o->listen_fd;
    /* Orphans come to pid 1 by themselves; a test's init is not pid 1. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#ifdef __GLIBC__ /* freed rings go back to the kernel; musl does that by itself */
    mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    mallopt(M_TRIM_THRESHOLD, MMAP_FROM);
#endif
    sigfillset(&all); /* signals for us come through the loop's signalfd */
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (prepare_fds(o->listen_fd, e) < 0 || loop_new(&s->loop, e) < 0)
        return -1;
    s->conns = (struct conns){.loop = s->loop,
                              .hello = {INIT_VERSION, o->boot_id, o->booted_ms},
                              .talks = serve_talks,
                              .request = serve_request};
    list_init(&s->conns.all);
    if (procs_init(&s->procs, s->loop, o->run_fd, o->oom_fd, set_limits(o->nofile), e) < 0)
        return -1;
    if (o->helper_fd > 3) /* lower ones are stdio, and the number that the child gives it */
        s->procs.spawner.helper_fd = o->helper_fd;
    s->procs.on_event = on_proc_event;
    journal_init(&s->procs.journal, s->loop, on_lines);
    s->spare_fd = fcntl(s->procs.null_fd, F_DUPFD_CLOEXEC, 3);
    sessions_init(&s->sessions, &s->procs,
                  o->session_root != NULL ? o->session_root : SESSION_ROOT);
    s->sessions.on_event = on_session_event;
    if (reap_start(s, e) < 0)
        return -1;
    if (o->ends && loop_signal(s->loop, SIGTERM, on_end, s, e) < 0)
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
