/* stubborn.c - a process that will not go, in one of several ways.
 *
 * It says `ready` once the part of it that stays is in place. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "attack.h"

static void __attribute__((noreturn)) for_ever(void)
{
    prctl(PR_SET_NAME, "stubborn");
    for (int s = 1; s < 65; s++)
        signal(s, SIG_IGN);
    write(1, "ready\n", 6);
    for (;;)
        pause();
}

static void ignoring(void)
{
    for_ever();
}

static void session(void)
{
    if (fork() == 0) {
        setsid();
        for_ever();
    }
    pause();
}

/* Its parent leaves: init is its parent now, and nothing joins it to us. */
static void daemonized(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for_ever();
        _exit(0);
    }
    wait(NULL);
    pause();
}

/* The root process ends; what stays has closed everything it was given. */
static void left_behind(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            write(1, "ready\n", 6);
            for (int i = 0; i < 3; i++)
                close(i);
            for_ever();
        }
    }
    pause();
}

static void stopped(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        raise(SIGSTOP);
        for_ever();
    }
    waitpid(pid, NULL, WUNTRACED);
    for_ever();
}

static void traced(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        for_ever();
    }
    waitpid(pid, NULL, 0);
    for_ever();
}

/* No process reaps them, and new ones come faster than a list of them can be read. */
static void running_away(void)
{
    signal(SIGCHLD, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_NAME, "stubborn");
    write(1, "ready\n", 6);
    for (;;) {
        if (fork() == 0) {
            setsid();
            if (fork() > 0)
                _exit(0);
        } else {
            sched_yield();
        }
    }
}

static int one_more(void *arg)
{
    (void)arg;
    for_ever();
}

static void threads(void)
{
    static char stack[4][16384];

    for (int i = 0; i < 4; i++)
        clone(one_more, stack[i] + sizeof(stack[i]) - 64,
              CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
    for_ever();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"ignoring", ignoring},         {"session", session}, {"daemonized", daemonized},
                {"left-behind", left_behind},   {"stopped", stopped}, {"traced", traced},
                {"running-away", running_away}, {"threads", threads}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if (argc > 1 && strcmp(argv[1], ways[i].name) == 0)
            ways[i].run();
    return 1;
}
