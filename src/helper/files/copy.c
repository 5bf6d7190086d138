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
#include "helper/tree/where.h"
#include "wire/file.h"

/* One entry to copy. */
struct pair {
    int from_dir, to_dir;
    const char *from, *to;           /* names in those directories */
    const char *from_path, *to_path; /* for messages */
    unsigned depth;
};

/* After a failure on the source. 1: it was removed meanwhile, and is skipped; the top itself must
 * exist. */
static int lost(const struct pair *p, struct err *e)
{
    return errno == ENOENT && p->depth > 0 ? 1 : err_path(e, "%.200s", p->from_path);
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

/* What becomes a name in the target directory: a complete file, or if `fd` is -1 a link, or if
 * `target` is NULL a FIFO. */
struct thing {
    int fd;
    const char *target;
    mode_t mode;
};

static int make(const struct copy *c, int dir, const char *name, const struct thing *t)
{
    if (t->fd >= 0)
        return tmpfile_link(t->fd, dir, name);
    if ((t->target != NULL ? symlinkat(t->target, dir, name) : mkfifoat(dir, name, t->mode)) < 0)
        return -1;
    return c->uid == (uid_t)-1 ? 0 : fchownat(dir, name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW);
}

/* An existing file is replaced by a rename, in one step. */
static int place(const struct copy *c, const struct pair *p, const struct thing *t, struct err *e)
{
    char temp[PATH_BESIDE_ROOM];
    int saved;

    if (make(c, p->to_dir, p->to, t) == 0)
        return 0;
    if (errno != EEXIST || !c->overwrite)
        return err_path(e, "%.200s", p->to_path);
    path_beside(temp);
    if (make(c, p->to_dir, temp, t) == 0 && renameat(p->to_dir, temp, p->to_dir, p->to) == 0)
        return 0;
    saved = errno;
    unlinkat(p->to_dir, temp, 0);
    errno = saved;
    return err_path(e, "%.200s", p->to_path);
}

static int copy_file(struct copy *c, const struct pair *p, struct err *e)
{
    autofd int in = where_open_file(p->from_dir, p->from, O_NOFOLLOW), out = -1;
    struct stat st;

    if (in < 0 || fstat(in, &st) < 0)
        return lost(p, e);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFLICT, "%.200s: changed while it was copied", p->from_path);
    out = tmpfile_open(p->to_dir, ".");
    if (out < 0 || inplace_replace(in, out) < 0)
        return err_path(e, "%.200s", p->to_path);
    tmpfile_copy_xattrs(in, out);
    if (set_attributes(c, out, &st, p->to_path, e) < 0 ||
        place(c, p, &(struct thing){.fd = out}, e) < 0)
        return -1;
    c->bytes += (uint64_t)st.st_size;
    return 0;
}

static int copy_entry(struct copy *c, const struct pair *p, struct err *e);

static int copy_dir(struct copy *c, const struct pair *p, struct err *e)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    autofd int in = openat(p->from_dir, p->from, flags), out = -1;
    autofree char **names = NULL;
    autofree void *block = NULL;
    char from_path[PATH_ROOM], to_path[PATH_ROOM];
    struct stat st;
    size_t count = 0;
    bool made;

    if (p->depth > WALK_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "%.200s: more than %u directories deep", p->from_path,
                       WALK_DEPTH_MAX);
    if (in < 0 || fstat(in, &st) < 0)
        return lost(p, e);
    made = mkdirat(p->to_dir, p->to, 0700) == 0;
    if (!made && !(errno == EEXIST && c->overwrite))
        return err_path(e, "%.200s", p->to_path);
    out = openat(p->to_dir, p->to, flags);
    if (out < 0)
        return err_path(e, "%.200s", p->to_path);
    names = walk_names(in, &count, &block);
    if (names == NULL && errno != ENOENT) /* ENOENT: removed meanwhile, so it is empty */
        return err_path(e, "%.200s", p->from_path);
    for (size_t i = 0; names != NULL && i < count; i++) {
        struct pair next = {in, out, names[i], names[i], from_path, to_path, p->depth + 1};

        if (snprintf(from_path, PATH_ROOM, "%s/%s", p->from_path, names[i]) >= (int)PATH_ROOM ||
            snprintf(to_path, PATH_ROOM, "%s/%s", p->to_path, names[i]) >= (int)PATH_ROOM)
            return err_set(e, ERR_LIMIT, "%.200s: paths below are too long", p->from_path);
        if (copy_entry(c, &next, e) < 0)
            return -1;
    }
    tmpfile_copy_xattrs(in, out);
    return made ? set_attributes(c, out, &st, p->to_path, e) : 0;
}

/* 1: it was removed meanwhile. */
static int copy_entry(struct copy *c, const struct pair *p, struct err *e)
{
    static char target[FILE_PATH_MAX + 1]; /* not on the stack: this function recurses */
    struct stat st;
    ssize_t len;
    int r;

    if (c->stop != NULL && *c->stop != 0)
        return err_set(e, ERR_GONE, "the client went away");
    if (fstatat(p->from_dir, p->from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return lost(p, e);
    if (S_ISREG(st.st_mode)) {
        r = copy_file(c, p, e);
    } else if (S_ISDIR(st.st_mode)) {
        r = copy_dir(c, p, e);
    } else if (S_ISLNK(st.st_mode)) {
        len = readlinkat(p->from_dir, p->from, target, FILE_PATH_MAX);
        if (len < 0)
            return lost(p, e);
        target[len] = '\0';
        r = place(c, p, &(struct thing){.fd = -1, .target = target}, e);
    } else if (S_ISFIFO(st.st_mode)) {
        r = place(c, p, &(struct thing){.fd = -1, .mode = st.st_mode & 0777}, e);
    } else {
        r = err_set(e, ERR_INVALID, "%.200s: sockets and devices cannot be copied", p->from_path);
    }
    c->count += r == 0;
    return r;
}

int copy_tree(struct copy *c, int from_dir, const char *from, const char *from_path, int to_dir,
              const char *to, const char *to_path, struct err *e)
{
    return copy_entry(c, &(struct pair){from_dir, to_dir, from, to, from_path, to_path, 0}, e);
}
