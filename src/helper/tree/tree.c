/* tree.c - see tree.h. */
#include "helper/tree/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "wire/file.h"

/* A sandbox has other mounts only where there is nothing to find (/proc, /dev); a machine has them
 * anywhere. Init says which it is (init/run/policy.h). */
static uint64_t stay_on_mount(void)
{
    static int cross = -1;

    if (cross < 0)
        cross = getenv(HELPER_MOUNTS) != NULL;
    return cross ? 0 : RESOLVE_NO_XDEV;
}

int tree_open(int fd, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | stay_on_mount()};

    return (int)syscall(SYS_openat2, fd, *path == '\0' ? "." : path, &how, sizeof(how));
}

void tree_init(struct tree *t, int fd, const int *lower, unsigned nlower)
{
    *t = (struct tree){.fd = fd, .lower = lower, .nlower = nlower, .parent_fd = -1};
}

void tree_close(struct tree *t)
{
    drop_fd(&t->parent_fd);
}

/* Creates directory `name` in `parent`, with owner and mode as in the uppermost lower layer that
 * has it; `path` is its path from the top. */
static int make_dir(struct tree *t, int parent, const char *name, const char *path, struct err *e)
{
    struct stat st;

    if (mkdirat(parent, name, 0755) < 0)
        return errno == EEXIST ? 0 : say_sys(e, "make", path);
    for (unsigned i = t->nlower; i-- > 0;) {
        autofd int fd = tree_open(t->lower[i], path, O_PATH | O_NOFOLLOW);

        if (fd < 0 || fstat(fd, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode) &&
            (fchownat(parent, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
             fchmodat(parent, name, st.st_mode & 07777, 0) < 0))
            return say_sys(e, "make", path);
        break;
    }
    return 0;
}

/* Creates and opens part by part, each in the fd of the one before: the tenant may replace a
 * directory by a link meanwhile. */
static int make_dirs(struct tree *t, char *path, struct err *e)
{
    autofd int at = tree_open(t->fd, "", O_PATH | O_DIRECTORY);

    for (char *name = path, *slash; name != NULL; name = slash) {
        int fd;

        slash = strchr(name, '/');
        if (slash != NULL)
            *slash = '\0';
        fd = tree_open(at, name, O_PATH | O_DIRECTORY);
        if (fd < 0 && errno == ENOENT) {
            if (make_dir(t, at, name, path, e) < 0)
                return -1;
            fd = tree_open(at, name, O_PATH | O_DIRECTORY);
        }
        if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
            return err_set(e, ERR_INVALID, "'%.200s' is a link or a file, and something is in it",
                           path);
        if (fd < 0)
            return say_sys(e, "open", path);
        drop_fd(&at);
        at = fd;
        if (slash != NULL)
            *slash++ = '/';
    }
    return take_fd(&at);
}

int tree_parent(struct tree *t, const char *path, struct err *e)
{
    size_t n = (size_t)(path_name(path) - path);
    char parent[PATH_ROOM];
    int fd;

    memcpy(parent, path, n);
    parent[n > 0 ? n - 1 : 0] = '\0';
    if (t->parent_fd >= 0 && strcmp(parent, t->parent) == 0)
        return t->parent_fd;
    fd = tree_open(t->fd, parent, O_PATH | O_DIRECTORY);
    if (fd < 0 && (fd = make_dirs(t, parent, e)) < 0)
        return -1;
    drop_fd(&t->parent_fd);
    t->parent_fd = fd;
    str_fmt(t->parent, sizeof(t->parent), "%s", parent);
    return fd;
}

/* A whiteout of overlayfs is a character device 0/0; a user namespace may create that one. */
static int mark(int dir, const char *name)
{
    return mknodat(dir, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -1 : 0;
}

int tree_whiteout(struct tree *t, const char *path, struct err *e)
{
    int parent = t->nlower == 0 ? 0 : tree_parent(t, path, e);
    struct stat st;

    if (t->nlower == 0)
        return 0; /* there are no layers below */
    if (parent < 0)
        return -1;
    /* removed and created again in one layer: hide what the layers below have in it */
    if (fstatat(parent, path_name(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return tree_opaque(t, path, e);
    return mark(parent, path_name(path)) < 0 ? say_sys(e, "mark as removed", path) : 0;
}

/* Marks everything as removed that the layers below have in directory `path`, except what this
 * layer has there itself. */
static int hide(struct tree *t, const char *path, unsigned depth, struct err *e)
{
    autofd int dir = tree_open(t->fd, path, O_PATH | O_DIRECTORY);
    char sub[PATH_ROOM];
    struct stat st;
    int r = 0;

    if (dir < 0 || depth > PATH_DEPTH_MAX)
        return say_sys(e, "open", path);
    for (unsigned i = 0; r == 0 && i < t->nlower; i++) {
        autofd int fd = tree_open(t->lower[i], path, O_RDONLY | O_DIRECTORY);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (d == NULL)
            continue; /* this layer has no such directory */
        take_fd(&fd);
        for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;) {
            const char *name = de->d_name;

            if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                strlen(path) + strlen(name) + 2 > sizeof(sub)) /* too long for any archive */
                continue;
            if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                r = mark(dir, name) < 0 ? say_sys(e, "mark as removed", name) : 0;
            } else if (S_ISDIR(st.st_mode)) {
                str_fmt(sub, sizeof(sub), "%s%s%s", path, *path != '\0' ? "/" : "", name);
                r = hide(t, sub, depth + 1, e);
            }
        }
        closedir(d);
    }
    return r;
}

int tree_opaque(struct tree *t, const char *path, struct err *e)
{
    char inside[PATH_ROOM + 2];

    if (t->nlower == 0)
        return 0;
    /* "/.": so that tree_parent() opens the directory itself */
    snprintf(inside, sizeof(inside), "%s/.", path);
    if (*path != '\0' && strlen(path) + 3 < PATH_ROOM && tree_parent(t, inside, e) < 0)
        return -1;
    return hide(t, path, 0, e);
}

static int remove_in(int fd, unsigned depth, struct err *e);

static int remove_one(int dir, const char *name, unsigned depth, struct err *e)
{
    int fd;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return say_sys(e, "remove", name);
    if (depth >= TREE_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "the tree is more than %u directories deep", TREE_DEPTH_MAX);
    fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0)
        return say_sys(e, "remove", name);
    if (remove_in(fd, depth + 1, e) < 0)
        return -1;
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? say_sys(e, "remove", name) : 0;
}

/* Takes the fd. */
static int remove_in(int fd, unsigned depth, struct err *e)
{
    DIR *d = fdopendir(fd);
    int r = 0;

    if (d == NULL) {
        close(fd);
        return say_sys(e, "list", "a directory to remove");
    }
    fchmod(fd, 0700); /* our own directories may have any mode; other failures show below */
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
            r = remove_one(fd, de->d_name, depth, e);
    closedir(d);
    return r;
}

int tree_remove(int dir, const char *name, struct err *e)
{
    return remove_one(dir, name, 0, e);
}
