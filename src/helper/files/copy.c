/* copy.c - see copy.h. Modes, times and user.* attributes are copied; a socket or a device is
 * an error. */
#include "helper/files/copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/files/inplace.h"
#include "helper/files/tmpfile.h"
#include "helper/tree/walk.h"
#include "wire/file.h"

struct names { /* of one file, for messages */
    const char *from, *to;
};

static int copy_any(struct copy *c, int from_dir, const char *from, int to_dir, const char *to,
                    const struct names *n, unsigned depth, struct err *e);

/* After a failure on the source. 1: it was removed meanwhile. */
static int lost(const struct names *n, struct err *e)
{
    return errno == ENOENT ? 1 : err_path(e, "%.200s", n->from);
}

/* The owner first: chown() clears set-id bits. Those bits are copied only if owner and group
 * are the same: a set-id program must not run as another user. */
static int set_attributes(const struct copy *c, int fd, const struct stat *st, const char *path,
                          struct err *e)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    bool given = c->uid != (uid_t)-1;
    mode_t mode = st->st_mode & 07777;
    struct stat now;

    if (fchown(fd, given ? c->uid : st->st_uid, given ? c->gid : st->st_gid) < 0 && given)
        return err_path(e, "%.200s", path);
    if (fstat(fd, &now) < 0 || now.st_uid != st->st_uid || now.st_gid != st->st_gid)
        mode &= ~(mode_t)(S_ISUID | S_ISGID);
    if (fchmod(fd, mode) < 0 || futimens(fd, times) < 0)
        return err_path(e, "%.200s", path);
    return 0;
}

/* Gives the complete file its name. */
static int name_file(const struct copy *c, int fd, int dir, const char *name)
{
    char temp[PATH_BESIDE_ROOM];
    int saved;

    if (tmpfile_link(fd, dir, name) == 0)
        return 0;
    if (errno != EEXIST || !c->overwrite)
        return -1;
    path_beside(temp);
    if (tmpfile_link(fd, dir, temp) < 0)
        return -1;
    if (renameat(dir, temp, dir, name) == 0)
        return 0;
    saved = errno;
    unlinkat(dir, temp, 0);
    errno = saved;
    return -1;
}

static int copy_file(struct copy *c, int from_dir, const char *from, int to_dir, const char *to,
                     const struct names *n, struct err *e)
{
    autofd int in = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
               out = -1;
    struct stat st;

    if (in < 0 || fstat(in, &st) < 0)
        return lost(n, e);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFLICT, "%.200s: changed while it was copied", n->from);
    out = tmpfile_open(to_dir, ".");
    if (out < 0 || inplace_replace(in, out) < 0)
        return err_path(e, "%.200s", n->to);
    tmpfile_copy_xattrs(in, out);
    if (set_attributes(c, out, &st, n->to, e) < 0)
        return -1;
    if (name_file(c, out, to_dir, to) < 0)
        return err_path(e, "%.200s", n->to);
    c->bytes += (uint64_t)st.st_size;
    return 0;
}

/* A link to `target`, or if that is NULL a FIFO. */
static int make_special(const struct copy *c, int dir, const char *name, const char *target,
                        mode_t mode)
{
    if ((target != NULL ? symlinkat(target, dir, name) : mkfifoat(dir, name, mode)) < 0)
        return -1;
    return c->uid == (uid_t)-1 ? 0 : fchownat(dir, name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW);
}

static int place_special(const struct copy *c, int dir, const char *name, const char *target,
                         mode_t mode)
{
    char temp[PATH_BESIDE_ROOM];
    int saved;

    if (make_special(c, dir, name, target, mode) == 0)
        return 0;
    if (errno != EEXIST || !c->overwrite)
        return -1;
    path_beside(temp);
    if (make_special(c, dir, temp, target, mode) == 0 && renameat(dir, temp, dir, name) == 0)
        return 0;
    saved = errno;
    unlinkat(dir, temp, 0);
    errno = saved;
    return -1;
}

