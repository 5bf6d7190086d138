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
    struct args a;
    char path[PATH_ROOM];
    uid_t uid; /* -1: not given */
    gid_t gid;
    uint32_t mode; /* FILE_MODE_NONE: not given */
    struct file_done done;
};

static bool has_owner(const struct change *c)
{
    return c->uid != (uid_t)-1 || c->gid != (gid_t)-1;
}

static int make_parents(struct change *c, struct err *e)
{
    return args_has(&c->a, "parents") ? where_make_parents(c->path, c->uid, c->gid, e) : 0;
}

static int set_owner(struct change *c, struct err *e)
{
    if (has_owner(c) && lchown(c->path, c->uid, c->gid) < 0)
        return err_path(e, "%.200s", c->path);
    return 0;
}

static int do_mkdir(struct change *c, struct err *e)
{
    struct stat st;
    int why;

    if (make_parents(c, e) < 0)
        return -1;
    why = mkdir(c->path, 0755) < 0 ? errno : 0;
    if (why == 0) {
        if (set_owner(c, e) < 0)
            return -1;
        if (c->mode != FILE_MODE_NONE && chmod(c->path, c->mode) < 0)
            return err_path(e, "%.200s", c->path);
        c->done.count = 1;
    } else if (!(why == EEXIST && args_has(&c->a, "parents") && stat(c->path, &st) == 0 &&
                 S_ISDIR(st.st_mode))) {
        errno = why;
        return err_path(e, "%.200s", c->path);
    }
    return record_entry_at(AT_FDCWD, c->path, c->path, e);
}

static int do_symlink(struct change *c, struct err *e)
{
    const char *target = args_get(&c->a, "target");
    char name[PATH_BESIDE_ROOM], temp[PATH_ROOM + sizeof(name)];

    if (target == NULL || *target == '\0')
        return err_set(e, ERR_INVALID, "target: empty");
    if (make_parents(c, e) < 0)
        return -1;
    if (symlink(target, c->path) < 0) {
        if (errno != EEXIST || !args_has(&c->a, "overwrite"))
            return err_path(e, "%.200s", c->path);
        path_beside(name);
        str_fmt(temp, sizeof(temp), "%.*s%s", (int)(path_name(c->path) - c->path), c->path, name);
        if (symlink(target, temp) < 0 || rename(temp, c->path) < 0) {
            int saved = errno;

            unlink(temp);
            errno = saved;
            return err_path(e, "%.200s", c->path);
        }
    }
    c->done.count = 1;
    return set_owner(c, e) < 0 ? -1 : record_entry_at(AT_FDCWD, c->path, c->path, e);
}

/* ---- recursive changes ---- */

/* Through an fd, so that the file that was checked is the one that is changed. A link has no
 * mode. */
static int set_mode(int dir, const char *name, mode_t mode)
{
    char self[32];
    autofd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (S_ISLNK(st.st_mode))
        return 0;
    str_fmt(self, sizeof(self), "/proc/self/fd/%d", fd);
    return chmod(self, mode);
}

static enum walk_next each_mode(void *arg, const struct walk_entry *w, struct err *e)
{
    struct change *c = arg;

    if (set_mode(w->dir, w->name, c->mode) < 0 && errno != ENOENT) {
        err_path(e, "%.200s", w->path);
        return WALK_STOP;
    }
    c->done.count++;
    return WALK_ON;
}

static enum walk_next each_owner(void *arg, const struct walk_entry *w, struct err *e)
{
    struct change *c = arg;

