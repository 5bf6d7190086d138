/* change.c - creates directories and links, and changes modes, owners and attributes.
 *
 *   mkdir    path [parents] [mode=N] [owner=USER:GROUP]
 *   symlink  path target=TEXT [parents] [overwrite] [owner=USER:GROUP]
 *   chmod    path mode=N [recursive]
 *   chown    path owner=USER:GROUP [recursive]
 *   xattrs   path prefix=user.TEXT [set.NAME=VALUE...] [remove.NAME...]
 *            answers with all attributes of that prefix after the change */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "helper/call/names.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/tree/walk.h"
#include "helper/tree/where.h"

struct change {
    const struct args *a;
    char path[PATH_ROOM];
    uid_t uid; /* -1: not given */
    gid_t gid;
    uint32_t mode; /* FILE_MODE_NONE: not given */
    struct file_done *done;
};

/* Reads the arguments that all have. For a file that the call creates, an owner without a group
 * means the primary group too. */
static int prepare(struct change *c, const struct args *a, bool creates, struct file_done *done,
                   struct err *e)
{
    c->a = a;
    c->done = done;
    c->mode = (uint32_t)args_u64(a, "mode", FILE_MODE_NONE);
    if ((creates ? names_parse_new : names_parse)(args_get(a, "owner"), &c->uid, &c->gid, e) < 0 ||
        where_path(args_get(a, "path"), c->path, e) < 0)
        return -1;
    return creates && args_has(a, "parents") ? where_make_parents(c->path, c->uid, c->gid, e) : 0;
}

static bool has_owner(const struct change *c)
{
    return c->uid != (uid_t)-1 || c->gid != (gid_t)-1;
}

int file_mkdir(const struct args *a, struct file_done *done, struct err *e)
{
    struct change c;
    struct stat st;

    if (prepare(&c, a, true, done, e) < 0)
        return -1;
    if (mkdir(c.path, 0755) == 0) {
        if ((has_owner(&c) && lchown(c.path, c.uid, c.gid) < 0) ||
            (c.mode != FILE_MODE_NONE && chmod(c.path, c.mode) < 0))
            return err_path(e, "%.200s", c.path);
        done->count = 1;
    } else {
        int why = errno;

        if (why != EEXIST || !args_has(a, "parents") || stat(c.path, &st) < 0 ||
            !S_ISDIR(st.st_mode)) {
            errno = why;
            return err_path(e, "%.200s", c.path);
        }
    }
    return record_entry_at(AT_FDCWD, c.path, c.path, e);
}

int file_symlink(const struct args *a, struct file_done *done, struct err *e)
{
    const char *target = args_get(a, "target");
    char name[PATH_BESIDE_ROOM], temp[PATH_ROOM + sizeof(name)];
    struct change c;

    if (target == NULL || *target == '\0')
        return err_set(e, ERR_INVALID, "target: empty");
    if (prepare(&c, a, true, done, e) < 0)
        return -1;
    if (symlink(target, c.path) < 0) {
        if (errno != EEXIST || !args_has(a, "overwrite"))
            return err_path(e, "%.200s", c.path);
        path_beside(name);
        str_fmt(temp, sizeof(temp), "%.*s%s", (int)(path_name(c.path) - c.path), c.path, name);
        if (symlink(target, temp) < 0 || rename(temp, c.path) < 0) {
            int saved = errno;

            unlink(temp);
            errno = saved;
            return err_path(e, "%.200s", c.path);
        }
    }
    done->count = 1;
    if (has_owner(&c) && lchown(c.path, c.uid, c.gid) < 0)
        return err_path(e, "%.200s", c.path);
    return record_entry_at(AT_FDCWD, c.path, c.path, e);
}

/* ---- mode and owner ---- */

static enum walk_next change_owner(void *arg, const struct walk_entry *w, struct err *e)
{
    struct change *c = arg;

    if (fchownat(w->dir, w->name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT) {
        err_path(e, "%.200s", w->path);
        return WALK_STOP;
    }
    c->done->count++;
    return WALK_ON;
}

/* Through an fd, so that the file that was checked is the one that is changed. A link has no
 * mode. */
static enum walk_next change_mode(void *arg, const struct walk_entry *w, struct err *e)
{
    struct change *c = arg;
    char self[32];
    autofd int fd = openat(w->dir, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    str_fmt(self, sizeof(self), "/proc/self/fd/%d", fd);
    if ((fd < 0 || fstat(fd, &st) < 0 || (!S_ISLNK(st.st_mode) && chmod(self, c->mode) < 0)) &&
        errno != ENOENT) {
        err_path(e, "%.200s", w->path);
        return WALK_STOP;
    }
    c->done->count++;
    return WALK_ON;
}

/* With `recursive`, everything below the path. */
static int change_below(struct change *c,
                        enum walk_next (*each)(void *arg, const struct walk_entry *w,
                                               struct err *e),
                        struct err *e)
{
    struct walk w = {.enter = each, .arg = c};
    int fd;

