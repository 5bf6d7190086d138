/* file.c - see file.h: paths, stat, read, open. */
#include "init/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "init/run/policy.h"

/* ---- paths ---- */

int place_find(int root, const char *user, const char *path, struct place *ret, struct err *e)
{
    const char *home = "";
    int n;

    ret->root = root;
    if (user_find(root, user, &ret->user, e) < 0) {
        e->kind = ERR_INVALID; /* not ERR_CANNOT_START: nothing was to be started */
        return -1;
    }
    if (path[0] == '~' && (path[1] == '\0' || path[1] == '/')) {
        home = ret->user.home;
        path++;
    } else if (path[0] != '/') {
        return err_set(e, ERR_INVALID, "%.200s: the path must be absolute, or begin with ~", path);
    }
    n = snprintf(ret->path, sizeof(ret->path), "%s%s", home, path);
    if (n < 0 || (size_t)n >= sizeof(ret->path))
        return err_set(e, ERR_INVALID, "%.80s...: the path is longer than %u bytes", path,
                       FILE_PATH_MAX);
    return 0;
}

/* setfsuid() with an id that is not mapped keeps the old one, root's, and reports no error: so
 * read it back. */
static bool become(const struct user *u)
{
    if (syscall(SYS_setgroups, u->ngroups, u->groups) < 0)
        return false;
    syscall(SYS_setfsgid, u->gid);
    syscall(SYS_setfsuid, u->uid);
    return (gid_t)syscall(SYS_setfsgid, u->gid) == u->gid &&
           (uid_t)syscall(SYS_setfsuid, u->uid) == u->uid;
}

/* The kernel removes CAP_CHOWN, _DAC_OVERRIDE, _FOWNER and the like from our effective set when
 * the fsuid leaves 0, and restores them when it returns. */
int place_enter(const struct place *p, bool as_root, struct err *e)
{
    if (as_root || !init_policy.identities || become(&p->user))
        return 0;
    place_leave();
    return err_set(e, ERR_INVALID, "user %u:%u: ids in a sandbox are 0 to 65535", p->user.uid,
                   p->user.gid);
}

void place_leave(void)
{
    int saved = errno;

    if (!init_policy.identities)
        return;
    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
    syscall(SYS_setgroups, 0, NULL);
    errno = saved;
}

/* In a sandbox never another mount: here /proc/self would be init, with its memory and fds. */
int place_open(const struct place *p, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
        .mode = mode,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | init_policy.mounts,
    };

    if ((flags & O_PATH) != 0) /* openat2 refuses other flags with it */
        how.flags = flags | O_CLOEXEC;
    return (int)syscall(SYS_openat2, p->root, path, &how, sizeof(how));
}

int place_not_regular(const struct place *p, mode_t mode, struct err *e)
{
    return err_set(e, ERR_INVALID, "%.200s: is a %s", p->path,
                   S_ISDIR(mode)    ? "directory"
                   : S_ISFIFO(mode) ? "named pipe"
                   : S_ISSOCK(mode) ? "socket"
                   : S_ISLNK(mode)  ? "symbolic link"
                                    : "device");
}

/* ---- answers ---- */

void file_describe(struct file_answer *a, const struct stat *st, bool names)
{
    a->owner[0] = a->group[0] = '\0';
    if (names)
        user_names(a->place.root, st->st_uid, st->st_gid, a->owner, a->group);
    a->file.path = a->place.path;
    a->file.target = a->target;
    a->file.owner = a->owner;
    a->file.group = a->group;
    a->file.mode = st->st_mode;
    a->file.uid = st->st_uid;
    a->file.gid = st->st_gid;
    a->file.size = (uint64_t)st->st_size;
    a->file.ino = st->st_ino;
    a->file.nlink = st->st_nlink;
    a->file.mtime_ns = clock_ns_of(&st->st_mtim);
    a->file.ctime_ns = clock_ns_of(&st->st_ctim);
}

/* Stat first: opening a FIFO would wake a process that waits at its other end. */
static int open_regular(const struct place *p, struct stat *st, struct err *e)
{
    autofd int at = place_open(p, p->path, O_PATH, 0), fd = -1;

    if (at < 0 || fstat(at, st) < 0)
        return err_path(e, "%.200s", p->path);
    if (!S_ISREG(st->st_mode))
        return place_not_regular(p, st->st_mode, e);
    fd = place_open(p, p->path, O_RDONLY, 0);
    if (fd < 0 || fstat(fd, st) < 0)
        return err_path(e, "%.200s", p->path);
    if (!S_ISREG(st->st_mode))
        return place_not_regular(p, st->st_mode, e);
    return take_fd(&fd);
}

int file_open(int root, const struct init_open *m, struct err *e)
{
    struct place p;
    struct stat st;
    int fd;

    if (place_find(root, m->user, m->path, &p, e) < 0 || place_enter(&p, m->root != 0, e) < 0)
        return -1;
    fd = open_regular(&p, &st, e);
    place_leave();
    return fd;
}

/* cove-helper does it. */
static int err_elsewhere(struct err *e)
{
    errno = EXDEV;
    return err_path(e, "another mount");
}

static int look(const struct init_look *m, struct file_answer *a, struct stat *st, struct err *e)
{
    const struct place *p = &a->place;
    bool follow = (m->flags & INIT_LOOK_FOLLOW) != 0;
    autofd int fd = -1;
    size_t got = 0;
    ssize_t n = 1;

    if ((m->flags & INIT_LOOK_READ) == 0) {
        fd = place_open(p, p->path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
        if (fd < 0 || fstat(fd, st) < 0)
            return err_path(e, "%.200s", p->path);
        if (S_ISLNK(st->st_mode) && (n = readlinkat(fd, "", a->target, FILE_PATH_MAX)) > 0)
            a->target[n] = '\0';
        return 0;
    }
    fd = open_regular(p, st, e);
    if (fd < 0)
        return -1;
    if ((uint64_t)st->st_size > INIT_FILE_MAX)
        return 0;
    if (st->st_size == 0 && init_policy.mounts == 0) /* perhaps one of /proc, which tells no size */
        return err_elsewhere(e);
    while (got < (size_t)st->st_size &&
           (n = pread(fd, a->data + got, (size_t)st->st_size - got, (off_t)got)) > 0)
        got += (size_t)n;
    if (n < 0)
        return err_path(e, "%.200s", p->path);
    a->file.has_data = got == (size_t)st->st_size; /* else it was truncated meanwhile */
    a->file.data = (struct wire_bytes){a->data, (uint32_t)got};
    return 0;
}

int file_look(int root, const struct init_look *m, struct file_answer *ret, struct err *e)
{
    struct stat st;
    int r;

    ret->file = (struct init_file){0};
    ret->target[0] = '\0';
    if (place_find(root, m->user, m->path, &ret->place, e) < 0 ||
        place_enter(&ret->place, (m->flags & INIT_LOOK_ROOT) != 0, e) < 0)
        return -1;
    r = look(m, ret, &st, e);
    place_leave();
    if (r < 0 && e->sys == EXDEV) {
        ret->file = (struct init_file){.elsewhere = 1};
        return 0;
    }
    if (r == 0)
        file_describe(ret, &st, (m->flags & INIT_LOOK_READ) == 0);
    return r;
}