static int copy_link(struct copy *c, int from_dir, const char *from, int to_dir, const char *to,
                     const struct names *n, struct err *e)
{
    char target[FILE_PATH_MAX + 1];
    ssize_t len = readlinkat(from_dir, from, target, FILE_PATH_MAX);

    if (len < 0)
        return lost(n, e);
    target[len] = '\0';
    return place_special(c, to_dir, to, target, 0) < 0 ? err_path(e, "%.200s", n->to) : 0;
}

static int copy_names(struct copy *c, int in, int out, const struct names *n, unsigned depth,
                      struct err *e)
{
    autofree char **names = NULL;
    autofree void *block = NULL;
    char from[PATH_ROOM], to[PATH_ROOM];
    size_t count;

    names = walk_names(in, &count, &block);
    if (names == NULL) /* ENOENT: removed meanwhile, so it is empty */
        return errno == ENOENT ? 0 : err_path(e, "%.200s", n->from);
    for (size_t i = 0; i < count; i++) {
        if (snprintf(from, sizeof(from), "%s/%s", n->from, names[i]) >= (int)sizeof(from) ||
            snprintf(to, sizeof(to), "%s/%s", n->to, names[i]) >= (int)sizeof(to))
            return err_set(e, ERR_LIMIT, "%.200s: paths below are too long", n->from);
        if (copy_any(c, in, names[i], out, names[i], &(struct names){from, to}, depth + 1, e) < 0)
            return -1;
    }
    return 0;
}

static int copy_dir(struct copy *c, int from_dir, const char *from, int to_dir, const char *to,
                    const struct names *n, unsigned depth, struct err *e)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    autofd int in = openat(from_dir, from, flags), out = -1;
    struct stat st;
    bool made;

    if (depth > WALK_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "%.200s: more than %u directories deep", n->from,
                       WALK_DEPTH_MAX);
    if (in < 0 || fstat(in, &st) < 0)
        return lost(n, e);
    made = mkdirat(to_dir, to, 0700) == 0;
    if (!made && !(errno == EEXIST && c->overwrite))
        return err_path(e, "%.200s", n->to);
    out = openat(to_dir, to, flags);
    if (out < 0)
        return err_path(e, "%.200s", n->to);
    if (copy_names(c, in, out, n, depth, e) < 0)
        return -1;
    tmpfile_copy_xattrs(in, out);
    return made ? set_attributes(c, out, &st, n->to, e) : 0;
}

static int copy_one(struct copy *c, int from_dir, const char *from, int to_dir, const char *to,
                    const struct names *n, unsigned depth, struct err *e)
{
    struct stat st;

    if (c->stop != NULL && *c->stop != 0)
        return err_set(e, ERR_GONE, "the client went away");
    if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return lost(n, e);
    if (S_ISREG(st.st_mode))
        return copy_file(c, from_dir, from, to_dir, to, n, e);
    if (S_ISDIR(st.st_mode))
        return copy_dir(c, from_dir, from, to_dir, to, n, depth, e);
    if (S_ISLNK(st.st_mode))
        return copy_link(c, from_dir, from, to_dir, to, n, e);
    if (S_ISFIFO(st.st_mode))
        return place_special(c, to_dir, to, NULL, st.st_mode & 0777) < 0
                   ? err_path(e, "%.200s", n->to)
                   : 0;
    return err_set(e, ERR_INVALID, "%.200s: sockets and devices cannot be copied", n->from);
}

/* Files that are removed meanwhile are skipped; for the top itself that is an error. */
static int copy_any(struct copy *c, int from_dir, const char *from, int to_dir, const char *to,
                    const struct names *n, unsigned depth, struct err *e)
{
    int r = copy_one(c, from_dir, from, to_dir, to, n, depth, e);

    if (r > 0 && depth == 0) {
        errno = ENOENT;
        return err_path(e, "%.200s", n->from);
    }
    c->count += r == 0;
    return r < 0 ? -1 : 0;
}

int copy_tree(struct copy *c, int from_dir, const char *from, const char *from_path, int to_dir,
              const char *to, const char *to_path, struct err *e)
{
    return copy_any(c, from_dir, from, to_dir, to, &(struct names){from_path, to_path}, 0, e);
}