    if (!args_has(c->a, "recursive"))
        return 0;
    fd = open(c->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR ? 0 : err_path(e, "%.200s", c->path);
    return walk_below(&w, fd, c->path, e) < 0 ? -1 : 0;
}

int file_chmod(const struct args *a, struct file_done *done, struct err *e)
{
    struct change c;

    if (prepare(&c, a, false, done, e) < 0)
        return -1;
    if (c.mode == FILE_MODE_NONE)
        return err_set(e, ERR_INVALID, "mode: missing");
    if (change_below(&c, change_mode, e) < 0)
        return -1;
    if (chmod(c.path, c.mode) < 0)
        return err_path(e, "%.200s", c.path);
    done->count++;
    return record_entry_at(AT_FDCWD, c.path, c.path, e);
}

int file_chown(const struct args *a, struct file_done *done, struct err *e)
{
    struct change c;

    if (prepare(&c, a, false, done, e) < 0)
        return -1;
    if (!has_owner(&c))
        return err_set(e, ERR_INVALID, "owner: missing");
    if (change_below(&c, change_owner, e) < 0)
        return -1;
    if (lchown(c.path, c.uid, c.gid) < 0)
        return err_path(e, "%.200s", c.path);
    done->count++;
    return record_entry_at(AT_FDCWD, c.path, c.path, e);
}

/* ---- attributes ---- */

#define NAME_ROOM 256u

static int change_attrs(struct change *c, int fd, const char *prefix, struct err *e)
{
    for (int i = 0; i < c->a->n; i++) {
        const char *arg = c->a->v[i], *value = strchr(arg, '=');
        bool set = strncmp(arg, "set.", 4) == 0 && value != NULL;
        char name[NAME_ROOM];
        int len;

        if (set)
            len = snprintf(name, sizeof(name), "%s%.*s", prefix, (int)(value - arg - 4), arg + 4);
        else if (strncmp(arg, "remove.", 7) == 0)
            len = snprintf(name, sizeof(name), "%s%s", prefix, arg + 7);
        else
            continue;
        if (len == (int)strlen(prefix) || len >= (int)sizeof(name))
            return err_set(e, ERR_INVALID,
                           "the name of an attribute must have 1 to %u bytes with its prefix",
                           NAME_ROOM - 1);
        if (set ? fsetxattr(fd, name, value + 1, strlen(value + 1), 0) < 0
                : fremovexattr(fd, name) < 0 && errno != ENODATA)
            return err_path(e, "%.200s: %.60s", c->path, name);
    }
    return 0;
}

/* Changes the attributes, then answers with those that the file has now. */
int file_xattrs(const struct args *a, struct file_done *done, struct err *e)
{
    static char names[FILE_XATTR_MAX], value[FILE_XATTR_MAX];
    const char *prefix = args_get(a, "prefix");
    autofd int fd = -1;
    struct change c;
    struct stat st;
    ssize_t len, n;

    if (prepare(&c, a, false, done, e) < 0)
        return -1;
    if (prefix == NULL || strncmp(prefix, "user.", 5) != 0)
        return err_set(e, ERR_INVALID, "prefix: must begin with user.");
    if (stat(c.path, &st) < 0)
        return err_path(e, "%.200s", c.path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "%.200s: only files and directories have attributes",
                       c.path);
    fd = open(c.path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_path(e, "%.200s", c.path);
    if (change_attrs(&c, fd, prefix, e) < 0)
        return -1;
    len = flistxattr(fd, names, sizeof(names));
    if (len < 0 && errno != EOPNOTSUPP)
        return err_path(e, "%.200s", c.path);
    for (char *at = names; len > 0 && at < names + len; at += strlen(at) + 1) {
        const char *name = at + strlen(prefix);

        if (strncmp(at, prefix, strlen(prefix)) != 0 || *name == '\0' ||
            (n = fgetxattr(fd, at, value, sizeof(value))) < 0)
            continue;
        record_put(FILE_XATTR, &(struct file_xattr){.name = name, .value = {value, (uint32_t)n}});
        done->count++;
    }
    return 0;
}
