/* pack.c - see pack.h. */
#include "cli/files/pack.h"

#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/own.h"
#include "mem/mem.h"

#define BLOCK 512u
#define PIECE (256u << 10)
#define HEAD_MAX (1u << 20)
#define XATTR_MAX (64u << 10)
#define FIELD_SIZE_MAX 077777777777ull /* what 11 octal digits hold */
#define FIELD_ID_MAX 07777777u

/* The header of one entry. All numbers are octal text. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

struct linked { /* a file with several names, under the first that was packed */
    struct linked *next;
    dev_t dev;
    ino_t ino;
    char path[];
};

#define LINKED_SLOTS 4096u

struct pack {
    FTS *fts;
    size_t root;    /* length of the directory's own path */
    struct buf out; /* headers that pack_next() returns next */
    char piece[PIECE];
    int fd; /* the file that is being sent, or -1 */
    uint64_t left;
    size_t pad; /* zero bytes after it, up to the next block */
    bool ended;
    unsigned long left_out;
    struct linked *linked[LINKED_SLOTS];
};

static void octal(char *to, size_t room, uint64_t v)
{
    to[room - 1] = '\0';
    for (size_t i = room - 1; i-- > 0; v >>= 3)
        to[i] = (char)('0' + (v & 7));
}

static size_t padding(uint64_t n)
{
    return (size_t)((BLOCK - n % BLOCK) % BLOCK);
}

/* ---- headers ---- */

