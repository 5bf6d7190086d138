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

/* A new file with a random name, for kernels before 6.3. */
static int make_beside(int dir, char temp[PATH_BESIDE_ROOM])
{
    path_beside(temp);
    return openat(dir, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int tmpfile_open(int dir, const char *path)
{
    autofd int fd = openat(dir, path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), at = -1;
    char temp[PATH_BESIDE_ROOM];

    if (fd < 0 && errno == EOPNOTSUPP) {
        at = openat(dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (at < 0 || (fd = make_beside(at, temp)) < 0 || unlinkat(at, temp, 0) < 0)
            return -1;
    }
    return take_fd(&fd);
}

/* Gives a copy of the file that name, and makes `fd` refer to the copy. */
static int link_copy(int fd, int dir, const char *path)
{
    const char *name = path_name(path);
    char parent[PATH_ROOM], temp[PATH_BESIDE_ROOM];
    autofd int at = -1, out = -1;
    struct timespec times[2];
    struct stat st;
    int saved;

    if (snprintf(parent, sizeof(parent), "%.*s.", (int)(name - path), path) >=
        (int)sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    at = openat(dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 || fstat(fd, &st) < 0 || (out = make_beside(at, temp)) < 0)
        return -1;
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    if (inplace_replace(fd, out) < 0)
        goto failed;
    tmpfile_copy_xattrs(fd, out);
    /* the owner first: chown() clears set-id bits */
    if (fchown(out, st.st_uid, st.st_gid) == 0 && fchmod(out, st.st_mode & 07777) == 0 &&
        futimens(out, times) == 0 && renameat2(at, temp, at, name, RENAME_NOREPLACE) == 0)
        return dup3(out, fd, O_CLOEXEC) < 0 ? -1 : 0;
failed:
    saved = errno;
    unlinkat(at, temp, 0);
    errno = saved;
    return -1;
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
