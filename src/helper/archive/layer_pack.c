/* layer_pack.c - packs the writable layer. See layer.h and wire/archive.h. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/archive/base.h"
#include "helper/archive/chunks.h"
#include "helper/archive/layer.h"
#include "helper/archive/links.h"
#include "helper/archive/pack.h"
#include "helper/archive/unpack.h"
#include "helper/call/call.h"
#include "helper/tree/path.h"

#define XATTRS_ROOM (64u << 10)
#define XATTRS_SUM (512u << 10) /* of one file; libarchive reads no larger header than 1 MiB */
#define HOLE_STEP (16u << 20)

struct pack {
    struct archive *a;
    struct archive_entry *en;
    struct base *base;
    struct links *links;
    struct chunks *tar;
    struct err e; /* of the sink, if `failed` */
    bool failed;
    const char *zeros; /* HOLE_STEP bytes that cost no memory */
    uint64_t entries, bytes;
    char piece[256 << 10];
};

/* ---- entries ---- */

static int put_head(struct pack *k, const struct layer_entry *en, struct err *e)
{
    char name[PATH_ROOM + 8];
    int r;

    str_fmt(name, sizeof(name), "./%s", en->path);
    archive_entry_set_pathname(k->en, name);
    archive_entry_set_filetype(k->en, en->is.mode & S_IFMT);
    archive_entry_set_perm(k->en, en->is.mode & 07777);
    archive_entry_set_uid(k->en, en->is.uid);
    archive_entry_set_gid(k->en, en->is.gid);
    archive_entry_set_mtime(k->en, en->is.mtime_s, en->is.mtime_ns);
    if (++k->entries > UNPACK_ENTRIES_MAX)
        return err_set(e, ERR_TOO_LARGE,
                       "more than %u files were changed; the rest of the limit "
                       "is what one archive may hold",
                       UNPACK_ENTRIES_MAX);
    r = archive_write_header(k->a, k->en);
    archive_entry_clear(k->en);
    if (r == ARCHIVE_OK || r == ARCHIVE_WARN)
        return 0;
    if (!k->failed)
        return pack_failed(k->a, e);
    *e = k->e;
    return -1;
}

/* Those that unpack.c sets with UNPACK_EXACT. */
static bool is_wanted(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0 ||
           strncmp(name, "system.posix_acl_", 17) == 0;
}

static int add_xattrs(struct pack *k, int fd, const char *path, struct err *e)
{
    static char names[XATTRS_ROOM], value[XATTRS_ROOM];
    ssize_t n = flistxattr(fd, names, sizeof(names)), len;
    size_t sum = 0;

    if (n < 0 && errno != ENOTSUP)
        return say_sys(e, "read the extended attributes of", path);
    for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
        if (!is_wanted(name))
            continue;
        len = fgetxattr(fd, name, value, sizeof(value));
        if (len < 0)
            return say_sys(e, "read the extended attributes of", path);
        sum += strlen(name) + (size_t)len;
        if (sum > XATTRS_SUM)
            return err_set(e, ERR_TOO_LARGE, "'%.200s' has more than %u KiB of attributes", path,
                           XATTRS_SUM >> 10);
        archive_entry_xattr_add_entry(k->en, name, value, (size_t)len);
    }
    return 0;
}

static int put_data(struct pack *k, const void *p, size_t n, struct err *e)
{
    for (size_t at = 0; at < n;) {
        la_ssize_t w = archive_write_data(k->a, (const char *)p + at, n - at);

        if (w <= 0 && k->failed) {
            *e = k->e;
            return -1;
        }
        if (w <= 0)
            return pack_failed(k->a, e);
        at += (size_t)w;
    }
    return 0;
}

/* ---- files and their holes ---- */

/* The next part with data at or after `at`; false: none. */
static bool next_data(int fd, int64_t at, int64_t size, int64_t *ret_from, int64_t *ret_to)
{
    *ret_from = at < size ? lseek(fd, at, SEEK_DATA) : -1;
    if (*ret_from < 0 || *ret_from >= size)
        return false;
    *ret_to = lseek(fd, *ret_from, SEEK_HOLE);
    if (*ret_to < 0 || *ret_to > size)
        *ret_to = size;
    return true;
}

static void note_holes(struct pack *k, int fd, int64_t size)
{
    int64_t from, to = 0;

    if (size == 0 || lseek(fd, 0, SEEK_HOLE) >= size)
        return;
    while (next_data(fd, to, size, &from, &to))
        archive_entry_sparse_add_entry(k->en, from, to - from);
    if (archive_entry_sparse_count(k->en) == 0)
        archive_entry_sparse_add_entry(k->en, size, 0); /* nothing but a hole */
}

/* libarchive wants the bytes of holes too, and drops them. */
static int put_hole(struct pack *k, int64_t n, struct err *e)
{
    while (n > 0) {
        size_t some = n < HOLE_STEP ? (size_t)n : HOLE_STEP;

        if (put_data(k, k->zeros, some, e) < 0)
            return -1;
        n -= (int64_t)some;
    }
    return 0;
}

static int put_part(struct pack *k, int fd, int64_t from, int64_t to, const char *path,
                    struct err *e)
{
    while (from < to) {
        size_t want =
            to - from < (int64_t)sizeof(k->piece) ? (size_t)(to - from) : sizeof(k->piece);
        ssize_t n = pread(fd, k->piece, want, from);

        if (n < 0)
            return say_sys(e, "read", path);
        if (n == 0)
            return err_set(e, ERR_CONFLICT, "'%.200s' was changed while it was packed", path);
        if (put_data(k, k->piece, (size_t)n, e) < 0)
            return -1;
        from += n;
    }
    return 0;
}

