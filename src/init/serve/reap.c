/* reap.c - pid 1's duty: every process that dies in this sandbox is reaped here. */
#include <signal.h>
#include <sys/wait.h>

#include "base/own.h"
#include "init/serve/internal.h"

#define REAPS_PER_TURN 256 /* a dying fork bomb must not stop everything else */

/* One SIGCHLD may stand for many children; orphans come to us as well. */
static void reap(struct loop_later *l)
{
    struct serve *s = CONTAINER_OF(l, struct serve, reap_later);
    struct rusage ru;
    int status, n = 0;
    pid_t pid;

    while (n++ < REAPS_PER_TURN && (pid = wait4(-1, &status, WNOHANG | WUNTRACED, &ru)) > 0) {
        struct proc *p = proc_of_pid(&s->procs, pid);

        if (p != NULL && !WIFSTOPPED(status))
            proc_reaped(p, status, &ru);
        if (p == NULL)
            sessions_reaped(&s->sessions, pid, status);
    }
    if (n > REAPS_PER_TURN)
        loop_defer(s->loop, &s->reap_later, reap);
    sessions_poke(&s->sessions);
    groups_poke(&s->procs.groups);
}

static void on_sigchld(void *arg, int signo)
{
    struct serve *s = arg;

    (void)signo;
    reap(&s->reap_later);
}

int reap_start(struct serve *s, struct err *e)
{
    return loop_signal(s->loop, SIGCHLD, on_sigchld, s, e);
}
