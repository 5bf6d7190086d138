/* write.c - see file.h: a small file, written in place.
 *
 * Its inode, mode, links and owner stay, and who watches it sees a write as of any
 * program. All bytes are at hand before the first is written, and whether the disk has
 * room for them is known. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/own.h"
#include "base/xattr.h"
#include "init/file.h"

/* What ends in errno EXDEV is for cove-helper. */
static int elsewhere(void)
{
    errno = EXDEV;
    return -1;
}

/* ---- where nothing was ---- */

/* The directories above, one after the other, those that are missing. */
static int make_parents(const struct place *p, bool as_root)
{
    char path[FILE_PATH_MAX + 1];

    strcpy(path, p->path);
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        autofd int parent = -1;
        char *name;

        *at = '\0';
        name = strrchr(path, '/');
        *name = '\0';
        parent = place_open(p, name == path ? "/" : path, O_PATH | O_DIRECTORY, 0);
        *name++ = '/';
        if (parent < 0)
            return -1;
        if (*name != '\0' && mkdirat(parent, name, 0755) == 0) {
            if (as_root &&
                fchownat(parent, name, p->user.uid, p->user.gid, AT_SYMLINK_NOFOLLOW) < 0)
                return -1;
        } else if (*name != '\0' && errno != EEXIST) {
            return -1;
        }
        *at = '/';
    }
    return 0;
}

static int write_all(int fd, const char *p, size_t n, off_t at)
{
    size_t done = 0;

    while (done < n) {
        ssize_t w = pwrite(fd, p + done, n - done, at + (off_t)done);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            errno = w == 0 ? ENOSPC : errno;
            return -1;
        }
        done += (size_t)w;
    }
    return 0;
}

/* The directory it is to be in, and its name there. Held from here on: what is made in it is
 * filled and, if need be, taken away in it, wherever the path leads by then. */
static int open_parent(const struct place *p, const char **ret_name)
{
    char path[FILE_PATH_MAX + 1];
    char *slash;

    strcpy(path, p->path);
    slash = strrchr(path, '/');
    *ret_name = p->path + (slash + 1 - path);
    slash[slash == path] = '\0';
    return place_open(p, path, O_PATH | O_DIRECTORY, 0);
}

/* The name goes again if it could not be filled, unless somebody has put another there. */
static void unmake(int parent, const char *name, int fd)
{
    struct stat mine, there;
    int saved = errno;

    if (fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &mine) == 0 &&
        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
        unlinkat(parent, name, 0);
    errno = saved;
}

static int label(int fd, const struct init_write *m)
{
    return *m->xattr_prefix == '\0' ? 0 : xattr_replace(fd, m->xattr_prefix, m->xattrs);
}

/* Before a byte is there: nobody else is to read them. */
static int set_mode(int fd, const struct init_write *m)
{
    return m->mode == FILE_MODE_NONE ? 0 : fchmod(fd, m->mode & 01777);
}

/* And behind the last, since every write takes these bits away. */
static int set_ids(int fd, const struct init_write *m)
{
    return m->mode == FILE_MODE_NONE || (m->mode & 06000) == 0 ? 0 : fchmod(fd, m->mode & 07777);
}

static int fill_new(const struct place *p, const struct init_write *m, int fd)
{
    if ((m->flags & INIT_WRITE_ROOT) != 0 && fchown(fd, p->user.uid, p->user.gid) < 0)
        return -1;
    if (set_mode(fd, m) < 0 || label(fd, m) < 0)
        return -1;
    return write_all(fd, m->data.p, m->data.len, 0) < 0 ? -1 : set_ids(fd, m);
}

static int make(const struct place *p, const struct init_write *m, struct stat *st)
{
    autofd int parent = -1, fd = -1;
    const char *name;

    if (p->path[strlen(p->path) - 1] == '/') { /* only a directory can be meant */
        errno = EISDIR;
        return -1;
    }
    if ((m->flags & INIT_WRITE_PARENTS) != 0 &&
        make_parents(p, (m->flags & INIT_WRITE_ROOT) != 0) < 0)
        return -1;
    parent = open_parent(p, &name);
    if (parent < 0)
        return -1;
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) /* a link that leads nowhere, or somebody was faster */
        return elsewhere();
    if (fd < 0)
        return -1;
    if (fill_new(p, m, fd) == 0)
        return fstat(fd, st);
    unmake(parent, name, fd);
    return -1;
}

/* ---- over what is there ---- */

#define BLOCK 4096u
#define SPARE (2 * BLOCK) /* for the blocks at both ends that are not whole */

/* A block is written whole or not at all, and what is more is not: on a full disk a part
 * of it would be there, and putting the old bytes back wants room too (btrfs reserves
 * for every write, also over what is dirty). So the same is written to a file without a
 * name first; it goes, and its room is ours, but for who writes in that very moment. */
