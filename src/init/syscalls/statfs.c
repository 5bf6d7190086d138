/* statfs.c - see statfs.h. */
#include "init/syscalls/statfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/own.h"
#include "base/str.h"
#include "init/syscalls/caller.h"
#include "init/syscalls/filters.h"
#include "init/syscalls/limits.h"
#include "init/syscalls/sockets.h"

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif

#define BLOCK 4096u

/* Page by page: the page after the string may not be mapped. */
static int read_path(int mem, uint64_t at, char out[4096])
{
    size_t n = 0;

    while (n < 4096) {
        size_t want = BLOCK - (size_t)((at + n) % BLOCK);
        ssize_t got = pread(mem, out + n, want > 4096 - n ? 4096 - n : want, (off_t)(at + n));

        if (got <= 0)
            return -1;
        if (memchr(out + n, '\0', (size_t)got) != NULL)
            return 0;
        n += (size_t)got;
    }
    return -1;
}

/* With the caller's uid and gid, not with our power to enter every directory. If only its
 * supplementary groups would let it in, this fails and the kernel answers. */
static int open_as(uint32_t pid, int dir, const char *path, struct open_how *how)
{
    char base[32];
    struct stat st;
    int fd;

    str_fmt(base, sizeof(base), "/proc/%u", pid);
    if (stat(base, &st) < 0)
        return -1;
    setfsgid(st.st_gid);
    setfsuid(st.st_uid);
    fd = (int)syscall(SYS_openat2, dir, path, how, sizeof(*how));
    setfsuid(0);
    setfsgid(0);
    return fd;
}

/* The file that the call is about, as an O_PATH fd. Magic links are not followed: in our
 * context they would lead to init. -1: the kernel answers. */
static int open_target(const struct seccomp_notif *q, int mem)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    char path[4096], base[48];
    autofd int dir = -1;

    if (q->data.nr == SYS_fstatfs) {
        str_fmt(base, sizeof(base), "/proc/%u/fd/%d", q->pid, (int)q->data.args[0]);
        return open(base, O_PATH | O_CLOEXEC);
    }
    if (read_path(mem, q->data.args[0], path) < 0 || path[0] == '\0')
        return -1;
    str_fmt(base, sizeof(base), path[0] == '/' ? "/proc/%u/root" : "/proc/%u/cwd", q->pid);
    dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    if (path[0] == '/')
        how.resolve |= RESOLVE_IN_ROOT;
    return open_as(q->pid, dir, path, &how);
}

static uint64_t mount_of(int fd)
{
    struct statx st;

    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
        !(st.stx_mask & STATX_MNT_ID))
        return 0;
    return st.stx_mnt_id;
}

static int number_of(int fd, uint64_t *ret)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return -1;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return str_u64(text, UINT64_MAX, ret);
}

static int on_statfs(const struct statfs_watch *w, const struct caller *c)
{
    const struct seccomp_notif *q = c->q;
    autofd int mem = caller_open_mem(c);
    autofd int target = mem < 0 || !caller_waits(c) ? -1 : open_target(q, mem);
    struct statfs st = {.f_type = OVERLAYFS_SUPER_MAGIC,
                        .f_bsize = BLOCK,
                        .f_frsize = BLOCK,
                        .f_namelen = 255,
                        .f_flags = 0x1024 /* valid, nodev, relatime */};
    uint64_t used, quota;

    if (target < 0 || mount_of(target) != w->root_mount || number_of(w->used_fd, &used) < 0 ||
        number_of(w->quota_fd, &quota) < 0 || quota == 0)
        return CALLER_CONTINUE;
    st.f_blocks = quota / BLOCK;
    st.f_bfree = st.f_bavail = used >= quota ? 0 : (quota - used) / BLOCK;
    if (!caller_waits(c) ||
        pwrite(mem, &st, sizeof(st), (off_t)q->data.args[1]) != (ssize_t)sizeof(st))
        return CALLER_CONTINUE;
    return 0;
}

/* Besides statfs and fstatfs.
 *
 * EXTEND  A call that init answers: a row here, and its code in keeper/stages/filter.c. */
static const struct {
    int nr;
    int (*answer)(const struct caller *c);
} calls[] = {
    {SYS_socket, sockets_on_socket},     {SYS_listen, sockets_on_listen},
    {SYS_setsockopt, sockets_on_option}, {SYS_seccomp, filters_on_install},
    {SYS_prctl, filters_on_install},     {SYS_sched_getaffinity, limits_on_affinity},
    {SYS_sysinfo, limits_on_sysinfo},
};

static int answer(struct statfs_watch *w, const struct seccomp_notif *q, int64_t *value)
{
    struct caller c = {.listener = w->listener,
                       .q = q,
                       .pass = w->pass,
                       .memory = w->memory,
                       .limits = &w->limits,
                       .load = &w->load,
                       .value = value,
                       .diag_fd = w->diag_fd};

    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (calls[i].nr == q->data.nr)
            return calls[i].answer(&c);
    return on_statfs(w, &c);
}

static void on_call(struct loop_io *io, uint32_t events)
{
    struct statfs_watch *w = CONTAINER_OF(io, struct statfs_watch, io);
    struct seccomp_notif q = {0};
    struct seccomp_notif_resp a = {0};
    int64_t value = 0;
    int r;

    if (events & (EPOLLHUP | EPOLLERR)) { /* no process with this filter is left */
        loop_io_stop(w->loop, io);
        return;
    }
    /* ENOENT: the caller was killed while it waited. */
    if (ioctl(w->listener, SECCOMP_IOCTL_NOTIF_RECV, &q) < 0)
        return;
    a.id = q.id;
    r = answer(w, &q, &value);
    if (r == CALLER_CONTINUE)
        a.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else if (r < 0)
        a.error = r;
    else
        a.val = value;
    ioctl(w->listener, SECCOMP_IOCTL_NOTIF_SEND, &a);
}

int statfs_start(struct statfs_watch *w, struct loop *loop, struct err *e)
{
    autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    w->loop = loop;
    w->root_mount = root < 0 ? 0 : mount_of(root);
    if (w->root_mount == 0)
        return err_sys(e, "statx: the mount id of /");
    if (limits_files_start(w->files, loop, &w->limits, &w->load, e) < 0)
        return -1;
    return loop_io_start(loop, &w->io, w->listener, EPOLLIN, on_call, e);
}
