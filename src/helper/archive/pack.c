/* pack.c - see pack.h. */
#include "helper/archive/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/archive/links.h"
#include "helper/call/call.h"
#include "helper/tree/glob.h"
#include "helper/tree/path.h"
#include "helper/tree/tree.h"
#include "helper/tree/where.h"

#define XATTRS_ROOM (64u << 10)

struct pack {
    struct archive *a;
    struct archive_entry *en;
    const struct globs *exclude; /* or NULL */
    unsigned flags;
    struct links *links; /* with PACK_WHOLE; else NULL */
    char path[PATH_ROOM];
    size_t len; /* of path */
    char piece[256 << 10];
};

/* ---- entries ---- */

int pack_failed(struct archive *a, struct err *e)
{
    const char *text = archive_error_string(a);

    return err_set(e, ERR_INTERNAL, "write the archive: %.200s", text != NULL ? text : "?");
}

/* Owners as numbers only: their names may mean other users where the archive is unpacked. */
static int put_head(struct pack *k, const struct stat *st, const char *target, struct err *e)
{
    struct archive_entry *en = k->en;
    bool hard = target != NULL && S_ISREG(st->st_mode);
    int r;

    archive_entry_set_pathname(en, k->path);
    archive_entry_set_filetype(en, st->st_mode & S_IFMT);
    archive_entry_set_perm(en, st->st_mode & 07777);
    archive_entry_set_uid(en, st->st_uid);
    archive_entry_set_gid(en, st->st_gid);
    archive_entry_set_mtime(en, st->st_mtim.tv_sec, 0);
    archive_entry_set_size(en, S_ISREG(st->st_mode) && !hard ? st->st_size : 0);
    if (hard)
        archive_entry_set_hardlink(en, target);
    else if (target != NULL)
        archive_entry_set_symlink(en, target);
    r = archive_write_header(k->a, en);
    archive_entry_clear(en);
    /* a warning means a name that is not UTF-8; it is written unchanged */
    return r == ARCHIVE_OK || r == ARCHIVE_WARN ? 0 : pack_failed(k->a, e);
}

static void add_xattrs(struct pack *k, int fd)
{
    static char names[XATTRS_ROOM], value[XATTRS_ROOM];
    ssize_t n = flistxattr(fd, names, sizeof(names)), len;

    for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1)
        if ((strncmp(name, "user.", 5) == 0 ||
             ((k->flags & PACK_WHOLE) && strcmp(name, "security.capability") == 0)) &&
            (len = fgetxattr(fd, name, value, sizeof(value))) >= 0)
            archive_entry_xattr_add_entry(k->en, name, value, (size_t)len);
}

/* The header has the size already: a file that shrank is padded with zeros, one that grew is
 * cut. */
static int put_bytes(struct pack *k, int fd, int64_t size, struct err *e)
{
    while (size > 0) {
        ssize_t n = read(fd, k->piece, sizeof(k->piece));

        if (n < 0)
            return say_sys(e, "read", k->path);
        if (n == 0)
            break;
        n = n < size ? n : (ssize_t)size;
        if (archive_write_data(k->a, k->piece, (size_t)n) != n)
            return pack_failed(k->a, e);
        size -= n;
    }
    return 0;
}

/* After a failure: 0 if the file was removed meanwhile or may be skipped. */
static int skip_or_fail(struct pack *k, const char *what, struct err *e)
{
    if (errno == ENOENT || ((k->flags & PACK_SKIP) && (errno == EACCES || errno == EPERM)))
        return 0;
    return say_sys(e, what, k->path);
}

static int add_file(struct pack *k, int dir, const char *name, struct err *e)
{
    /* the file may have been replaced after the stat, so all flags guard the open */
    autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *first = NULL;
    struct stat st;

    if (fd < 0)
        return skip_or_fail(k, "open", e);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (k->links != NULL && st.st_nlink > 1)
        first = links_seen(k->links, &st, k->path);
    if (first != NULL)
        return put_head(k, &st, first, e);
    add_xattrs(k, fd);
    return put_head(k, &st, NULL, e) < 0 ? -1 : put_bytes(k, fd, st.st_size, e);
}

static int add_link(struct pack *k, int dir, const char *name, const struct stat *st, struct err *e)
{
    char target[PATH_ROOM];
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

    if (n < 0)
        return skip_or_fail(k, "read", e);
    target[n] = '\0';
    return put_head(k, st, target, e);
}

static int add_all(struct pack *k, int fd, unsigned depth, struct err *e);

static int add_dir(struct pack *k, int dir, const char *name, const struct stat *st, unsigned depth,
                   struct err *e)
{
    int fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

    if (fd < 0 && errno == EXDEV)
        return put_head(k, st, NULL, e); /* another mount: only the directory itself */
    if (fd < 0)
        return skip_or_fail(k, "open", e);
    add_xattrs(k, fd);
    if (put_head(k, st, NULL, e) < 0) {
        close(fd);
        return -1;
    }
    return add_all(k, fd, depth, e);
}

