/* unpack.c - see unpack.h. */
#include "helper/archive/unpack.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/archive/dirs.h"
#include "helper/archive/tar.h"
#include "helper/call/call.h"
#include "helper/tree/tree.h"

#define MARK ".wh."
#define MARK_OPAQUE ".wh..wh..opq"
#define MARK_OTHER ".wh..wh." /* internal files of aufs; skipped */

struct job {
    const struct unpack_opts *o;
    struct tar tar;
    struct tree tree;
    struct archive_entry *en;
    char path[PATH_ROOM]; /* of the current entry */
    struct buf marks;     /* removals, done at the end: 'o' or 'w', a path and its NUL */
    unsigned nmarks;
    struct dirs dirs;
};

static bool has(const struct job *j, unsigned flag)
{
    return (j->o->flags & flag) != 0;
}

/* ---- attributes ---- */

static void times(struct job *j, struct timespec t[2])
{
    t[0] = t[1] = (struct timespec){archive_entry_mtime(j->en), archive_entry_mtime_nsec(j->en)};
}

/* Only attributes that have a meaning in a sandbox: not trusted.*, which overlayfs uses, and
 * no security labels of another host. */
static bool is_kept(struct job *j, const char *name)
{
    return strncmp(name, "user.", 5) == 0 ||
           (has(j, UNPACK_OWNERS) && strcmp(name, "security.capability") == 0) ||
           (has(j, UNPACK_EXACT) && strncmp(name, "system.posix_acl_", 17) == 0);
}

static int clear_xattrs(struct job *j, int fd, struct err *e)
{
    static char names[64 << 10];
    ssize_t n = flistxattr(fd, names, sizeof(names));

    for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1)
        if (is_kept(j, name) && fremovexattr(fd, name) < 0)
            return say_sys(e, "remove an extended attribute of", j->path);
    return 0;
}

static int xattrs(struct job *j, int fd, struct err *e)
{
    int n = archive_entry_xattr_reset(j->en);
    const char *name;
    const void *value;
    size_t len;

    if (n > (int)UNPACK_XATTRS_MAX && !has(j, UNPACK_EXACT))
        return err_set(e, ERR_INVALID, "'%.200s' has %d extended attributes, more than %u", j->path,
                       n, UNPACK_XATTRS_MAX);
    while (archive_entry_xattr_next(j->en, &name, &value, &len) == ARCHIVE_OK) {
        if (!is_kept(j, name))
            continue;
        if (fsetxattr(fd, name, value, len, 0) < 0 && errno != ENOTSUP)
            return say_sys(e, "set an extended attribute of", j->path);
    }
    return 0;
}

static mode_t mode_of(struct job *j)
{
    return archive_entry_perm(j->en) & (has(j, UNPACK_OWNERS) ? 07777 : 0777);
}

static int set_owner(struct job *j, int fd, struct err *e)
{
    int64_t u = archive_entry_uid(j->en), g = archive_entry_gid(j->en);

    if (!has(j, UNPACK_OWNERS))
        return 0;
    if (u < 0 || g < 0 || u > UNPACK_ID_MAX || g > UNPACK_ID_MAX)
        return err_set(e, ERR_INVALID,
                       "'%.200s' belongs to %lld:%lld; the largest id in a sandbox is %u", j->path,
                       (long long)u, (long long)g, UNPACK_ID_MAX);
    if (fchownat(fd, "", (uid_t)u, (gid_t)g, AT_EMPTY_PATH) < 0)
        return say_sys(e, "set the owner of", j->path);
    return 0;
}

/* In this order: chown() clears set-id bits and capabilities, and attributes cannot be set
 * after the mode forbids writing. */
static int finish_fd(struct job *j, int fd, struct err *e)
{
    struct timespec t[2];

    times(j, t);
    if (set_owner(j, fd, e) < 0)
        return -1;
    if (xattrs(j, fd, e) < 0)
        return -1;
    if (fchmod(fd, mode_of(j)) < 0)
        return say_sys(e, "set the mode of", j->path);
    return futimens(fd, t) < 0 ? say_sys(e, "set the time of", j->path) : 0;
}