static void put_header(struct pack *p, const char *name, char type, const char *link,
                       const struct stat *st, uint64_t size)
{
    struct header h = {.type = type};
    unsigned sum = 0;

    memcpy(h.name, name, strnlen(name, sizeof(h.name)));
    memcpy(h.link, link, strnlen(link, sizeof(h.link)));
    octal(h.mode, sizeof(h.mode), st->st_mode & 07777);
    octal(h.uid, sizeof(h.uid), st->st_uid > FIELD_ID_MAX ? 0 : st->st_uid);
    octal(h.gid, sizeof(h.gid), st->st_gid > FIELD_ID_MAX ? 0 : st->st_gid);
    octal(h.size, sizeof(h.size), size > FIELD_SIZE_MAX ? 0 : size);
    octal(h.mtime, sizeof(h.mtime), st->st_mtime < 0 ? 0 : (uint64_t)st->st_mtime);
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    octal(h.sum, 7, sum);
    buf_add(&p->out, &h, sizeof(h));
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself too. */
static void put_record(struct buf *out, const char *key, const void *value, size_t n)
{
    size_t rest = strlen(key) + n + 3, len = rest + 1;
    char digits[24];

    while ((size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest != len)
        len = (size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest;
    buf_addf(out, "%zu %s=", len, key);
    buf_add(out, value, n);
    buf_addc(out, '\n');
}

static void put_number(struct buf *out, const char *key, uint64_t v)
{
    char text[24];

    put_record(out, key, text, (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)v));
}

static void put_xattrs(struct buf *out, const char *path)
{
    char names[XATTR_MAX / 4], key[300], value[XATTR_MAX];
    ssize_t n = llistxattr(path, names, sizeof(names));

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        ssize_t len = lgetxattr(path, names + at, value, sizeof(value));

        if (len < 0 || (strncmp(names + at, "user.", 5) != 0 &&
                        strcmp(names + at, "security.capability") != 0))
            continue;
        snprintf(key, sizeof(key), "SCHILY.xattr.%.255s", names + at);
        put_record(out, key, value, (size_t)len);
    }
}

static void put_pax(struct pack *p, const char *name, const char *link, const char *path,
                    const struct stat *st, uint64_t size)
{
    autobuf struct buf out = BUF_INIT(HEAD_MAX);
    static const char zeros[BLOCK];

    if (strlen(name) > 100)
        put_record(&out, "path", name, strlen(name));
    if (strlen(link) > 100)
        put_record(&out, "linkpath", link, strlen(link));
    if (size > FIELD_SIZE_MAX)
        put_number(&out, "size", size);
    if (st->st_uid > FIELD_ID_MAX)
        put_number(&out, "uid", st->st_uid);
    if (st->st_gid > FIELD_ID_MAX)
        put_number(&out, "gid", st->st_gid);
    if (!S_ISLNK(st->st_mode))
        put_xattrs(&out, path);
    if (out.len == 0)
        return;
    put_header(p, "pax", 'x', "", &(struct stat){.st_mode = 0644}, out.len);
    buf_add(&p->out, buf_data(&out), out.len);
    buf_add(&p->out, zeros, padding(out.len));
}

static void put_entry(struct pack *p, const FTSENT *f, const char *name, char type,
                      const char *link, uint64_t size)
{
    put_pax(p, name, link, f->fts_accpath, f->fts_statp, size);
    put_header(p, name, type, link, f->fts_statp, size);
}

/* ---- files ---- */

/* The name under which a file was packed first; NULL if this is the first. */
static const char *linked(struct pack *p, const struct stat *st, const char *name)
{
    struct linked **slot = &p->linked[st->st_ino % LINKED_SLOTS], *l;

    for (l = *slot; l != NULL; l = l->next)
        if (l->dev == st->st_dev && l->ino == st->st_ino)
            return l->path;
    l = malloc(sizeof(*l) + strlen(name) + 1);
    if (l == NULL)
        return NULL; /* then it is packed twice, which is correct too */
    l->dev = st->st_dev;
    l->ino = st->st_ino;
    strcpy(l->path, name);
    l->next = *slot;
    *slot = l;
    return NULL;
}

static int add_file(struct pack *p, const FTSENT *f, const char *name, struct err *e)
{
    const struct stat *st = f->fts_statp;
    const char *first = st->st_nlink > 1 ? linked(p, st, name) : NULL;

    if (first != NULL) {
        put_entry(p, f, name, '1', first, 0);
        return 0;
    }
    p->fd = open(f->fts_accpath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (p->fd < 0)
        return err_set(e, ERR_INVALID, "%s: %s", f->fts_path, strerror(errno));
    p->left = (uint64_t)st->st_size;
    p->pad = padding(p->left);
    put_entry(p, f, name, '0', "", p->left);
    return 0;
}

static int add(struct pack *p, const FTSENT *f, struct err *e)
{
    const char *name = f->fts_path + p->root;
    mode_t mode = f->fts_statp->st_mode;
    char dir[8192];

    name += *name == '/';
    if (f->fts_info == FTS_DP)
        return 0;
    if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR || f->fts_info == FTS_NS)
        return err_set(e, ERR_INVALID, "%s: %s", f->fts_path, strerror(f->fts_errno));
    if (S_ISDIR(mode)) {
        snprintf(dir, sizeof(dir), "%s/", *name != '\0' ? name : ".");
        put_entry(p, f, dir, '5', "", 0);
        return 0;
    }
    if (S_ISREG(mode))
        return add_file(p, f, name, e);
    if (S_ISLNK(mode)) {
        char target[4096];
        ssize_t n = readlink(f->fts_accpath, target, sizeof(target) - 1);

        if (n < 0)
            return err_set(e, ERR_INVALID, "%s: %s", f->fts_path, strerror(errno));
        target[n] = '\0';
        put_entry(p, f, name, '2', target, 0);
        return 0;
    }
    if (S_ISFIFO(mode))
        put_entry(p, f, name, '6', "", 0);
    else
        p->left_out++;
    return 0;
}

/* ---- the stream ---- */

struct pack *pack_open(const char *dir, struct err *e)
{
    char *const paths[] = {(char *)(uintptr_t)dir, NULL};
    struct pack *p = mem_zeroed(1, sizeof(*p));

    p->fd = -1;
    p->root = strlen(dir);
    buf_init(&p->out, HEAD_MAX * 2);
    p->fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    if (p->fts == NULL) {
        err_set(e, ERR_INVALID, "%s: %s", dir, strerror(errno));
        free(p);
        return NULL;
    }
    return p;
}

void pack_free(struct pack *p)
{
    if (p == NULL)
        return;
    fts_close(p->fts);
    for (size_t i = 0; i < LINKED_SLOTS; i++)
        for (struct linked *l = p->linked[i], *next; l != NULL; l = next) {
            next = l->next;
            free(l);
        }
    drop_fd(&p->fd);
    buf_free(&p->out);
    free(p);
}

unsigned long pack_left_out(const struct pack *p)
{
    return p->left_out;
}

static ssize_t next_bytes(struct pack *p, const char **ret, struct err *e)
{
    size_t want = p->left < PIECE ? (size_t)p->left : PIECE;
    ssize_t n = want > 0 ? read(p->fd, p->piece, want) : 0;

    *ret = p->piece;
    if (n < 0 || (n == 0 && want > 0))
        return err_set(e, ERR_INVALID, "a file shrank while it was read");
    p->left -= (uint64_t)n;
    if (n > 0)
        return n;
    memset(p->piece, 0, p->pad);
    drop_fd(&p->fd);
    return (ssize_t)p->pad;
}

ssize_t pack_next(struct pack *p, const char **ret, struct err *e)
{
    ssize_t n = 0;

    buf_clear(&p->out);
    while (p->fd >= 0) {
        n = next_bytes(p, ret, e);
        if (n != 0)
            return n;
    }
    while (!p->ended && p->out.len == 0) {
        FTSENT *f = fts_read(p->fts);

        if (f != NULL && add(p, f, e) < 0)
            return -1;
        if (f == NULL) {
            static const char end[2 * BLOCK];

            p->ended = true;
            buf_add(&p->out, end, sizeof(end));
        }
    }
    *ret = buf_data(&p->out);
    return p->out.failed ? err_set(e, ERR_INTERNAL, "out of memory") : (ssize_t)p->out.len;
}
