/* init.c - the last stage: the boot message, and init's answer.
 *
 * The keeper binds the socket that the front will connect to (DIR/run/ID, owned by cove); init
 * calls listen() on it, and no path of it is visible inside. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/compat.h"
#include "keeper/host.h"
#include "keeper/life.h"
#include "keeper/network.h"
#include "keeper/stages.h"
#include "wire/fds.h"
#include "wire/init.h"

#define INIT_BOOT_MS 10000 /* then the boot has failed */

/* Through /proc/self/fd: a unix path has 107 bytes, the state directory may have more. */
static int bind_socket(struct sandbox *sb, struct err *e)
{
    autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int dir = sb->k->run_fd, r;

    str_fmt(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, sb->rec.id);
    /* The file gets the mode of the socket. */
    if (fd < 0 || fchmod(fd, 0600) < 0)
        return err_sys(e, "create the socket of init");
    r = bind(fd, (const struct sockaddr *)&a, sizeof(a));
    if (r < 0 && errno == EADDRINUSE && unlinkat(dir, sb->rec.id, 0) == 0) /* of an earlier boot */
        r = bind(fd, (const struct sockaddr *)&a, sizeof(a));
    if (r < 0)
        return err_sys(e, "bind the socket of init");
    if (fchownat(dir, sb->rec.id, sb->k->cove_uid, sb->k->cove_gid, 0) < 0)
        return err_sys(e, "chown the socket of init");
    return take_fd(&fd);
}

/* A directory of a detached clone of the mount, so that `..` does not lead to the host. Only the
 * directory is passed to init: a process that has the mount itself open waits for an RCU grace
 * period when it ends. */
static int clone_run(struct sandbox *sb, struct err *e)
{
    char path[320];
    int mnt, fd;

    str_fmt(path, sizeof(path), "%s/%s/run", sb->k->cgroups.v2_path, sb->rec.id);
    mnt = sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (mnt < 0)
        return err_sys(e, "clone the cgroup mount");
    fd = openat(mnt, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    closer_close(mnt, NULL);
    return fd < 0 ? err_sys(e, "open the clone of the cgroup mount") : fd;
}

/* The kernel wants a capability over init's user namespace from the process that opened this file.
 * Init has it, but cannot open the file, since it is not dumpable; and only the range's first id
 * has it without CAP_SYS_TIME, as the owner of the namespace. -1: no time namespaces. */
static int open_clock(struct sandbox *sb)
{
    char path[48];
    struct err e;
    int fd;

    str_fmt(path, sizeof(path), "/proc/%d/timens_offsets", (int)sb->pid);
    if (act_as(ids_base(sb), &e) < 0)
        return -1;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    act_as_root();
    return fd;
}

static void fill_message(struct sandbox *sb, struct boot_message *m)
{
    _Static_assert(sizeof(sb->rec.boot_id) > ID_UUID_LEN, "a boot id is a UUID");
    id_uuid(sb->rec.boot_id);
    m->version = INIT_VERSION;
    m->filter_len = (uint32_t)sb->k->filter_len;
    m->nofile = sb->rec.limits.nofile;
    m->shm_bytes = sb->rec.limits.memory / 2;
    m->cgroups_v1 = cgroup_v1(sb->k);
    m->ptys = SANDBOX_PTYS;
    m->address = network_address(sb);
    m->pass = sb->k->filter_pass;
    m->bandwidth = sb->rec.limits.bandwidth;
    str_fmt(m->boot_id, sizeof(m->boot_id), "%s", sb->rec.boot_id);
    str_fmt(m->hostname, sizeof(m->hostname), "cove");
    memcpy(m->filter, sb->k->filter, sb->k->filter_len);
}

static void boot_late(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);
    struct err e;

    err_set(&e, ERR_INTERNAL, "sandbox %s: init did not answer in %d ms", sb->rec.id, INIT_BOOT_MS);
    sandbox_failed(sb, &e);
}

static void boot_answered(struct loop_io *io, uint32_t events)
{
    struct sandbox *sb = CONTAINER_OF(io, struct sandbox, boot_io);
    struct boot_answer a = {0};
    ssize_t n = recv(sb->boot_fd, &a, sizeof(a), MSG_DONTWAIT);
    struct err e;

    (void)events;
    if (n < 0 && errno == EAGAIN)
        return;
    loop_timer_stop(sb->k->loop, &sb->timer);
    loop_io_stop(sb->k->loop, &sb->boot_io);
    drop_fd(&sb->boot_fd);
    if (n == (ssize_t)sizeof(a) && a.ok == 1) {
        sandbox_tell(sb, EV_BOOTED);
        return;
    }
    a.error[sizeof(a.error) - 1] = '\0';
    /* What is wrong with the tenant's own files is its client's to read; a tenant cannot have run
     * yet, and a kind of failure is all that it could choose. */
    err_set(&e, n > 0 && a.kind == ERR_CONFLICT ? ERR_CONFLICT : ERR_INTERNAL,
            "sandbox %s: init: %s", sb->rec.id, n > 0 ? a.error : "ended before it was ready");
    sandbox_failed(sb, &e);
}

int init_up(struct sandbox *sb, struct err *e)
{
    struct boot_message m;
    autofd int used = -1, quota = -1, sock = bind_socket(sb, e);
    autofd int dev = sock < 0 ? -1 : devfs_make(sb, e), run = dev < 0 ? -1 : clone_run(sb, e);
    autofd int oom = run < 0 ? -1 : cgroup_oom_fd(sb, e), clock = oom < 0 ? -1 : open_clock(sb);

    if (oom < 0 || disk_counters(sb, &used, &quota, e) < 0)
        return -1;
    fill_message(sb, &m);
    if (fds_send(sb->boot_fd, &m, offsetof(struct boot_message, filter) + m.filter_len,
                 (const int[]){[BOOT_LISTEN] = sock,
                               [BOOT_ROOT] = sb->root_fd,
                               [BOOT_DEV] = dev,
                               [BOOT_USED] = used,
                               [BOOT_QUOTA] = quota,
                               [BOOT_OOM] = oom,
                               [BOOT_RUN] = run,
                               [BOOT_HELPER] = sb->k->helper_fd,
                               [BOOT_CLOCK] = clock >= 0 ? clock : run},
                 BOOT_FD_COUNT, MSG_DONTWAIT) < 0)
        return err_sys(e, "send the boot message");
    drop_fd(&sb->userns_fd);
    if (loop_timer_set(sb->k->loop, &sb->timer, INIT_BOOT_MS, boot_late) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return loop_io_start(sb->k->loop, &sb->boot_io, sb->boot_fd, EPOLLIN, boot_answered, e);
}

/* The stages below may go only when everything inside is dead: a disk that is emptied for the next
 * sandbox must have no writer. When init is dead, its whole pid namespace is; for an init whose
 * pidfd we never had, the cgroup tells. */
int init_down(struct sandbox *sb)
{
    unlinkat(sb->k->run_fd, sb->rec.id, 0);
    if (birth_is_over(sb))
        return 0;
    cgroup_kill(sb);
    return sb->pidfd < 0 && cgroup_is_empty(sb) ? 0 : 1;
}