static int add(struct pack *k, int dir, const char *name, unsigned depth, struct err *e)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return skip_or_fail(k, "look at", e);
    if (S_ISREG(st.st_mode))
        return add_file(k, dir, name, e);
    if (S_ISLNK(st.st_mode))
        return add_link(k, dir, name, &st, e);
    if (S_ISFIFO(st.st_mode) && (k->flags & PACK_WHOLE))
        return put_head(k, &st, NULL, e);
    return S_ISDIR(st.st_mode) ? add_dir(k, dir, name, &st, depth, e) : 0;
}

/* Appends `name` to the path, adds the file, and restores the path. */
static int add_named(struct pack *k, int dir, const char *name, unsigned depth, struct err *e)
{
    size_t len = k->len, n = strlen(name);
    int r = 0;

    if (len + n + 2 > sizeof(k->path) || depth > PATH_DEPTH_MAX)
        return err_set(e, ERR_TOO_LARGE, "'%.80s...' is too long or too deep for an archive",
                       k->path);
    memcpy(k->path + len, name, n + 1);
    if (k->exclude == NULL || !globs_match(k->exclude, k->path + 2)) {
        k->len = len + n;
        r = add(k, dir, name, depth, e);
    }
    k->len = len;
    k->path[len] = '\0';
    return r;
}

/* Takes the fd. */
static int add_all(struct pack *k, int fd, unsigned depth, struct err *e)
{
    DIR *d = fdopendir(fd);
    size_t len = k->len;
    int r = 0;

    if (d == NULL) {
        close(fd);
        return say_sys(e, "list", k->path);
    }
    if (k->path[len - 1] != '/')
        k->path[k->len++] = '/';
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
            r = add_named(k, fd, de->d_name, depth + 1, e);
    closedir(d);
    k->len = len;
    return r;
}

/* ---- the archive ---- */

/* clang-format off */
static const struct {
    const char *name;
    int (*filter)(struct archive *a);
} formats[] = {
    {"tar",     archive_write_add_filter_none},
    {"tar.gz",  archive_write_add_filter_gzip},
    {"tar.zst", archive_write_add_filter_zstd},
};
/* clang-format on */

int pack_format(struct archive *a, const char *format, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(formats[i].name, format) != 0)
            continue;
        if (formats[i].filter(a) != ARCHIVE_OK ||
            archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
            archive_write_set_options(a, "pax:xattrheader=SCHILY") != ARCHIVE_OK)
            return err_set(e, ERR_UNSUPPORTED, "format %s is not supported by this build", format);
        archive_write_set_bytes_per_block(a, PACK_BLOCK);
        archive_write_set_bytes_in_last_block(a, 1); /* no padding */
        return 0;
    }
    return err_set(e, ERR_INVALID, "format '%.20s': expected tar, tar.gz or tar.zst", format);
}

static int pack_root(struct pack *k, int fd, struct err *e)
{
    struct stat st;
    int copy;

    if (fstat(fd, &st) < 0 || (copy = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
        return err_sys(e, "look at the directory");
    str_fmt(k->path, sizeof(k->path), "./");
    k->len = 2;
    if (put_head(k, &st, NULL, e) < 0) {
        close(copy);
        return -1;
    }
    return add_all(k, copy, 0, e);
}

int pack_tree(struct archive *a, const char *path, const struct globs *exclude, unsigned flags,
              struct err *e)
{
    static struct pack k; /* too large for the stack */
    autofd int fd = where_open(path, O_RDONLY | O_DIRECTORY, e);
    int r = -1;

    if (fd < 0)
        return -1;
    k = (struct pack){.a = a, .exclude = exclude, .flags = flags};
    k.en = archive_entry_new();
    k.links = flags & PACK_WHOLE ? links_new() : NULL;
    if (k.en == NULL || ((flags & PACK_WHOLE) && k.links == NULL))
        err_set(e, ERR_INTERNAL, "out of memory");
    else
        r = pack_root(&k, fd, e);
    archive_entry_free(k.en);
    links_free(k.links);
    return r;
}

int pack_end(struct archive *a, int r, struct err *e)
{
    if (a == NULL)
        return -1;
    if (r < 0)
        archive_write_fail(a); /* otherwise freeing it would write an end as if it were whole */
    else if (archive_write_close(a) != ARCHIVE_OK)
        r = pack_failed(a, e);
    archive_write_free(a);
    return r;
}

int pack_main(int argc, char **argv)
{
    struct globs exclude = {argv + 3, argc < 3 ? 0 : (size_t)argc - 3};
    struct archive *a;
    struct err e;
    int r;

    if (argc < 3)
        return 64;
    a = archive_write_new();
    r = a == NULL ? err_set(&e, ERR_INTERNAL, "out of memory") : pack_format(a, argv[1], &e);
    if (r == 0 && archive_write_open_fd(a, STDOUT_FILENO) != ARCHIVE_OK)
        r = pack_failed(a, &e);
    if (r == 0)
        r = pack_tree(a, argv[0], &exclude, strchr(argv[2], 's') != NULL ? PACK_SKIP : 0, &e);
    return pack_end(a, r, &e) < 0 ? say_failed(stderr, &e) : 0;
}
