/* statfs.c - init answers statfs and other calls in the asker's memory: questions that lie.
 *
 * Bad pointers, askers that die, execute or change the name while they are being
 * answered, and read-only memory as the place for the answer. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attack.h"

static char shared[4096] = "/";

static void lies(void)
{
    char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char buf[256], *longest = malloc(1 << 20);
    int fifo;

    munmap(edge + 4096, 4096);
    edge[4095] = '/';
    memset(longest, 'x', (1 << 20) - 1);
    longest[(1 << 20) - 1] = '\0';
    TRY("plain", syscall(SYS_statfs, "/", buf));
    TRY("no path", syscall(SYS_statfs, NULL, buf));
    TRY("path in the kernel", syscall(SYS_statfs, 0xffffffff81000000ul, buf));
    TRY("path over the edge", syscall(SYS_statfs, edge + 4095, buf));
    TRY("endless path", syscall(SYS_statfs, longest, buf));
    TRY("empty path", syscall(SYS_statfs, "", buf));
    TRY("no place", syscall(SYS_statfs, "/", NULL));
    TRY("place in the kernel", syscall(SYS_statfs, "/", 0xffffffff81000000ul));
    TRY("place over the edge", syscall(SYS_statfs, "/", edge + 4090));
    TRY("bad fd", syscall(SYS_fstatfs, -1, buf));
    TRY("huge fd", syscall(SYS_fstatfs, 1 << 30, buf));
    TRY("init's root", syscall(SYS_statfs, "/proc/1/root", buf));
    TRY("init's fd", syscall(SYS_statfs, "/proc/1/fd/3", buf));
    mkfifo("/tmp/statfs-fifo", 0600);
    TRY("a pipe nobody opens", syscall(SYS_statfs, "/tmp/statfs-fifo", buf));
    fifo = open("/tmp/statfs-fifo", O_RDONLY | O_NONBLOCK);
    TRY("a pipe by its fd", syscall(SYS_fstatfs, fifo, buf));
    TRY("memory: no place", syscall(SYS_sysinfo, NULL));
    TRY("memory: place in the kernel", syscall(SYS_sysinfo, 0xffffffff81000000ul));
    TRY("memory: place over the edge", syscall(SYS_sysinfo, edge + 4090));
    TRY("processors: no place", syscall(SYS_sched_getaffinity, 0, 1024, NULL));
    TRY("processors: place over the edge", syscall(SYS_sched_getaffinity, 0, 1024, edge + 4092));
    TRY("processors: no room", syscall(SYS_sched_getaffinity, 0, 0, buf));
    TRY("processors: odd room", syscall(SYS_sched_getaffinity, 0, 1023, buf));
    TRY("processors: endless room", syscall(SYS_sched_getaffinity, 0, 1u << 31, longest));
    TRY("processors: of no process", syscall(SYS_sched_getaffinity, 999999, 1024, longest));
    TRY("processors: of nothing", syscall(SYS_sched_getaffinity, -5, 1024, longest));
    TRY("processors: of init", syscall(SYS_sched_getaffinity, 1, 1024, longest));
}

/* Asks for ever; half of them change the name meanwhile. */
static void __attribute__((noreturn)) ask(int i)
{
    char buf[256];

    for (;;) {
        if (i % 2)
            memset(shared, i % 4 == 1 ? '/' : 'x', 4000);
        syscall(SYS_statfs, shared, buf);
        syscall(SYS_fstatfs, i % 7, buf);
        syscall(SYS_sysinfo, buf);
        syscall(SYS_sched_getaffinity, i % 3, sizeof(buf), buf);
        close(open(i % 2 ? "/proc/meminfo" : "/proc/stat", O_RDONLY | O_CLOEXEC));
    }
}

static void deaths(void)
{
    static char *const again[] = {"/bin/true", NULL};

    for (int round = 0; round < 60; round++) {
        pid_t pid[8];

        for (int i = 0; i < 8; i++)
            if ((pid[i] = fork()) == 0) {
                if (i == 7)
                    execv(again[0], again);
                ask(i);
            }
        usleep(2000);
        for (int i = 0; i < 8; i++)
            kill(pid[i], SIGKILL);
        while (wait(NULL) > 0)
            continue;
    }
    say("killed", "ok");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "lies") == 0)
        lies();
    else if (argc > 1 && strcmp(argv[1], "deaths") == 0)
        deaths();
    return done();
}
