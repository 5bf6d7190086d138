/* tmpfile.c - see tmpfile.h. */
#include "helper/files/tmpfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/files/inplace.h"
#include "helper/tree/path.h"
#include "wire/file.h"

void tmpfile_copy_xattrs(int from, int to)
{
    static char names[FILE_XATTR_MAX], value[FILE_XATTR_MAX];
    ssize_t len = flistxattr(from, names, sizeof(names)), n;

    for (char *at = names; len > 0 && at < names + len; at += strlen(at) + 1)
        if (strncmp(at, "user.", 5) == 0 && (n = fgetxattr(from, at, value, sizeof(value))) >= 0 &&
            fsetxattr(to, at, value, (size_t)n, 0) < 0)
            return; /* a filesystem without them */
}

/* ---- kernels before 6.3 ---- */

static int make_beside(int dir, char temp[PATH_BESIDE_ROOM])
{
    path_beside(temp);
    return openat(dir, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int open_and_forget(int dir, const char *path)
{
    autofd int at = openat(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
    char temp[PATH_BESIDE_ROOM];

    if (at < 0)
        return -1;
    fd = make_beside(at, temp);
    if (fd < 0 || unlinkat(at, temp, 0) < 0)
        return -1;
    return take_fd(&fd);
}

/* The owner first: chown() clears set-id bits. */
static int copy_all(int from, int to)
{
    struct stat st;
    struct timespec times[2];

    if (fstat(from, &st) < 0 || inplace_replace(from, to) < 0)
        return -1;
    tmpfile_copy_xattrs(from, to);
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    return fchown(to, st.st_uid, st.st_gid) < 0 || fchmod(to, st.st_mode & 07777) < 0
               ? -1
               : futimens(to, times);
}

/* Opens the parent directory of `path`. */
static int open_parent(int dir, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_ROOM];

    *ret_name = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        str_fmt(parent, sizeof(parent), ".");
    else if (snprintf(parent, sizeof(parent), "%.*s/", (int)(slash - path), path) >=
             (int)sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return openat(dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int link_copy(int fd, int dir, const char *path)
{
    const char *name;
    autofd int parent = open_parent(dir, path, &name), out = -1;
    char temp[PATH_BESIDE_ROOM];
    int saved;

    if (parent < 0 || (out = make_beside(parent, temp)) < 0)
        return -1;
    if (copy_all(fd, out) == 0 && renameat2(parent, temp, parent, name, RENAME_NOREPLACE) == 0)
        return dup3(out, fd, O_CLOEXEC) < 0 ? -1 : 0;
    saved = errno;
    unlinkat(parent, temp, 0);
    errno = saved;
    return -1;
}

/* ---- any kernel ---- */

int tmpfile_open(int dir, const char *path)
{
    int fd = openat(dir, path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd < 0 && errno == EOPNOTSUPP ? open_and_forget(dir, path) : fd;
}

int tmpfile_link(int fd, int dir, const char *path)
{
    char self[32];

    str_fmt(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, dir, path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    /* ENOENT: the kernel does not link a file whose only name was removed */
    return errno == ENOENT ? link_copy(fd, dir, path) : -1;
}
