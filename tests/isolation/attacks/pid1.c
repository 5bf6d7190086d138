/* pid1.c - root inside against init: its memory, its fds, its life. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "attack.h"

static void trace(void)
{
    char buf[16];
    struct iovec mine = {buf, sizeof(buf)}, theirs = {(void *)0x400000, sizeof(buf)};
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    char name[32];

    TRY("attach", ptrace(PTRACE_ATTACH, 1, 0, 0));
    TRY("seize", ptrace(PTRACE_SEIZE, 1, 0, 0));
    TRY("process_vm_readv", process_vm_readv(1, &mine, 1, &theirs, 1, 0));
    TRY("process_vm_writev", process_vm_writev(1, &mine, 1, &theirs, 1, 0));
    for (int fd = 0; fd < 8; fd++) {
        snprintf(name, sizeof(name), "pidfd_getfd %d", fd);
        TRY(name, syscall(SYS_pidfd_getfd, pidfd, fd, 0));
    }
    TRY("kcmp", syscall(SYS_kcmp, getpid(), 1, KCMP_FILES, 0, 0));
    TRY("process_madvise", syscall(SYS_process_madvise, pidfd, &theirs, 1, 21 /* pageout */, 0));
    TRY("process_mrelease", syscall(SYS_process_mrelease, pidfd, 0));
    TRY("get_robust_list", syscall(SYS_get_robust_list, 1, &theirs, &mine));
    TRY("setns by pidfd", syscall(SYS_setns, pidfd, CLONE_NEWNS));
}

static void files(void)
{
    static const struct {
        const char *name;
        int flags;
    } rows[] = {{"mem", O_RDWR},
                {"mem", O_RDONLY},
                {"maps", O_RDONLY},
                {"smaps", O_RDONLY},
                {"environ", O_RDONLY},
                {"auxv", O_RDONLY},
                {"pagemap", O_RDONLY},
                {"stack", O_RDONLY},
                {"syscall", O_RDONLY},
                {"personality", O_RDONLY},
                {"io", O_RDONLY},
                {"exe", O_RDONLY},
                {"exe", O_PATH},
                {"root", O_PATH},
                {"cwd", O_PATH},
                {"fd", O_RDONLY},
                {"fdinfo", O_RDONLY},
                {"map_files", O_RDONLY},
                {"ns/mnt", O_RDONLY},
                {"ns/user", O_RDONLY},
                {"ns/pid", O_RDONLY},
                {"fd/3", O_RDWR},
                {"root/etc/passwd", O_RDONLY},
                {"cwd/etc/passwd", O_RDONLY},
                {"task/1/mem", O_RDWR},
                {"task/1/fd", O_RDONLY},
                {"oom_score_adj", O_WRONLY},
                {"clear_refs", O_WRONLY},
                {"timerslack_ns", O_WRONLY},
                {"comm", O_WRONLY},
                {"coredump_filter", O_WRONLY},
                {"uid_map", O_WRONLY},
                {"setgroups", O_WRONLY},
                {"sched", O_WRONLY}};
    char path[64], name[64], buf[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int fd, write_only = (rows[i].flags & O_ACCMODE) == O_WRONLY;

        snprintf(path, sizeof(path), "/proc/1/%s", rows[i].name);
        snprintf(name, sizeof(name), "%s%s%s", rows[i].name,
                 (rows[i].flags & O_ACCMODE) == O_RDONLY ? "" : " w",
                 rows[i].flags & O_PATH ? " path" : "");
        errno = 0;
        fd = open(path, rows[i].flags | O_CLOEXEC);
        if (fd < 0) {
            say(name, errno_name(errno));
            continue;
        }
        /* some are refused at the first read or write only */
        if (rows[i].flags & O_PATH ||
            (strcmp(rows[i].name, "fd") == 0 && lseek(fd, 0, SEEK_SET) == 0))
            say(name, "ok");
        else if ((write_only ? write(fd, "1\n", 2) : pread(fd, buf, sizeof(buf), 0)) < 0)
            say(name, errno_name(errno));
        else
            say(name, "ok");
        close(fd);
    }
    TRY("readlink exe", readlink("/proc/1/exe", buf, sizeof(buf)));
    TRY("readlink root", readlink("/proc/1/root", buf, sizeof(buf)));
    TRY("readlink fd/0", readlink("/proc/1/fd/0", buf, sizeof(buf)));
    TRY("readlink ns", readlink("/proc/1/ns/mnt", buf, sizeof(buf)));
    TRY("chroot", chroot("/proc/1/root"));
    TRY("chdir", chdir("/proc/1/cwd"));
    TRY("execve", execl("/proc/1/exe", "x", NULL));
}

static void limits(void)
{
    struct rlimit none = {0, 0}, high = {1 << 20, 1 << 20}, old;
    int kinds[] = {RLIMIT_NOFILE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_STACK};
    const char *const names[] = {"nofile", "cpu", "as", "fsize", "stack"};
    char name[32];

    TRY("prlimit get", prlimit(1, RLIMIT_NOFILE, NULL, &old));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "prlimit %s to 0", names[i]);
        TRY(name, prlimit(1, kinds[i], &none, NULL));
    }
    TRY("prlimit nofile up", prlimit(1, RLIMIT_NOFILE, &high, NULL));
}

static void signals(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

    /* The kernel answers "sent" and drops what pid 1 of a namespace has no handler for. */
    for (int round = 0; round < 3; round++)
        for (int s = 1; s <= 64; s++) {
            siginfo_t si = {.si_signo = s, .si_code = SI_QUEUE, .si_pid = getpid()};

            kill(1, s);
            syscall(SYS_tgkill, 1, 1, s);
            syscall(SYS_rt_sigqueueinfo, 1, s, &si);
            syscall(SYS_pidfd_send_signal, pidfd, s, NULL, 0);
        }
    kill(-1, SIGCONT);
    say("sent", "ok");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"trace", trace}, {"files", files}, {"limits", limits}, {"signals", signals}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
            parts[i].run();
    return done();
}