/* For links and FIFOs, which cannot be opened for reading: through an O_PATH fd, since the
 * name may have been replaced. `kind` is the type that was created. */
static int finish_at(struct job *j, int dir, const char *name, mode_t kind, struct err *e)
{
    autofd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct timespec t[2];
    struct stat st;

    times(j, t);
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != kind)
        return err_set(e, ERR_CONFLICT, "'%.200s' was replaced while it was unpacked", j->path);
    if (set_owner(j, fd, e) < 0)
        return -1;
    if (utimensat(fd, "", t, AT_EMPTY_PATH) < 0)
        return say_sys(e, "set the time of", j->path);
    return 0;
}

static int contradiction(struct job *j, struct err *e)
{
    return err_set(e, has(j, UNPACK_MERGE) ? ERR_CONFLICT : ERR_INVALID,
                   "'%.200s' is both a directory and something else", j->path);
}

/* 1 if a file of that name exists. A directory is a contradiction, as it would be within the
 * archive. */
static int look(struct job *j, int dir, const char *name, struct err *e)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return S_ISDIR(st.st_mode) ? contradiction(j, e) : 1;
}

/* An archive may contain a file twice: the later one replaces the earlier. */
static int make_way(struct job *j, int dir, const char *name, struct err *e)
{
    int there = look(j, dir, name, e);

    if (there > 0 && unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return say_sys(e, "replace", j->path);
    return there < 0 ? -1 : 0;
}

/* ---- one function for each kind of entry ---- */

/* When merging, an existing directory keeps its attributes. So does a mount point, which
 * pack.c writes as an empty directory. */
static int put_dir(struct job *j, int dir, const char *name, struct err *e)
{
    bool there = *name == '\0' || mkdirat(dir, name, 0700) < 0;
    autofd int fd = -1;
    struct timespec t[2];

    if (there && *name != '\0' && errno != EEXIST)
        return say_sys(e, "make", j->path);
    fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0 && errno == EXDEV && has(j, UNPACK_MERGE))
        return 0;
    if (fd < 0 && errno != ELOOP && errno != ENOTDIR)
        return say_sys(e, "open", j->path);
    if (fd < 0)
        return contradiction(j, e);
    if (there && has(j, UNPACK_MERGE))
        return 0;
    times(j, t);
    if (there && has(j, UNPACK_EXACT) && clear_xattrs(j, fd, e) < 0)
        return -1;
    if (set_owner(j, fd, e) < 0 || xattrs(j, fd, e) < 0)
        return -1;
    return dirs_note(&j->dirs, j->path, mode_of(j), &t[1], e);
}

static int put_bytes(struct job *j, int fd, struct err *e)
{
    int64_t size = archive_entry_size(j->en), off;
    const void *p;
    size_t n;
    int r;

    while ((r = tar_data(&j->tar, &p, &n, &off, e)) > 0) {
        if (off < 0 || off > size || (int64_t)n > size - off)
            return err_set(e, ERR_INVALID, "'%.200s' has more bytes than its header says", j->path);
        for (size_t at = 0; at < n;) {
            ssize_t w = pwrite(fd, (const char *)p + at, n - at, off + (off_t)at);

            if (w < 0)
                return say_sys(e, "write", j->path);
            at += (size_t)w;
        }
    }
    if (r == 0 && ftruncate(fd, size) < 0)
        return say_sys(e, "write", j->path);
    j->o->count->bytes += (uint64_t)size;
    return r;
}

