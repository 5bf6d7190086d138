/* isolate.c - commands in PID and mount namespaces of their own.
 *
 * They cannot see or signal this process, the front or anything else of the machine; our
 * directory, with key and database, is covered by an empty one. They keep the machine's files,
 * users and network: this hides the server, it is no sandbox (docs/host-mode.md).
 *
 * With CAP_SYS_ADMIN directly, else in a user namespace in which this user has its own id and
 * no other. All or nothing: where /proc cannot be mounted again (a container that masks parts of
 * it), the machine's /proc would show the server. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "host/internal.h"

#define NAMESPACES (CLONE_NEWPID | CLONE_NEWNS)

static pid_t clone_with(uint64_t flags, int *ret_pidfd)
{
    struct clone_args args = {.flags = flags | CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                              .exit_signal = SIGCHLD};

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int write_to(const char *path, const char *text)
{
    autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? -1 : 0;
}

/* Our own id and no other. */
static int map_ids(uid_t uid, gid_t gid)
{
    char text[64];

    if (write_to("/proc/self/setgroups", "deny") < 0)
        return -1;
    str_fmt(text, sizeof(text), "%u %u 1", (unsigned)uid, (unsigned)uid);
    if (write_to("/proc/self/uid_map", text) < 0)
        return -1;
    str_fmt(text, sizeof(text), "%u %u 1", (unsigned)gid, (unsigned)gid);
    return write_to("/proc/self/gid_map", text);
}

/* Sessions need a directory; it is on the cover. */
static int cover_state(const struct host *h)
{
    char path[HOST_STATE_MAX + 32];

    if (mount("tmpfs", h->state, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711,size=64m") < 0)
        return -1;
    str_fmt(path, sizeof(path), "%s/sessions", h->state);
    return mkdir(path, 0711);
}

static int settle(const struct host *h, bool own_user, uid_t uid, gid_t gid)
{
    if (own_user && map_ids(uid, gid) < 0)
        return -1;
    if (mount(NULL, "/", NULL, MS_REC | (own_user ? MS_SLAVE : MS_PRIVATE), NULL) < 0)
        return -1;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return -1;
    return cover_state(h);
}

/* One child tries the namespaces and tells whether it got all of them; that child then is init. */
static pid_t try(struct host *h, bool own_user, int *ret_pidfd)
{
    int told[2], answer = -1;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    pid_t pid;

    if (pipe2(told, O_CLOEXEC) < 0)
        return -1;
    pid = clone_with(NAMESPACES | (own_user ? CLONE_NEWUSER : 0), ret_pidfd);
    if (pid == 0) {
        answer = settle(h, own_user, uid, gid) < 0 ? errno : 0;
        if (write(told[1], &answer, sizeof(answer)) != (ssize_t)sizeof(answer) || answer != 0)
            _exit(1);
        close(told[0]);
        close(told[1]);
        return 0;
    }
    close(told[1]);
    if (pid > 0 && read(told[0], &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
        answer = EPERM;
    close(told[0]);
    if (pid > 0 && answer != 0) {
        waitpid(pid, NULL, 0);
        drop_fd(ret_pidfd);
        errno = answer;
        return -1;
    }
    return pid;
}

pid_t isolate_fork(struct host *h, int *ret_pidfd, struct err *e)
{
    pid_t pid = -1;

    h->isolated = false;
    errno = EPERM;
    if (h->o->isolation != ISOLATION_OFF) {
        pid = try(h, false, ret_pidfd);
        if (pid < 0)
            pid = try(h, true, ret_pidfd);
        h->isolated = pid >= 0;
    }
    if (pid >= 0)
        return pid;
    if (h->o->isolation == ISOLATION_REQUIRE)
        return err_set(
            e, ERR_UNSUPPORTED,
            "--isolation require: PID and mount namespaces cannot be had here: %s; they need "
            "CAP_SYS_ADMIN or user namespaces, and a /proc that nothing covers",
            strerror(errno));
    pid = clone_with(0, ret_pidfd);
    return pid < 0 ? err_sys(e, "fork") : pid;
}
