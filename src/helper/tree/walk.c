/* walk.c - see walk.h. */
#include "helper/tree/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/own.h"

#define NAMES_MAX (512u << 20) /* bytes of names of one directory */
#define ENTRIES_BUF (64u << 10)

struct state {
    const struct walk *w;
    char path[PATH_ROOM];
    size_t len, top; /* length of path, and of the path of the tree */
    dev_t dev;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(int dir, struct buf *names, size_t *count)
{
    static char raw[ENTRIES_BUF] __attribute__((aligned(8)));
    long n;

    *count = 0;
    while ((n = syscall(SYS_getdents64, dir, raw, sizeof(raw))) > 0) {
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const void *)(raw + at);

            at += d->d_reclen;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                continue;
            if (buf_add(names, d->d_name, strlen(d->d_name) + 1) < 0) {
                errno = ENOMEM;
                return -1;
            }
            ++*count;
        }
    }
    return n < 0 ? -1 : 0;
}

char **walk_names(int dir, size_t *ret_n, void **ret_block)
{
    struct buf names = BUF_INIT(NAMES_MAX);
    char **list, *at;

    if (read_names(dir, &names, ret_n) < 0) {
        buf_free(&names);
        return NULL;
    }
    list = malloc((*ret_n + 1) * sizeof(*list));
    *ret_block = names.mem;
    at = buf_data(&names);
    for (size_t i = 0; list != NULL && i < *ret_n; i++, at += strlen(at) + 1)
        list[i] = at;
    if (list != NULL && *ret_n > 0)
        qsort(list, *ret_n, sizeof(*list), by_name);
    return list;
}

static int go(struct state *s, int dir, unsigned depth, struct err *e);

static bool passes(const struct state *s, int error)
{
    return s->w->skip && (error == EACCES || error == EPERM);
}

static int visit(struct state *s, int dir, const char *name, unsigned depth, struct err *e)
{
    struct walk_entry w = {.dir = dir, .name = name, .path = s->path, .depth = depth};
    bool goes_in;
    enum walk_next next;
    int r;

    w.below = s->path + s->top + (s->path[s->top] == '/');
    if (fstatat(dir, name, &w.st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || passes(s, errno) ? 0 : err_path(e, "%.200s", s->path);
    e->msg[0] = '\0';
    next = s->w->enter == NULL ? WALK_ON : s->w->enter(s->w->arg, &w, e);
    if (next == WALK_STOP)
        return e->msg[0] != '\0' ? -1 : 1;
    goes_in = next == WALK_ON && S_ISDIR(w.st.st_mode) &&
              (s->w->depth == 0 || depth < s->w->depth) &&
              !(s->w->one_mount && w.st.st_dev != s->dev);
    r = 0;
    if (goes_in) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        /* without permission, or replaced meanwhile: skip it */
        if (fd < 0 && !passes(s, errno) && errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
            return err_path(e, "%.200s", s->path);
        r = fd < 0 ? 0 : go(s, fd, depth + 1, e);
    }
    if (r == 0 && S_ISDIR(w.st.st_mode) && s->w->leave != NULL &&
        s->w->leave(s->w->arg, &w, e) == WALK_STOP)
        return -1;
    return r;
}

/* Takes the fd. */
static int go(struct state *s, int dir, unsigned depth, struct err *e)
{
    autofd int fd = dir;
    autofree char **names = NULL;
    autofree void *block = NULL;
    size_t n, len = s->len;
    int r = 0;

    if (depth > WALK_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "%.200s: more than %u directories deep", s->path,
                       WALK_DEPTH_MAX);
    names = walk_names(fd, &n, &block);
    if (names == NULL && errno == ENOENT && depth > 1)
        return 0; /* removed after it was opened */
    if (names == NULL)
        return passes(s, errno) ? 0 : err_path(e, "%.200s", s->path);
    for (size_t i = 0; r == 0 && i < n; i++) {
        size_t part = strlen(names[i]);
        bool slash = len > 0 && s->path[len - 1] != '/';

        if (len + slash + part >= sizeof(s->path))
            return err_set(e, ERR_LIMIT, "%.200s: paths below are too long", s->path);
        if (slash)
            s->path[len] = '/';
        memcpy(s->path + len + slash, names[i], part + 1);
        s->len = len + slash + part;
        r = visit(s, fd, names[i], depth, e);
        s->len = len;
        s->path[len] = '\0';
    }
    return r;
}

int walk_below(const struct walk *w, int top, const char *path, struct err *e)
{
    struct state s = {.w = w, .len = strlen(path), .top = strlen(path)};
    struct stat st;

    if (s.len >= sizeof(s.path) || fstat(top, &st) < 0) {
        close(top);
        return err_set(e, ERR_INVALID, "the path is too long");
    }
    strcpy(s.path, path);
    s.dev = st.st_dev;
    return go(&s, top, 1, e);
}
