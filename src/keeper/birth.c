/* birth.c - the process that becomes init, in namespaces of its own.
 *
 * It is not our child by fork: the nursery (init/nursery.h), a process that we start
 * once from the sealed memfd of cove-init, bears it into the sandbox's cgroup and into
 * new user, pid, mount, network, ipc and uts namespaces. Then we write its id maps.
 * Until its boot message comes (init.c) it only waits. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/host.h"
#include "wire/birth.h"
#include "wire/fds.h"

#define NURSERY_MS 10000 /* one that has not answered by then is broken */

_Static_assert((int)BIRTH_FDS_MAX - (int)BIRTH_V1 >= (int)CTRL_COUNT, "a place for each v1 group");

/* ---- the nursery ---- */

/* In the child: a copy of a program that has threads, so system calls and nothing
 * else. 0, 1, 2 are the daemon's: a sandbox must hold none of them. */
static void __attribute__((noreturn)) nursery_main(int sock, int program)
{
    static char title[] = "cove: nursery";
    static char *const argv[] = {title, NULL};
    static char *const envp[] = {NULL};
    int high = fcntl(sock, F_DUPFD, NURSERY_FD + 2), null = open("/dev/null", O_RDWR);
    int init = fcntl(program, F_DUPFD, NURSERY_FD + 2);
    sigset_t none;

    sigemptyset(&none);
    if (high < 0 || null < 0 || init < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(null, 2) < 0 || dup2(high, NURSERY_FD) < 0 ||
        dup3(init, NURSERY_FD + 1, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, NURSERY_FD + 2, ~0u, 0) < 0)
        _exit(4);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, NURSERY_FD + 1, "", argv, envp, AT_EMPTY_PATH);
    _exit(5);
}

static int nursery_open(struct keeper *k, struct err *e)
{
    struct timeval late = {.tv_sec = NURSERY_MS / 1000};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "a socket for the nursery");
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &late, sizeof(late));
    k->nursery_pid = fork();
    if (k->nursery_pid == 0)
        nursery_main(pair[1], k->init_fd);
    close(pair[1]);
    if (k->nursery_pid < 0) {
        close(pair[0]);
        return err_sys(e, "fork the nursery");
    }
    k->nursery_fd = pair[0];
    return 0;
}

/* It has nothing to lose. */
void nursery_close(struct keeper *k)
{
    drop_fd(&k->nursery_fd);
    if (k->nursery_pid <= 0)
        return;
    kill(k->nursery_pid, SIGKILL);
    while (waitpid(k->nursery_pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    k->nursery_pid = 0;
}

/* Blocks, as a fork would. */
static int order(struct keeper *k, const struct birth_order *o, const int *fds,
                 struct birth_answer *a, int *ret_pidfd)
{
    ssize_t n = -1;

    if (fds_send(k->nursery_fd, o, sizeof(*o), fds, BIRTH_FDS_MAX, 0) == 0)
        n = fds_receive(k->nursery_fd, a, sizeof(*a), ret_pidfd, 1);
    return n == (ssize_t)sizeof(*a) && (a->pid == 0) == (*ret_pidfd < 0) ? 0 : -1;
}

/* Started with the first birth. Somebody may have killed it since, the kernel for want
 * of memory: one more try with a new one. */
static int ask_nursery(struct keeper *k, const struct birth_order *o, const int *fds,
                       struct birth_answer *a, int *ret_pidfd, struct err *e)
{
    for (int tries = 0; tries < 2; tries++) {
        if (k->nursery_pid <= 0 && nursery_open(k, e) < 0)
            return -1;
        if (order(k, o, fds, a, ret_pidfd) == 0)
            return 0;
        log_warn("the nursery does not answer: another one is started");
        drop_fd(ret_pidfd);
        nursery_close(k);
    }
    return err_set(e, ERR_INTERNAL, "the nursery does not answer");
}

/* ---- one sandbox ---- */

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

static int bear(struct sandbox *sb, int sock, struct err *e)
{
    autofd int cgroup = cgroup_birth_fd(sb, e);
    struct birth_order o = {.id = ids_base(sb)};
    int fds[BIRTH_FDS_MAX], v1[CTRL_COUNT], r;
    struct birth_answer a;

    if (cgroup < 0 || cgroup_open_v1(sb, v1, e) < 0)
        return -1;
    for (int i = 0; i < BIRTH_FDS_MAX; i++)
        fds[i] = i == BIRTH_BOOT ? sock : cgroup;
    for (int c = 0; c < CTRL_COUNT; c++)
        if (v1[c] >= 0)
            fds[BIRTH_V1 + o.nv1++] = v1[c];
    r = ask_nursery(sb->k, &o, fds, &a, &sb->pidfd, e);
    for (int c = 0; c < CTRL_COUNT; c++)
        drop_fd(&v1[c]);
    if (r == 0 && a.pid == 0) {
        errno = a.error;
        return err_sys(e, "clone");
    }
    sb->pid = r == 0 ? a.pid : 0;
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
    if (bear(sb, theirs, e) < 0)
        return -1;
    if (birth_map(sb->pid, "uid_map", 0, ids_base(sb), SANDBOX_IDS, e) < 0 ||
        birth_map(sb->pid, "gid_map", 0, ids_base(sb), SANDBOX_IDS, e) < 0 ||
        open_userns(sb, e) < 0)
        return -1;
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