static int put_bytes(struct pack *k, int fd, int64_t size, const char *path, struct err *e)
{
    int64_t at = 0, from, to;

    while (next_data(fd, at, size, &from, &to)) {
        if (put_hole(k, from - at, e) < 0 || put_part(k, fd, from, to, path, e) < 0)
            return -1;
        at = to;
    }
    return put_hole(k, size - at, e);
}

static int add_file(struct pack *k, const struct layer_entry *en, struct err *e)
{
    autofd int fd = openat(en->dir, en->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const char *first = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return say_sys(e, "open", en->path);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != en->is.size)
        return err_set(e, ERR_CONFLICT, "'%.200s' was changed while it was packed", en->path);
    if (st.st_nlink > 1)
        first = links_seen(k->links, &st, en->path);
    if (first != NULL) {
        archive_entry_set_hardlink(k->en, first);
        return put_head(k, en, e);
    }
    archive_entry_set_size(k->en, st.st_size);
    note_holes(k, fd, st.st_size);
    k->bytes += (uint64_t)st.st_size;
    if (add_xattrs(k, fd, en->path, e) < 0 || put_head(k, en, e) < 0)
        return -1;
    return put_bytes(k, fd, st.st_size, en->path, e);
}

static int add_dir(struct pack *k, const struct layer_entry *en, struct err *e)
{
    autofd int fd = openat(en->dir, en->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return say_sys(e, "open", en->path);
    return add_xattrs(k, fd, en->path, e) < 0 ? -1 : put_head(k, en, e);
}

static int add_link(struct pack *k, const struct layer_entry *en, struct err *e)
{
    char target[PATH_ROOM];
    ssize_t n = readlinkat(en->dir, en->name, target, sizeof(target) - 1);

    if (n < 0)
        return say_sys(e, "read", en->path);
    target[n] = '\0';
    archive_entry_set_symlink(k->en, target);
    return put_head(k, en, e);
}

static int add(void *arg, const struct layer_entry *en, struct err *e)
{
    struct pack *k = arg;

    if (base_has(k->base, en))
        return 0;
    switch (en->is.mode & S_IFMT) {
    case S_IFREG:
        return add_file(k, en, e);
    case S_IFLNK:
        return add_link(k, en, e);
    case S_IFDIR:
        return add_dir(k, en, e);
    default:
        return put_head(k, en, e);
    }
}

/* ---- the archive ---- */

static la_ssize_t sink_write(struct archive *a, void *arg, const void *p, size_t n)
{
    struct pack *k = arg;

    if (chunks_add(k->tar, p, n, &k->e) == 0)
        return (la_ssize_t)n;
    k->failed = true;
    archive_set_error(a, -1, "%s", k->e.msg);
    return -1;
}

/* All of pax, for the nanoseconds; attributes encoded, since their names may have any byte. */
static int open_tar(struct pack *k, struct err *e)
{
    if (archive_write_set_format_pax(k->a) != ARCHIVE_OK ||
        archive_write_set_options(k->a, "pax:xattrheader=LIBARCHIVE") != ARCHIVE_OK)
        return err_set(e, ERR_UNSUPPORTED, "this build cannot write pax archives");
    archive_write_set_bytes_per_block(k->a, PACK_BLOCK);
    archive_write_set_bytes_in_last_block(k->a, 1);
    return archive_write_open(k->a, k, NULL, sink_write, NULL) == ARCHIVE_OK ? 0
                                                                             : pack_failed(k->a, e);
}

static int pack_files(struct pack *k, struct err *e)
{
    int r = k->a == NULL ? err_set(e, ERR_INTERNAL, "out of memory") : open_tar(k, e);

    if (r == 0)
        r = layer_walk(add, k, e);
    return pack_end(k->a, r, e) < 0 ? -1 : chunks_end(k->tar, e);
}

static int pack_gone(struct pack *k, uint64_t *ret_n, struct err *e)
{
    autobuf struct buf text = BUF_INIT(ARCHIVE_GONE_MAX);
    struct chunks *c;
    int r;

    if (base_gone(k->base, &text, ret_n, e) < 0)
        return -1;
    c = chunks_new(ARCHIVE_GONE, e);
    r = c == NULL || chunks_add(c, buf_data(&text), text.len, e) < 0 ? -1 : chunks_end(c, e);
    chunks_free(c);
    return r;
}

static int pack_all(struct pack *k, struct err *e)
{
    char digest[SHA256_HEX], result[256];
    uint64_t gone;

    if (pack_files(k, e) < 0 || pack_gone(k, &gone, e) < 0)
        return -1;
    base_digest(k->base, digest);
    str_fmt(result, sizeof(result),
            "{\"base\":\"%s\",\"entries\":%llu,\"bytes\":%llu,\"gone\":%llu}", digest,
            (unsigned long long)k->entries, (unsigned long long)k->bytes, (unsigned long long)gone);
    return frame_write(ARCHIVE_RESULT, result, strlen(result), e);
}

int layer_pack_main(int argc, char **argv)
{
    static struct pack k;
    struct err e;
    int r = -1;

    (void)argv;
    if (argc != 0)
        return 64;
    k.zeros = mmap(NULL, HOLE_STEP, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    k.links = links_new();
    k.en = archive_entry_new();
    if (k.zeros == MAP_FAILED || k.links == NULL || k.en == NULL)
        err_set(&e, ERR_INTERNAL, "out of memory");
    else if ((k.base = base_read(STDIN_FILENO, &e)) != NULL &&
             (k.tar = chunks_new(ARCHIVE_TAR, &e)) != NULL) {
        k.a = archive_write_new();
        r = pack_all(&k, &e);
    }
    archive_entry_free(k.en);
    links_free(k.links);
    base_free(k.base);
    chunks_free(k.tar);
    return r < 0 ? say_failed(stderr, &e) : 0;
}