/* An existing file stays until the new one is complete; an incomplete file is removed. */
static int put_file(struct job *j, int dir, const char *name, struct err *e)
{
    char beside[PATH_BESIDE_ROOM];
    const char *as = name;
    int there = look(j, dir, name, e);
    autofd int fd = -1;

    if (there < 0)
        return -1;
    if (there > 0) {
        path_beside(beside);
        as = beside;
    }
    fd = openat(dir, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return say_sys(e, "make", j->path);
    if (put_bytes(j, fd, e) == 0 && finish_fd(j, fd, e) == 0) {
        if (as == name || renameat(dir, as, dir, name) == 0)
            return 0;
        say_sys(e, "replace", j->path);
    }
    unlinkat(dir, as, 0);
    return -1;
}

/* The link is stored, never followed. */
static int put_symlink(struct job *j, int dir, const char *name, struct err *e)
{
    const char *target = archive_entry_symlink(j->en);

    if (target == NULL || *target == '\0' || strlen(target) >= PATH_ROOM)
        return err_set(e, ERR_INVALID, "'%.200s' is a link with an empty or too long target",
                       j->path);
    if (!has(j, UNPACK_LINKS) && !path_link_is_inside(j->path, target))
        return err_set(e, ERR_INVALID,
                       "'%.200s' is a link that leads out of the directory, to '%.100s'", j->path,
                       target);
    if (make_way(j, dir, name, e) < 0)
        return -1;
    if (symlinkat(target, dir, name) < 0)
        return say_sys(e, "link", j->path);
    return finish_at(j, dir, name, S_IFLNK, e);
}

static int put_fifo(struct job *j, int dir, const char *name, struct err *e)
{
    if (!has(j, UNPACK_FIFOS)) {
        j->o->count->skipped++;
        return 0;
    }
    if (make_way(j, dir, name, e) < 0)
        return -1;
    if (mkfifoat(dir, name, mode_of(j)) < 0) /* import sets umask 0 */
        return say_sys(e, "make", j->path);
    return finish_at(j, dir, name, S_IFIFO, e);
}

static int put_hardlink(struct job *j, int dir, const char *name, struct err *e)
{
    char target[PATH_ROOM], parent[PATH_ROOM];
    const char *last;
    autofd int from = -1;
    struct stat st;

    if (path_clean(archive_entry_hardlink(j->en), "the target of a hard link", target, e) < 0)
        return -1;
    if (strcmp(target, j->path) == 0)
        return err_set(e, ERR_INVALID, "'%.200s' is a hard link to itself", j->path);
    last = path_name(target);
    str_fmt(parent, sizeof(parent), "%.*s", (int)(last - target), target);
    from = tree_open(j->tree.fd, parent, O_PATH | O_DIRECTORY);
    if (from < 0 || fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode) ||
        S_ISCHR(st.st_mode))
        return err_set(e, ERR_INVALID,
                       "'%.200s' is a hard link to '%.200s', which is not a file of this archive",
                       j->path, target);
    /* a relative link may lead elsewhere under another path */
    if (S_ISLNK(st.st_mode) && !has(j, UNPACK_LINKS))
        return err_set(e, ERR_INVALID, "'%.200s' is a hard link to the link '%.200s'", j->path,
                       target);
    if (make_way(j, dir, name, e) < 0)
        return -1;
    return linkat(from, last, dir, name, 0) < 0 ? say_sys(e, "link", j->path) : 0;
}

static int put_device(struct job *j, int dir, const char *name, struct err *e)
{
    (void)dir;
    (void)name;
    return err_set(e, ERR_INVALID,
                   "'%.200s' is a device node; leave it out: a sandbox has its own /dev", j->path);
}

/* clang-format off */
static const struct {
    mode_t type;
    int (*put)(struct job *j, int dir, const char *name, struct err *e);
} kinds[] = {
    {AE_IFDIR, put_dir},   {AE_IFREG, put_file},   {AE_IFLNK, put_symlink},
    {AE_IFIFO, put_fifo},  {AE_IFCHR, put_device}, {AE_IFBLK, put_device},
};
/* clang-format on */

/* ---- removals ---- */

