/* birth.c - the process that becomes init, in namespaces of its own.
 *
 * The nursery (nursery.h) clones it into the sandbox's cgroup and into new user, pid, mount,
 * network, ipc and uts namespaces; then we write its id maps, and the stages continue. It waits
 * until its boot message comes (init.c). */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/str.h"
#include "keeper/host.h"
#include "keeper/life.h"
#include "keeper/stages.h"

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

/* Returns the other end of boot_fd, for the new init. We keep no copy, so that each end sees when
 * the other closes. */
int birth_socket(struct sandbox *sb, struct err *e)
{
    int pair[2], quiet = 256 * 1024;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "create the boot socket");
    drop_fd(&sb->boot_fd);
    sb->boot_fd = pair[0];
    setsockopt(sb->boot_fd, SOL_SOCKET, SO_SNDBUF, &quiet, sizeof(quiet));
    return pair[1];
}

int birth_up(struct sandbox *sb, struct err *e)
{
    (void)e;
    sb->born_again = false;
    nursery_order(sb);
    return 1;
}

/* A sandbox that is no longer starting is taken down by birth_down(). */
void birth_born(struct sandbox *sb, pid_t pid, int pidfd)
{
    char path[64];
    struct err e;

    sb->pid = pid;
    sb->pidfd = pidfd;
    if (!sandbox_is_starting(sb))
        return;
    if (birth_map(pid, "uid_map", 0, ids_base(sb), SANDBOX_IDS, &e) < 0 ||
        birth_map(pid, "gid_map", 0, ids_base(sb), SANDBOX_IDS, &e) < 0) {
        sandbox_failed(sb, &e);
        return;
    }
    str_fmt(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    sb->userns_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (sb->userns_fd < 0) {
        err_sys(&e, "open the user namespace of an init");
        sandbox_failed(sb, &e);
        return;
    }
    stages_continue(sb);
}

void birth_failed(struct sandbox *sb, struct err *e)
{
    if (!sandbox_is_starting(sb))
        return;
    err_wrap(e, "sandbox %s: birth", sb->rec.id);
    sandbox_failed(sb, e);
}

bool birth_is_over(const struct sandbox *sb)
{
    struct pollfd p = {.fd = sb->pidfd, .events = POLLIN};

    return sb->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

/* Also for an adopted init, which is not our child: then waitid fails and the pidfd alone tells. */
int birth_down(struct sandbox *sb)
{
    siginfo_t si = {0};

    if (!list_empty(&sb->birth_link)) /* the nursery has not answered yet */
        return 1;
    loop_io_stop(sb->k->loop, &sb->boot_io);
    drop_fd(&sb->boot_fd);
    if (!birth_is_over(sb)) {
        cgroup_kill(sb);
        return sb->pidfd < 0 ? 0 : 1;
    }
    waitid(P_PIDFD, (id_t)sb->pidfd, &si, WEXITED | WNOHANG);
    loop_io_stop(sb->k->loop, &sb->pid_io);
    drop_fd(&sb->pidfd);
    sb->pid = 0;
    return 0;
}