    if (fchownat(w->dir, w->name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT) {
        err_path(e, "%.200s", w->path);
        return WALK_STOP;
    }
    c->done.count++;
    return WALK_ON;
}

static int below(struct change *c,
                 enum walk_next (*each)(void *arg, const struct walk_entry *w, struct err *e),
                 struct err *e)
{
    struct walk w = {.enter = each, .arg = c};
    int fd = open(c->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOTDIR ? 0 : err_path(e, "%.200s", c->path);
    return walk_below(&w, fd, c->path, e) < 0 ? -1 : 0;
}

static int do_chmod(struct change *c, struct err *e)
{
    if (c->mode == FILE_MODE_NONE)
        return err_set(e, ERR_INVALID, "mode: missing");
    if (args_has(&c->a, "recursive") && below(c, each_mode, e) < 0)
        return -1;
    if (chmod(c->path, c->mode) < 0)
        return err_path(e, "%.200s", c->path);
    c->done.count++;
    return record_entry_at(AT_FDCWD, c->path, c->path, e);
}

static int do_chown(struct change *c, struct err *e)
{
    if (!has_owner(c))
        return err_set(e, ERR_INVALID, "owner: missing");
    if (args_has(&c->a, "recursive") && below(c, each_owner, e) < 0)
        return -1;
    if (lchown(c->path, c->uid, c->gid) < 0)
        return err_path(e, "%.200s", c->path);
    c->done.count++;
    return record_entry_at(AT_FDCWD, c->path, c->path, e);
}

/* ---- attributes ---- */

#define NAME_ROOM 256u

static int change_attrs(struct change *c, int fd, const char *prefix, struct err *e)
{
    for (int i = 0; i < c->a.n; i++) {
        const char *arg = c->a.v[i], *value = strchr(arg, '=');
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

static int show_attrs(struct change *c, int fd, const char *prefix, struct err *e)
{
    static char names[FILE_XATTR_MAX], value[FILE_XATTR_MAX];
    ssize_t len = flistxattr(fd, names, sizeof(names)), n;
    size_t skip = strlen(prefix);

    if (len < 0 && errno != EOPNOTSUPP)
        return err_path(e, "%.200s", c->path);
    for (char *at = names; len > 0 && at < names + len; at += strlen(at) + 1) {
        if (strncmp(at, prefix, skip) != 0 || at[skip] == '\0')
            continue;
        n = fgetxattr(fd, at, value, sizeof(value));
        if (n < 0)
            continue;
        record_put(FILE_XATTR,
                   &(struct file_xattr){.name = at + skip, .value = {value, (uint32_t)n}});
        c->done.count++;
    }
    return 0;
}

static int do_xattrs(struct change *c, struct err *e)
{
    const char *prefix = args_get(&c->a, "prefix");
    autofd int fd = -1;
    struct stat st;

    if (prefix == NULL || strncmp(prefix, "user.", 5) != 0)
        return err_set(e, ERR_INVALID, "prefix: must begin with user.");
    if (stat(c->path, &st) < 0)
        return err_path(e, "%.200s", c->path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "%.200s: only files and directories have attributes",
                       c->path);
    fd = open(c->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_path(e, "%.200s", c->path);
    return change_attrs(c, fd, prefix, e) < 0 ? -1 : show_attrs(c, fd, prefix, e);
}

/* A change of a file that exists, or of one that `step` creates: then an owner without a
 * group means the primary group too. */
static int run(int argc, char **argv, bool creates, int (*step)(struct change *c, struct err *e))
{
    static struct change c;
    const char *owner;
    struct err e;

    c.a = (struct args){argc, argv};
    owner = args_get(&c.a, "owner");
    c.mode = (uint32_t)args_u64(&c.a, "mode", FILE_MODE_NONE);
    if ((creates ? names_parse_new : names_parse)(owner, &c.uid, &c.gid, &e) < 0 ||
        where_path(args_get(&c.a, "path"), c.path, &e) < 0 || step(&c, &e) < 0)
        return say_failed(stderr, &e);
    return record_done(&c.done);
}

int mkdir_main(int argc, char **argv)
{
    return run(argc, argv, true, do_mkdir);
}

int symlink_main(int argc, char **argv)
{
    return run(argc, argv, true, do_symlink);
}

int chmod_main(int argc, char **argv)
{
    return run(argc, argv, false, do_chmod);
}

int chown_main(int argc, char **argv)
{
    return run(argc, argv, false, do_chown);
}

int xattrs_main(int argc, char **argv)
{
    return run(argc, argv, false, do_xattrs);
}
