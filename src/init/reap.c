/* reap.c - see reap.h. */
#include "init/reap.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/own.h"

static struct proc *find_pid(struct procs *ps, pid_t pid)
{
    struct proc *p;

    LIST_EACH (&ps->all, p, struct proc, link)
        if (p->pid == pid)
            return p;
    return NULL;
}

/* One SIGCHLD may stand for many children; and orphans are ours as well. */
static void reap(struct loop_later *l)
{
    struct reaper *r = CONTAINER_OF(l, struct reaper, later);
    struct rusage ru;
    int status, n = 0;
    pid_t pid;

    while (n++ < REAPS_PER_TURN && (pid = wait4(-1, &status, WNOHANG | WUNTRACED, &ru)) > 0) {
        struct proc *p = find_pid(r->procs, pid);

        if (p != NULL && !WIFSTOPPED(status))
            proc_reaped(p, status, &ru);
        if (p == NULL)
            sessions_reaped(r->sessions, pid, status);
    }
    if (n > REAPS_PER_TURN)
        loop_defer(r->procs->loop, &r->later, reap);
    sessions_poke(r->sessions);
    groups_poke(&r->procs->groups);
}

static void on_sigchld(void *arg, int signo)
{
    struct reaper *r = arg;

    (void)signo;
    reap(&r->later);
}

int reap_start(struct reaper *r, struct procs *ps, struct sessions *ss, struct err *e)
{
    *r = (struct reaper){.procs = ps, .sessions = ss};
    return loop_signal(ps->loop, SIGCHLD, on_sigchld, r, e);
}
