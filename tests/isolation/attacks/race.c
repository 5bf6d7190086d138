/* race.c - catches processes in the instant in which they are still init's.
 *
 * A command is born as a copy of init that shares its memory and, for a moment,
 * holds its fds, until it executes. This spins on the pids to come and tries to
 * seize, read and borrow from each one the moment it exists. Success against one
 * that already is the tenant's own program is no breach. Until SIGTERM. */
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "attack.h"

static volatile sig_atomic_t over;
static long refused, own, breach, met;

static void stop(int signo)
{
    (void)signo;
    over = 1;
}

static int is_init(pid_t pid)
{
    char path[64], exe[256];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    n = readlink(path, exe, sizeof(exe) - 1);
    if (n <= 0)
        return 0;
    exe[n] = '\0';
    return strstr(exe, "cove-init") != NULL;
}

/* Counts what was possible; `held` says that the process cannot have moved on. */
static void count(pid_t pid, int worked, int held)
{
    if (!worked) {
        refused += errno == EPERM || errno == EACCES;
        return;
    }
    if (held && is_init(pid))
        breach++;
    else
        own++;
}

static void seize(pid_t pid)
{
    int status, worked = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;

    if (worked && ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0)
        waitpid(pid, &status, __WALL);
    count(pid, worked, 1);
    if (worked)
        ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* A tenant's program begins with a null device and two pipes and nothing else. */
static void borrow(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    for (int n = 0; n < 12 && pidfd >= 0; n++) {
        int fd = (int)syscall(SYS_pidfd_getfd, pidfd, n, 0);
        char path[64], to[256] = "";

        if (fd < 0) {
            count(pid, 0, 0);
            continue;
        }
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, to, sizeof(to) - 1) > 0 &&
            (strncmp(to, "socket:", 7) == 0 || strncmp(to, "anon_inode", 10) == 0 ||
             strncmp(to, "/run", 4) == 0))
            breach++;
        close(fd);
    }
    if (pidfd >= 0)
        close(pidfd);
}

static void look(pid_t pid)
{
    static const char *const names[] = {"mem", "maps", "exe", "fd", "root/etc/passwd"};
    char path[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            count(pid, 0, 0);
        else if (is_init(pid)) /* its link can be read: it is open to us */
            breach++;
        if (fd >= 0)
            close(fd);
    }
}

/* The pid that was given last, in our namespace. */
static pid_t last_pid(int fd)
{
    char text[128];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    const char *at;

    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ' ');
    return atoi(at != NULL ? at + 1 : text);
}

int main(void)
{
    static void (*const ways[])(pid_t) = {seize, borrow, look};
    /* the kernel's own; /proc/loadavg is a file of init's */
    int last_fd = open("/proc/sys/kernel/ns_last_pid", O_RDONLY | O_CLOEXEC);
    pid_t next = getpid() + 1;

    signal(SIGTERM, stop);
    say("ready", "ok");
    while (!over) {
        pid_t last = last_pid(last_fd);

        next = last > next ? last : next;
        /* the one to come, over and over, as well: it exists before it is the last */
        for (pid_t pid = next; pid <= next + 1; pid++)
            if (kill(pid, 0) == 0 || errno == EPERM) {
                ways[met++ % 3](pid);
                next = pid;
            }
    }
    say_number("met", met);
    say_number("refused", refused);
    say_number("own", own);
    say_number("breach", breach);
    return done();
}
