/* vault_dir.c - archives in a directory: a file per blob.
 *
 *   SPACE/chunks/HEX, SPACE/manifests/HEX     complete files only
 *   SPACE/new/RANDOM                          being written
 *
 * A file is written under a name of its own, flushed, renamed, and its directory flushed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/vault.h"
#include "mem/mem.h"

#define NEW "new"
#define DEFAULT_NAME "archives"

struct vault_dir {
    struct vault v;
    int fd;
};

static struct vault_dir *of(struct vault *v)
{
    return CONTAINER_OF(v, struct vault_dir, v);
}

/* Opens SPACE/KIND, which is made if it is missing; a new directory is durable before a file is in
 * it. */
static int open_dir(struct vault *v, const char *space, const char *kind, struct err *e)
{
    autofd int top = -1;
    int fd;

    if (mkdirat(of(v)->fd, space, 0700) < 0 ? errno != EEXIST : fsync(of(v)->fd) < 0)
        return err_sys(e, "make the directory %s of the archives", space);
    top = openat(of(v)->fd, space, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || (mkdirat(top, kind, 0700) < 0 ? errno != EEXIST : fsync(top) < 0))
        return err_sys(e, "make the directory %s/%s of the archives", space, kind);
    fd = openat(top, kind, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open the directory %s/%s of the archives", space, kind) : fd;
}

struct place {
    char space[VAULT_NAME_MAX], kind[VAULT_NAME_MAX];
    const char *name;
};

static int split(const char *name, struct place *ret, struct err *e)
{
    const char *a = strchr(name, '/'), *b = a == NULL ? NULL : strchr(a + 1, '/');

    if (b == NULL || strlen(name) >= VAULT_NAME_MAX || strstr(name, "..") != NULL)
        return err_set(e, ERR_INTERNAL, "'%.100s' is no name of an archive's file", name);
    str_fmt(ret->space, sizeof(ret->space), "%.*s", (int)(a - name), name);
    str_fmt(ret->kind, sizeof(ret->kind), "%.*s", (int)(b - a - 1), a + 1);
    ret->name = b + 1;
    return 0;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return fsync(fd);
}

static int dir_put(struct vault *v, const char *name, const void *p, size_t n, struct err *e)
{
    char random[ID_LEN + 1];
    struct place at;
    autofd int fresh = -1, dir = -1, fd = -1;

    if (split(name, &at, e) < 0 || (fresh = open_dir(v, at.space, NEW, e)) < 0 ||
        (dir = open_dir(v, at.space, at.kind, e)) < 0)
        return -1;
    id_random(random, ID_LEN);
    fd = openat(fresh, random, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "make a file of the archives");
    if (write_all(fd, p, n) == 0 && renameat(fresh, random, dir, at.name) == 0 && fsync(dir) == 0)
        return 0;
    err_sys(e, "write a file of the archives");
    unlinkat(fresh, random, 0);
    return -1;
}

static int dir_get(struct vault *v, const char *name, struct buf *to, struct err *e)
{
    autofd int fd = openat(of(v)->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    char *room;

    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "the store has no %.120s", name);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "open %s of the archives", name);
    room = buf_room(to, (size_t)st.st_size + 1);
    if (room == NULL)
        return err_set(e, ERR_INTERNAL, "%.120s is larger than it was written", name);
    for (off_t got = 0; got < st.st_size;) {
        ssize_t n = read(fd, room + got, (size_t)(st.st_size - got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read %s of the archives", name);
        if (n == 0)
            return err_set(e, ERR_INTERNAL, "%.120s became shorter while it was read", name);
        got += n;
        buf_added(to, (size_t)n);
        room = buf_room(to, (size_t)(st.st_size - got) + 1);
    }
    return 0;
}

static int dir_remove(struct vault *v, const char *name, struct err *e)
{
    if (unlinkat(of(v)->fd, name, 0) < 0 && errno != ENOENT)
        return err_sys(e, "remove %s of the archives", name);
    return 0;
}

/* What a killed front left half written. */
static void empty_new(struct vault *v, const char *space)
{
    struct err ignored;
    int fd = open_dir(v, space, NEW, &ignored);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (d == NULL) {
        own_close(&fd);
        return;
    }
    for (struct dirent *de; (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.')
            unlinkat(fd, de->d_name, 0);
    closedir(d);
}

static int dir_list(struct vault *v, const char *space, const char *kind,
                    int (*each)(void *arg, const char *name, struct err *e), void *arg,
                    struct err *e)
{
    int fd = open_dir(v, space, kind, e), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (d == NULL) {
        own_close(&fd);
        return fd < 0 ? -1 : err_sys(e, "list the archives");
    }
    empty_new(v, space);
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.')
            r = each(arg, de->d_name, e);
    closedir(d);
    return r;
}

static void dir_free(struct vault *v)
{
    struct vault_dir *d = of(v);

    drop_fd(&d->fd);
    free(d);
}

static const struct vault_kind kind_dir = {.name = "directory",
                                           .put = dir_put,
                                           .get = dir_get,
                                           .remove = dir_remove,
                                           .list = dir_list,
                                           .free = dir_free};

int vault_dir_open(const char *path, int state_fd, struct vault **ret, struct err *e)
{
    bool own = *path == '\0';
    struct vault_dir *d;
    int fd;

    if (own && mkdirat(state_fd, DEFAULT_NAME, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make DIR/front/" DEFAULT_NAME);
    fd = own ? openat(state_fd, DEFAULT_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
             : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open the directory of archives %s", own ? "DIR/front/archives" : path);
    if (!own && faccessat(fd, ".", R_OK | W_OK | X_OK, 0) < 0) {
        err_sys(e, "the directory of archives %.200s: user `cove` must be able to write there",
                path);
        close(fd);
        return -1;
    }
    d = mem_zeroed(1, sizeof(*d));
    d->v = (struct vault){.kind = &kind_dir, .refs = 1};
    d->fd = fd;
    *ret = &d->v;
    return 0;
}
