/* file.c - see file.h: looking, reading, opening. */
#include "init/file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

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

/* Looked at first: opening a pipe would wake who waits at its other end. */
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

/* One that changed its size meanwhile is not small any more, or not what it was. */
static int read_small(int fd, const struct stat *st, struct file_answer *a, struct err *e)
{
    size_t got = 0, size = (size_t)st->st_size;
    ssize_t n = 1;

    if ((uint64_t)st->st_size > INIT_FILE_MAX)
        return 0;
    while (got < size && (n = pread(fd, a->data + got, size - got, (off_t)got)) > 0)
        got += (size_t)n;
    if (n < 0)
        return err_path(e, "%.200s", a->place.path);
    a->file.has_data = got == size;
    a->file.data = (struct wire_bytes){a->data, (uint32_t)got};
    return 0;
}

static int look(const struct init_look *m, struct file_answer *a, struct stat *st, struct err *e)
{
    const struct place *p = &a->place;
    bool read = (m->flags & INIT_LOOK_READ) != 0;
    bool follow = read || (m->flags & INIT_LOOK_FOLLOW) != 0;
    autofd int fd = -1;
    ssize_t n;

    if (read) {
        fd = open_regular(p, st, e);
        return fd < 0 ? -1 : read_small(fd, st, a, e);
    }
    fd = place_open(p, p->path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0);
    if (fd < 0 || fstat(fd, st) < 0)
        return err_path(e, "%.200s", p->path);
    if (S_ISLNK(st->st_mode) && (n = readlinkat(fd, "", a->target, FILE_PATH_MAX)) > 0)
        a->target[n] = '\0';
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