/* Not yet: the same layer may contain the same name, before or after this entry. */
static int note(struct job *j, char kind, const char *dir, size_t n, const char *name,
                struct err *e)
{
    buf_addc(&j->marks, kind);
    buf_add(&j->marks, dir, n);
    buf_adds(&j->marks, name);
    buf_addc(&j->marks, '\0');
    if (++j->nmarks > UNPACK_MARKS_MAX || j->marks.failed)
        return err_set(e, ERR_TOO_LARGE,
                       "more than %u removals in one layer, or their names are too long",
                       UNPACK_MARKS_MAX);
    return 0;
}

static int put_mark(struct job *j, const char *name, struct err *e)
{
    size_t dir = (size_t)(name - j->path);
    const char *gone = name + strlen(MARK);

    if (strcmp(name, MARK_OPAQUE) == 0)
        return note(j, 'o', j->path, dir > 0 ? dir - 1 : 0, "", e);
    if (strncmp(name, MARK_OTHER, strlen(MARK_OTHER)) == 0)
        return 0;
    if (*gone == '\0' || strcmp(gone, ".") == 0 || strcmp(gone, "..") == 0)
        return err_set(e, ERR_INVALID, "'%.200s' is a removal without a valid name", j->path);
    return note(j, 'w', j->path, dir, gone, e);
}

static int finish_marks(struct job *j, struct err *e)
{
    const char *p = buf_data(&j->marks);
    int r = 0;

    for (size_t at = 0; r == 0 && at < j->marks.len; at += strlen(p + at) + 1)
        r = (p[at] == 'o' ? tree_opaque : tree_whiteout)(&j->tree, p + at + 1, e);
    return r;
}

/* ---- the archive ---- */

static int unpack_entry(struct job *j, struct err *e)
{
    mode_t type = archive_entry_filetype(j->en);
    const char *name;
    int dir;

    if (++j->o->count->entries > UNPACK_ENTRIES_MAX)
        return err_set(e, ERR_TOO_LARGE, "the archive has more than %u entries",
                       UNPACK_ENTRIES_MAX);
    if (j->o->step(j->o->arg, e) < 0)
        return -1;
    if (path_clean(archive_entry_pathname(j->en), "the name", j->path, e) < 0)
        return -1;
    name = path_name(j->path);
    if (has(j, UNPACK_MARKS) && strncmp(name, MARK, strlen(MARK)) == 0)
        return put_mark(j, name, e);
    j->o->count->files += type != AE_IFDIR;
    dir = *name == '\0' ? j->tree.fd : tree_parent(&j->tree, j->path, e);
    if (dir < 0)
        return -1;
    if (archive_entry_hardlink(j->en) != NULL)
        return put_hardlink(j, dir, name, e);
    if (*name == '\0' && type != AE_IFDIR)
        return err_set(e, ERR_INVALID, "the root of the archive is not a directory");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].type == type)
            return kinds[i].put(j, dir, name, e);
    return err_set(e, ERR_INVALID, "'%.200s' is of an unsupported type", j->path);
}

int unpack(struct source *from, const struct unpack_opts *o, struct err *e)
{
    struct job *j = calloc(1, sizeof(*j));
    int r;

    if (j == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    j->o = o;
    buf_init(&j->marks, UNPACK_MARKS_BYTES);
    dirs_init(&j->dirs, UNPACK_DIRS_MAX);
    tree_init(&j->tree, o->fd, o->lower, o->nlower);
    r = tar_open(&j->tar, from, e);
    if (r == 0) {
        while ((r = tar_next(&j->tar, &j->en, e)) > 0 && (r = unpack_entry(j, e)) == 0)
            continue;
        if (r == 0)
            r = finish_marks(j, e);
        if (r == 0)
            r = dirs_finish(&j->dirs, o->fd, e);
        tar_close(&j->tar);
    }
    tree_close(&j->tree);
    buf_free(&j->marks);
    dirs_free(&j->dirs);
    free(j);
    return r;
}
