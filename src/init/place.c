/* place.c - see place.h. */
#include "init/place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/own.h"

int place_find(int root, const char *user, const char *path, struct place *ret, struct err *e)
{
    const char *home = "";
    int n;

    ret->root = root;
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
    n = snprintf(ret->path, sizeof(ret->path), "%s%s", home, path);
    if (n < 0 || (size_t)n >= sizeof(ret->path))
        return err_set(e, ERR_INVALID, "the path is longer than %u bytes", FILE_PATH_MAX);
    return 0;
}

/* An id that is not mapped leaves the old one in place and says nothing of it: that one is
 * root's, so it has to be looked at. */
static bool become(const struct user *u)
{
    if (syscall(SYS_setgroups, u->ngroups, u->groups) < 0)
        return false;
    syscall(SYS_setfsgid, u->gid);
    syscall(SYS_setfsuid, u->uid);
    return (gid_t)syscall(SYS_setfsgid, u->gid) == u->gid &&
           (uid_t)syscall(SYS_setfsuid, u->uid) == u->uid;
}

/* The kernel takes CHOWN, DAC_OVERRIDE, FOWNER and the like out of our effective set
 * when the fsuid leaves 0, and puts them back when it returns. */
int place_enter(const struct place *p, bool as_root, struct err *e)
{
    if (as_root || become(&p->user))
        return 0;
    place_leave();
    return err_set(e, ERR_INVALID, "user %u:%u: a sandbox has no such ids", p->user.uid,
                   p->user.gid);
}

void place_leave(void)
{
    int saved = errno;

    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
    syscall(SYS_setgroups, 0, NULL);
    errno = saved;
}

/* In our context /proc/self is init: its memory, its fds. So no other mount. */
int place_open(const struct place *p, const char *path, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
        .mode = mode,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
    };

    if ((flags & O_PATH) != 0) /* which takes no others */
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
