/* birth.c - the process that becomes init, in namespaces of its own.
 *
 * It is born into the sandbox's cgroup and into new user, pid, mount, network,
 * ipc, uts and cgroup namespaces, waits until we have written its id maps, then
 * executes cove-init from a sealed memfd. Nothing of the keeper's memory is left
 * when it runs, and until its boot message comes (init.c) it only waits. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/host.h"

#define BIRTH_NAMESPACES                                                                           \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

/* What the child finds in its copy of our fd table. */
struct cradle {
    int cgroup;         /* the v2 group it is born into */
    int v1[CTRL_COUNT]; /* the groups it joins by itself, see cgroup_open_v1() */
    int sock;           /* its end of the boot socket */
    int init;           /* what it executes */
};

/* Only the boot socket and what it will execute stay. Before it waits: a copy of
 * our end of the socket would keep it from seeing that we died, and one of the
 * state directory's lock would keep the next daemon out for as long. 0, 1, 2 are
 * the daemon's: a sandbox must hold none of them. Returns the fd of init. */
static int leave_fds(const struct cradle *in)
{
    int sock = fcntl(in->sock, F_DUPFD, BOOT_FD + 2), init = BOOT_FD + 1;
    int high = fcntl(in->init, F_DUPFD_CLOEXEC, BOOT_FD + 2);

    if (sock < 0 || high < 0 || dup2(sock, BOOT_FD) < 0 || dup3(high, init, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, init + 1, ~0u, 0) < 0)
        _exit(4);
    for (int fd = 0; fd < BOOT_FD; fd++)
        close(fd);
    return init;
}

/* In the child. Raw system calls only: it is a copy of a program that may have
 * threads. */
static void __attribute__((noreturn)) child_main(const struct cradle *in)
{
    static char title[] = "cove: init";
    static char *const argv[] = {title, NULL};
    static char *const envp[] = {NULL};
    sigset_t none;
    int init;
    char go;

    sigemptyset(&none);
    for (int c = 0; c < CTRL_COUNT; c++)
        if (in->v1[c] >= 0 && write(in->v1[c], "0", 1) != 1)
            _exit(6);
    init = leave_fds(in);
    /* The keeper writes the id maps, then one byte. EOF: it died; so do we. */
    if (read(BOOT_FD, &go, 1) != 1)
        _exit(1);
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        _exit(2);
    /* Only now that it is in all its groups: what a cgroup namespace shows as its
     * root, and hides above it, is where its maker was at that moment. */
    if (syscall(SYS_unshare, CLONE_NEWCGROUP) < 0)
        _exit(7);
    if (setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        _exit(3);
    syscall(SYS_execveat, init, "", argv, envp, AT_EMPTY_PATH);
    _exit(5);
}

int birth_map(pid_t pid, const char *name, unsigned inside, unsigned base, unsigned count,
              struct err *e)
{
    char path[64], map[64];
    autofd int fd = -1;

    str_fmt(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    str_fmt(map, sizeof(map), "%u %u %u", inside, base, count);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, map, strlen(map)) != (ssize_t)strlen(map))
        return err_sys(e, "write %s", name);
    return 0;
}

static int open_userns(struct sandbox *sb, struct err *e)
{
    char path[64];

    str_fmt(path, sizeof(path), "/proc/%d/ns/user", (int)sb->pid);
    sb->userns_fd = open(path, O_RDONLY | O_CLOEXEC);
    return sb->userns_fd < 0 ? err_sys(e, "open the user namespace") : 0;
}

/* As the range's own first id: inotify instances, namespaces and the like count
 * against the id that made the user namespace, and made by root all sandboxes and
 * the host's root would share one budget. */
static int bear(struct sandbox *sb, const struct cradle *in, struct err *e)
{
    struct clone_args args = {
        .flags = BIRTH_NAMESPACES | CLONE_INTO_CGROUP | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)&sb->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)in->cgroup,
    };
    long pid;

    if (become(ids_base(sb), e) < 0)
        return -1;
    pid = sys_clone3(&args);
    if (pid == 0)
        child_main(in);
    become_root();
    if (pid < 0)
        return err_sys(e, "clone");
    sb->pid = (pid_t)pid;
    return 0;
}

static int bear_in_groups(struct sandbox *sb, int sock, struct err *e)
{
    autofd int cgroup = cgroup_birth_fd(sb, e);
    struct cradle in = {.cgroup = cgroup, .sock = sock, .init = sb->k->init_fd};
    int r;

    if (cgroup < 0 || cgroup_open_v1(sb, in.v1, e) < 0)
        return -1;
    r = bear(sb, &in, e);
    for (int c = 0; c < CTRL_COUNT; c++)
        drop_fd(&in.v1[c]);
    return r;
}

int birth_up(struct sandbox *sb, struct err *e)
{
    autofd int mine = -1, theirs = -1;
    int pair[2], quiet = 256 * 1024;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "boot socket");
    mine = pair[0];
    theirs = pair[1];
    setsockopt(mine, SOL_SOCKET, SO_SNDBUF, &quiet, sizeof(quiet));
    if (bear_in_groups(sb, theirs, e) < 0)
        return -1;
    if (birth_map(sb->pid, "uid_map", 0, ids_base(sb), SANDBOX_IDS, e) < 0 ||
        birth_map(sb->pid, "gid_map", 0, ids_base(sb), SANDBOX_IDS, e) < 0 ||
        open_userns(sb, e) < 0)
        return -1;
    if (send(mine, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return err_sys(e, "init is gone before it began");
    sb->boot_fd = take_fd(&mine);
    return 0;
}

/* Also for an adopted init, which is not our child: then waitid has nothing to
 * say and the pidfd alone tells. */
int birth_down(struct sandbox *sb)
{
    struct pollfd p = {.fd = sb->pidfd, .events = POLLIN};
    siginfo_t si = {0};

    loop_io_stop(sb->k->loop, &sb->boot_io);
    drop_fd(&sb->boot_fd);
    cgroup_kill(sb);
    if (sb->pidfd < 0)
        return 0;
    if (poll(&p, 1, 0) <= 0)
        return 1;
    waitid(P_PIDFD, (id_t)sb->pidfd, &si, WEXITED | WNOHANG);
    loop_io_stop(sb->k->loop, &sb->pid_io);
    drop_fd(&sb->pidfd);
    sb->pid = 0;
    return 0;
}
