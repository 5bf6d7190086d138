/* write.c - see file.h: a small file, written in place.
 *
 * Its inode, mode, links and owner stay, and a watch sees an ordinary write. Before the first
 * byte is written all bytes are here, and it is known that the disk has room for them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/own.h"
#include "base/xattr.h"
#include "init/files/file.h"

/* errno EXDEV means: cove-helper has to do it. */
static int elsewhere(void)
{
    errno = EXDEV;
    return -1;
}

/* ---- a new file ---- */

/* Makes the missing directories above it. */
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

/* Removes a file that could not be filled, unless the name belongs to another file by now. */
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

/* Before the first byte: the mode may keep others from reading it. */
static int set_mode(int fd, const struct init_write *m)
{
    return m->mode == FILE_MODE_NONE ? 0 : fchmod(fd, m->mode & 01777);
}

/* After the last byte: every write clears setuid and setgid. */
static int set_ids(int fd, const struct init_write *m)
{
    return m->mode == FILE_MODE_NONE || (m->mode & 06000) == 0 ? 0 : fchmod(fd, m->mode & 07777);
}

/* The fd of its directory is kept: the file is made, filled and, on failure, removed there,
 * wherever the path leads meanwhile. */
static int make(const struct place *p, const struct init_write *m, struct stat *st)
{
    bool as_root = (m->flags & INIT_WRITE_ROOT) != 0;
    const char *name = strrchr(p->path, '/') + 1;
    autofd int parent = -1, fd = -1;
    char dir[FILE_PATH_MAX + 1];

    if (*name == '\0') { /* "name/" can only be a directory */
        errno = EISDIR;
        return -1;
    }
    if ((m->flags & INIT_WRITE_PARENTS) != 0 && make_parents(p, as_root) < 0)
        return -1;
    strcpy(dir, p->path);
    dir[name - p->path] = '\0'; /* with its slash, so that "/" is one */
    parent = place_open(p, dir, O_PATH | O_DIRECTORY, 0);
    if (parent < 0)
        return -1;
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) /* a dangling link, or made meanwhile */
        return elsewhere();
    if (fd < 0)
        return -1;
    if ((as_root && fchown(fd, p->user.uid, p->user.gid) < 0) || set_mode(fd, m) < 0 ||
        label(fd, m) < 0 || write_all(fd, m->data.p, m->data.len, 0) < 0 || set_ids(fd, m) < 0) {
        unmake(parent, name, fd);
        return -1;
    }
    return fstat(fd, st);
}

/* ---- an existing file ---- */

#define BLOCK 4096u
#define SPARE (2 * BLOCK) /* for the blocks at both ends that are not whole */

/* One block is written whole or not at all, several are not: on a full disk a part would be
 * written, and restoring the old bytes needs room too (btrfs reserves space for every write,
 * also over dirty data). So the same bytes are first written to a file without a name; when it
 * is closed its room is free for us, unless another process writes at that very moment. */
static int has_room(const struct place *p, const struct init_write *m, const struct stat *was)
{
    static const char zero[SPARE];
    autofd int fd = -1;
    struct err e;
    int saved = 0;

    if ((m->flags & INIT_WRITE_APPEND) == 0 && m->data.len <= BLOCK &&
        m->data.len >= (uint64_t)was->st_size)
        return 0;
    place_leave(); /* the user may not be allowed to create files in / */
    fd = place_open(p, "/", O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0 && (errno == ENOSPC || errno == EDQUOT)) /* else no O_TMPFILE here: no probe */
        saved = errno;
    if (fd >= 0 && (write_all(fd, m->data.p, m->data.len, 0) < 0 ||
                    write_all(fd, zero, sizeof(zero), m->data.len) < 0))
        saved = errno;
    drop_fd(&fd);
    if (place_enter(p, (m->flags & INIT_WRITE_ROOT) != 0, &e) < 0)
        return elsewhere();
    errno = saved;
    return saved != 0 ? -1 : 0;
}

/* O_APPEND: cove-helper and processes inside may append at the same time. */
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

/* Not a large one, even if it becomes small: opening it for writing copies a template's file
 * whole to the disk. */
static int change(const struct place *p, const struct init_write *m, struct stat *st)
{
    autofd int fd = -1;

    if ((uint64_t)st->st_size > INIT_FILE_MAX)
        return elsewhere();
    fd = place_open(p, p->path, O_RDWR, 0);
    if (fd < 0 && errno == EACCES) /* may be written but not read */
        return elsewhere();
    if (fd < 0 || fstat(fd, st) < 0)
        return -1;
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size > INIT_FILE_MAX)
        return elsewhere();
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) /* a helper writes it, and a helper can wait */
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
        return err_set(e, ERR_PRECONDITION, "%.200s: the file exists already", p->path);
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
