/* file.c - see file.h. */
#include "init/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/own.h"
#include "init/user.h"

/* ---- whose hands these are ---- */

/* The kernel takes CHOWN, DAC_OVERRIDE, FOWNER and the like out of our effective set
 * when the fsuid leaves 0, and puts them back when it returns. */
static int become(const struct user *u, struct err *e)
{
    if (syscall(SYS_setgroups, u->ngroups, u->groups) < 0)
        return err_sys(e, "groups of the user");
    syscall(SYS_setfsgid, u->gid);
    syscall(SYS_setfsuid, u->uid);
    return 0;
}

static void become_init(void)
{
    int saved = errno;

    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
    syscall(SYS_setgroups, 0, NULL);
    errno = saved;
}

/* ---- where ---- */

struct place {
    struct user user;
    char path[USER_TEXT_MAX + INIT_PATH_MAX + 2];
};

static int find_place(int root, const char *user, const char *path, struct place *ret,
                      struct err *e)
{
    const char *home = "";

    if (user_find(root, user, &ret->user, e) < 0) {
        e->kind = ERR_INVALID; /* nothing was to be started */
        return -1;
    }
    if (path[0] == '~' && (path[1] == '\0' || path[1] == '/')) {
        home = ret->user.home;
        path++;
    } else if (path[0] != '/') {
        return err_set(e, ERR_INVALID, "%.200s: not an absolute path", path);
    }
    snprintf(ret->path, sizeof(ret->path), "%s%s", home, path);
    return 0;
}

static int open_in(int root, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
        .mode = mode,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
    };

    if ((flags & O_PATH) != 0)
        how.flags = flags | O_CLOEXEC;
    return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static int not_regular(const char *path, mode_t mode, struct err *e)
{
    return err_set(e, ERR_INVALID, "%.200s: is a %s", path,
                   S_ISDIR(mode)    ? "directory"
                   : S_ISFIFO(mode) ? "named pipe"
                   : S_ISSOCK(mode) ? "socket"
                                    : "device");
}

/* Looked at first: opening a pipe would wake who waits at its other end. */
static int open_regular(int root, const char *path, uint64_t flags, struct stat *st, struct err *e)
{
    autofd int at = open_in(root, path, O_PATH, 0), fd = -1;

    if (at < 0 || fstat(at, st) < 0)
        return err_path(e, "%.200s", path);
    if (!S_ISREG(st->st_mode))
        return not_regular(path, st->st_mode, e);
    fd = open_in(root, path, flags, 0);
    if (fd < 0 || fstat(fd, st) < 0)
        return err_path(e, "%.200s", path);
    if (!S_ISREG(st->st_mode))
        return not_regular(path, st->st_mode, e);
    return take_fd(&fd);
}

int file_open(int root, const char *user, const char *path, struct err *e)
{
    struct place p;
    struct stat st;
    int fd;

    if (find_place(root, user, path, &p, e) < 0 || become(&p.user, e) < 0)
        return -1;
    fd = open_regular(root, p.path, O_RDONLY, &st, e);
    become_init();
    return fd;
}
