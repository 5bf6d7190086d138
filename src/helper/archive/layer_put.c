/* layer_put.c - unpacks a writable layer over a root made from its template. See wire/archive.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/archive/layer.h"
#include "helper/archive/unpack.h"
#include "helper/call/call.h"
#include "helper/tree/tree.h"
#include "wire/archive.h"

/* ---- the base ---- */

static int add_to_digest(void *arg, const struct layer_entry *en, struct err *e)
{
    (void)e;
    layer_digest_add(arg, &en->is, en->path);
    return 0;
}

static int check_base(const char *want, struct err *e)
{
    struct layer_digest d;
    char have[SHA256_HEX];

    if (strcmp(want, "any") == 0)
        return 0;
    layer_digest_begin(&d);
    if (layer_walk(add_to_digest, &d, e) < 0)
        return -1;
    sha256_hex(&d.hash, have);
    return strcmp(have, want) == 0
               ? 0
               : err_set(e, ERR_CONFLICT,
                         "the template has other files here (%.12s) than where the archive was "
                         "made (%.12s)",
                         have, want);
}

/* ---- the removals ---- */

static int read_all(void *to, size_t n, struct err *e)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(STDIN_FILENO, (char *)to + at, n - at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, "read the archive");
        if (got == 0)
            return err_set(e, ERR_INVALID, "the archive ends too early");
        at += (size_t)got;
    }
    return 0;
}

static int inflate_piece(ZSTD_DStream *z, const void *p, size_t n, struct buf *to, struct err *e)
{
    ZSTD_inBuffer in = {p, n, 0};
    static char out[128 << 10];

    while (in.pos < in.size) {
        ZSTD_outBuffer o = {out, sizeof(out), 0};
        size_t r = ZSTD_decompressStream(z, &o, &in);

        if (ZSTD_isError(r))
            return err_set(e, ERR_INVALID, "zstd: %s", ZSTD_getErrorName(r));
        if (buf_add(to, out, o.pos) < 0)
            return err_set(e, ERR_TOO_LARGE, "the removals of the archive are too large");
    }
    return 0;
}

static int read_gone(struct buf *to, struct err *e)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    static char piece[64 << 10];
    uint64_t left = 0;
    int r =
        z == NULL ? err_set(e, ERR_INTERNAL, "out of memory") : read_all(&left, sizeof(left), e);

    while (r == 0 && left > 0) {
        size_t some = left < sizeof(piece) ? (size_t)left : sizeof(piece);

        r = read_all(piece, some, e) < 0 ? -1 : inflate_piece(z, piece, some, to, e);
        left -= some;
    }
    ZSTD_freeDStream(z);
    if (r == 0 && to->len > 0 && buf_data(to)[to->len - 1] != '\0')
        r = err_set(e, ERR_INVALID, "the removals of the archive are incomplete");
    return r;
}

static int remove_one(int root, const char *named, struct err *e)
{
    char path[PATH_ROOM], parent[PATH_ROOM];
    autofd int dir = -1;
    const char *name;
    struct stat st;

    if (path_clean(named, "a removal", path, e) < 0)
        return -1;
    name = path_name(path);
    if (*name == '\0')
        return err_set(e, ERR_INVALID, "the archive removes the root");
    str_fmt(parent, sizeof(parent), "%.*s", (int)(name - path), path);
    dir = tree_open(root, parent, O_RDONLY | O_DIRECTORY);
    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : say_sys(e, "remove", path);
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir, name, 0) < 0 ? say_sys(e, "remove", path) : 0;
    return tree_remove(dir, name, e);
}

static int remove_gone(int root, struct err *e)
{
    autobuf struct buf gone = BUF_INIT(ARCHIVE_GONE_MAX);
    const char *p;

    if (read_gone(&gone, e) < 0)
        return -1;
    p = buf_data(&gone);
    for (size_t at = 0; at < gone.len; at += strlen(p + at) + 1)
        if (remove_one(root, p + at, e) < 0)
            return -1;
    return 0;
}

/* ---- the files ---- */

static int step(void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    return 0;
}

static int put_files(int root, struct unpack_count *count, struct err *e)
{
    autosource struct source *from = source_open(STDIN_FILENO, NULL, e);
    struct unpack_opts o = {.fd = root,
                            .flags = UNPACK_OWNERS | UNPACK_LINKS | UNPACK_FIFOS | UNPACK_EXACT,
                            .count = count,
                            .step = step};

    if (from == NULL)
        return -1;
    source_no_digests(from); /* the front has checked each chunk */
    return unpack(from, &o, e);
}

static int put_layer(const char *base, struct unpack_count *count, struct err *e)
{
    autofd int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return err_sys(e, "open /");
    if (check_base(base, e) < 0 || remove_gone(root, e) < 0 || put_files(root, count, e) < 0)
        return -1;
    /* the archive may be collected once the sandbox is there */
    return syncfs(root) < 0 ? err_sys(e, "write the files to the disk") : 0;
}

int layer_put_main(int argc, char **argv)
{
    struct unpack_count count = {0};
    struct err e;

    if (argc != 1)
        return 64;
    umask(0);
    if (put_layer(argv[0], &count, &e) < 0)
        return say_failed(stderr, &e);
    printf("{\"entries\":%llu,\"bytes\":%llu}\n", (unsigned long long)count.entries,
           (unsigned long long)count.bytes);
    return fflush(stdout) == 0 ? 0 : 1;
}
