/* layer.c - see layer.h: the walk, and the list that it gives. */
#include "helper/archive/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "helper/tree/path.h"
#include "helper/tree/tree.h"

#define NAMES_MAX (256u << 20) /* bytes of the names in one directory */
/* With layers of several filesystems, the overlay puts the number of the filesystem above this. */
#define INO_MASK ((1ull << 56) - 1)

struct walk {
    layer_each *each;
    void *arg;
    char path[PATH_ROOM];
    size_t len;
};

/* ---- one directory ---- */

struct names {
    struct buf text; /* each with its NUL */
    const char **list;
    size_t n;
};

static void names_free(struct names *s)
{
    free(s->list);
    buf_free(&s->text);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Takes a copy of the fd. */
static int names_read(int fd, struct names *ret, struct err *e)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    const char *at;

    if (d == NULL) {
        own_close(&copy);
        return err_sys(e, "list a directory");
    }
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
            continue;
        buf_add(&ret->text, de->d_name, strlen(de->d_name) + 1);
        ret->n++;
    }
    closedir(d);
    ret->list = calloc(ret->n + 1, sizeof(*ret->list));
    if (ret->list == NULL || ret->text.failed)
        return err_set(e, ERR_INTERNAL, "out of memory");
    at = buf_data(&ret->text);
    for (size_t i = 0; i < ret->n; i++, at += strlen(at) + 1)
        ret->list[i] = at;
    qsort(ret->list, ret->n, sizeof(*ret->list), by_bytes);
    return 0;
}

/* ---- the walk ---- */

/* 0: not to be looked at: gone, or another mount. */
static int look(int dir, const char *name, bool root, struct layer_file *ret, struct err *e)
{
    struct statx sx;

    if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &sx) < 0)
        return errno == ENOENT ? 0 : err_sys(e, "look at '%.200s'", name);
    if (!root && (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
        return 0;
    *ret = (struct layer_file){.ino = S_ISDIR(sx.stx_mode) ? 0 : sx.stx_ino & INO_MASK,
                               .size = S_ISDIR(sx.stx_mode) ? 0 : sx.stx_size,
                               .mtime_s = sx.stx_mtime.tv_sec,
                               .ctime_s = sx.stx_ctime.tv_sec,
                               .mtime_ns = sx.stx_mtime.tv_nsec,
                               .ctime_ns = sx.stx_ctime.tv_nsec,
                               .mode = sx.stx_mode,
                               .uid = sx.stx_uid,
                               .gid = sx.stx_gid};
    return 1;
}

static bool is_kept(mode_t mode)
{
    return S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode) || S_ISFIFO(mode);
}

static int walk_dir(struct walk *w, int fd, unsigned depth, struct err *e);

static int walk_one(struct walk *w, int dir, const char *name, unsigned depth, struct err *e)
{
    struct layer_entry en = {.dir = dir, .name = name, .path = w->path};
    autofd int fd = -1;
    int r = look(dir, name, false, &en.is, e);

    if (r <= 0 || !is_kept(en.is.mode))
        return r < 0 ? -1 : 0;
    en.is.len = (uint32_t)w->len;
    if (w->each(w->arg, &en, e) < 0)
        return -1;
    if (!S_ISDIR(en.is.mode))
        return 0;
    fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0)
        return say_sys(e, "open", w->path);
    return walk_dir(w, fd, depth + 1, e);
}

static int walk_dir(struct walk *w, int fd, unsigned depth, struct err *e)
{
    struct names names = {.text = BUF_INIT(NAMES_MAX)};
    size_t len = w->len;
    int r = names_read(fd, &names, e);

    for (size_t i = 0; r == 0 && i < names.n; i++) {
        size_t n = strlen(names.list[i]), sep = len > 0;

        if (len + sep + n + 1 > sizeof(w->path) || depth >= PATH_DEPTH_MAX) {
            r = err_set(e, ERR_TOO_LARGE, "'%.80s...' is too long or too deep for an archive",
                        w->path);
            break;
        }
        if (sep)
            w->path[len] = '/';
        memcpy(w->path + len + sep, names.list[i], n + 1);
        w->len = len + sep + n;
        r = walk_one(w, fd, names.list[i], depth, e);
        w->len = len;
        w->path[len] = '\0';
    }
    names_free(&names);
    return r;
}

int layer_walk(layer_each *each, void *arg, struct err *e)
{
    static struct walk w; /* too large for the stack */
    autofd int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct layer_entry en = {.dir = fd, .name = ".", .path = ""};

    w = (struct walk){.each = each, .arg = arg};
    if (fd < 0)
        return err_sys(e, "open /");
    if (look(fd, ".", true, &en.is, e) <= 0 || each(arg, &en, e) < 0)
        return -1;
    return walk_dir(&w, fd, 0, e);
}

/* ---- the list ---- */

void layer_digest_begin(struct layer_digest *d)
{
    sha256_init(&d->hash);
}

void layer_digest_add(struct layer_digest *d, const struct layer_file *f, const char *path)
{
    bool dir = S_ISDIR(f->mode);
    char line[160];

    snprintf(line, sizeof(line), "%o %u:%u %llu %lld ", f->mode, f->uid, f->gid,
             (unsigned long long)f->size, dir || !S_ISREG(f->mode) ? 0ll : (long long)f->mtime_s);
    sha256_add(&d->hash, line, strlen(line));
    sha256_add(&d->hash, path, strlen(path) + 1);
}

static int put_entry(void *arg, const struct layer_entry *en, struct err *e)
{
    (void)arg;
    if (fwrite(&en->is, sizeof(en->is), 1, stdout) != 1 ||
        fwrite(en->path, 1, en->is.len, stdout) != en->is.len)
        return err_sys(e, "write the list");
    return 0;
}

int layer_list_main(int argc, char **argv)
{
    struct err e;

    (void)argv;
    if (argc != 0)
        return 64;
    if (layer_walk(put_entry, NULL, &e) < 0)
        return say_failed(stderr, &e);
    return fflush(stdout) == 0 ? 0 : 1;
}