static int probe(const struct place *p, const struct init_write *m)
{
    static const char zero[SPARE];
    autofd int fd = -1;

    place_leave(); /* the user need not be allowed to make files there */
    fd = place_open(p, "/", O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0 && errno != ENOSPC && errno != EDQUOT)
        return 0; /* a disk without such files: it is tried without */
    if (fd < 0 || write_all(fd, m->data.p, m->data.len, 0) < 0 ||
        write_all(fd, zero, sizeof(zero), m->data.len) < 0)
        return -1;
    return 0;
}

static int has_room(const struct place *p, const struct init_write *m, const struct stat *was)
{
    bool as_root = (m->flags & INIT_WRITE_ROOT) != 0;
    struct err e;

    if ((m->flags & INIT_WRITE_APPEND) == 0 && m->data.len <= BLOCK &&
        m->data.len >= (uint64_t)was->st_size)
        return 0;
    if (probe(p, m) < 0) {
        int saved = errno;

        if (place_enter(p, as_root, &e) < 0)
            return elsewhere();
        errno = saved;
        return -1;
    }
    return place_enter(p, as_root, &e) < 0 ? elsewhere() : 0;
}

/* At what is the end by then: cove-helper appends too, and whoever else is inside. */
static int append(int fd, const struct init_write *m, const struct stat *was)
{
    if (fcntl(fd, F_SETFL, O_APPEND) < 0)
        return -1;
    if (write_all(fd, m->data.p, m->data.len, was->st_size) == 0)
        return 0;
    if (ftruncate(fd, was->st_size) < 0)
        errno = ENOSPC;
    return -1;
}

static int overwrite(int fd, const struct init_write *m, const struct stat *was)
{
    size_t size = (size_t)was->st_size, keep = size < m->data.len ? size : m->data.len;
    autofree char *old = malloc(keep + 1);
    int saved;

    if (old == NULL || pread(fd, old, keep, 0) != (ssize_t)keep)
        return elsewhere();
    if (write_all(fd, m->data.p, m->data.len, 0) == 0)
        return ftruncate(fd, (off_t)m->data.len);
    saved = errno;
    if (write_all(fd, old, keep, 0) < 0 || ftruncate(fd, was->st_size) < 0)
        saved = EIO;
    errno = saved;
    return -1;
}

/* A large one is nothing for us even if it becomes small: opening it to write copies a
 * template's file whole to the disk. */
static int change(const struct place *p, const struct init_write *m, struct stat *st)
{
    autofd int fd = -1;

    if ((uint64_t)st->st_size > INIT_FILE_MAX)
        return elsewhere();
    fd = place_open(p, p->path, O_RDWR, 0);
    if (fd < 0 && errno == EACCES) /* one that may be written and not read */
        return elsewhere();
    if (fd < 0 || fstat(fd, st) < 0)
        return -1;
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size > INIT_FILE_MAX)
        return elsewhere();
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) /* a helper is at it, and can wait for another */
        return elsewhere();
    if (fstat(fd, st) < 0)
        return -1;
    if (has_room(p, m, st) < 0)
        return -1;
    if (set_mode(fd, m) < 0 || label(fd, m) < 0)
        return -1;
    if (((m->flags & INIT_WRITE_APPEND) != 0 ? append : overwrite)(fd, m, st) < 0)
        return -1;
    return set_ids(fd, m) < 0 ? -1 : fstat(fd, st);
}

static int write_it(const struct place *p, const struct init_write *m, struct stat *st,
                    struct err *e)
{
    autofd int at = place_open(p, p->path, O_PATH, 0);
    int r;

    if (at < 0 && errno != ENOENT)
        return err_path(e, "%.200s", p->path);
    if (at >= 0 && (m->flags & INIT_WRITE_NEW) != 0)
        return err_set(e, ERR_PRECONDITION, "%.200s: there is one already", p->path);
    if (at >= 0 && fstat(at, st) == 0 && !S_ISREG(st->st_mode))
        return place_not_regular(p, st->st_mode, e);
    r = at < 0 ? make(p, m, st) : change(p, m, st);
    return r < 0 ? err_path(e, "%.200s", p->path) : 0;
}

int file_write(int root, const struct init_write *m, struct file_answer *ret, struct err *e)
{
    struct stat st;
    int r;

    ret->file = (struct init_file){0};
    ret->target[0] = '\0';
    if (place_find(root, m->user, m->path, &ret->place, e) < 0 ||
        place_enter(&ret->place, (m->flags & INIT_WRITE_ROOT) != 0, e) < 0)
        return -1;
    r = write_it(&ret->place, m, &st, e);
    place_leave();
    if (r < 0 && e->sys == EXDEV) {
        ret->file = (struct init_file){.elsewhere = 1};
        return 0;
    }
    if (r == 0)
        file_describe(ret, &st, true);
    return r;
}
