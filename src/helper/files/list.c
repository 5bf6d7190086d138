/* list.c - the entry of one path, and the entries of a directory, to a given depth.
 *
 *   stat  path [follow] [resolve] [xattrs=PREFIX]
 *         one entry, for paths that init does not stat itself
 *   list  path [depth=N] [hidden] [sort=name|size|modified] [reverse] [limit=N] [after=CURSOR]
 *         [resolve] [xattrs=PREFIX]: only with sort=name; see record.h
 *
 * By name a listing is a walk: a directory before its content, the names of one directory in byte
 * order; only the names of the directories on the way are held in memory. By size or time all
 * entries are held, at most LIST_SORT_MAX. The cursor is the path of the last entry below the
 * top; by size or time it is that key, a slash and the path. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/tree/walk.h"
#include "helper/tree/where.h"

#define LIST_SORT_MAX 1000000u
#define LIST_TEXT_MAX (1u << 30)

enum order { BY_NAME, BY_SIZE, BY_TIME };

struct held {
    uint64_t key;
    size_t path, target; /* offsets in texts; target 0: none */
    struct stat st;
};

struct list {
    enum order order;
    bool hidden, reverse;
    uint64_t limit;
    const char *after; /* below the top; or NULL */
    uint64_t after_key;
    struct held *held;
    size_t nheld, cheld;
    struct buf texts;
    struct file_done *done;
    char last[FILE_AFTER_MAX + 1];
    size_t top; /* length of the path of the directory */
};

/* ---- order ---- */

static int rank(char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 1;
}

/* The order of a walk: by the names of the parts, a directory before its content. */
static int in_order(const char *a, const char *b)
{
    for (; *a != '\0' && *a == *b; a++, b++)
        continue;
    return rank(*a) - rank(*b);
}

/* ---- by name ---- */

static bool is_shown(const struct list *l, const struct walk_entry *w)
{
    return l->hidden || w->name[0] != '.';
}

/* After an entry was shown: it is the cursor if the next one is past the limit. */
static void remember(struct list *l, const char *below, uint64_t key)
{
    l->done->count++;
    if (l->order == BY_NAME)
        str_fmt(l->last, sizeof(l->last), "%s", below);
    else
        str_fmt(l->last, sizeof(l->last), "%llu/%s", (unsigned long long)key, below);
}

static bool is_full(struct list *l)
{
    if (l->done->count < l->limit)
        return false;
    l->done->more = 1;
    l->done->after = l->last;
    return true;
}

static enum walk_next show(void *arg, const struct walk_entry *w, struct err *e)
{
    struct list *l = arg;
    size_t n = strlen(w->below);
    struct err gone;

    (void)e;
    if (!is_shown(l, w))
        return WALK_OVER;
    if (l->after != NULL && in_order(w->below, l->after) <= 0) {
        /* shown on an earlier page; what follows the cursor may be below it */
        bool above =
            strncmp(w->below, l->after, n) == 0 && (l->after[n] == '/' || l->after[n] == '\0');

        return above ? WALK_ON : WALK_OVER;
    }
    if (is_full(l))
        return WALK_STOP;
    if (record_entry_at(w->dir, w->name, w->path, &gone) < 0)
        return WALK_OVER;
    remember(l, w->below, 0);
    return WALK_ON;
}

/* ---- by size or time ---- */

static enum walk_next hold(void *arg, const struct walk_entry *w, struct err *e)
{
    struct list *l = arg;
    char target[FILE_PATH_MAX + 1];
    struct held *h;
    ssize_t n;

    if (!is_shown(l, w))
        return WALK_OVER;
    if (l->nheld == LIST_SORT_MAX) {
        err_set(e, ERR_LIMIT, "more than %u entries: only sort=name is possible", LIST_SORT_MAX);
        return WALK_STOP;
    }
    if (l->nheld == l->cheld) {
        size_t cap = l->cheld == 0 ? 256 : 2 * l->cheld;
        struct held *more = realloc(l->held, cap * sizeof(*more));

        if (more == NULL)
            goto no_memory;
        l->held = more;
        l->cheld = cap;
    }
    h = &l->held[l->nheld++];
    *h = (struct held){.st = w->st, .path = l->texts.len};
    h->key = l->order == BY_SIZE ? (uint64_t)w->st.st_size : clock_ns_of(&w->st.st_mtim);
    buf_add(&l->texts, w->path, strlen(w->path) + 1);
    if (S_ISLNK(w->st.st_mode) && (n = readlinkat(w->dir, w->name, target, FILE_PATH_MAX)) > 0) {
        target[n] = '\0';
        h->target = l->texts.len;
        buf_add(&l->texts, target, (size_t)n + 1);
    }
    if (!l->texts.failed)
        return WALK_ON;
no_memory:
    err_set(e, ERR_LIMIT, "no memory for so many entries: only sort=name is possible");
    return WALK_STOP;
}

static int compare(const struct list *l, uint64_t ka, const char *a, uint64_t kb, const char *b)
{
    int r = ka != kb ? (ka < kb ? -1 : 1) : in_order(a, b);

    return l->reverse ? -r : r;
}

static const struct list *sorting; /* for by_key(): qsort() passes no argument */

static const char *below_of(const struct list *l, const struct held *h)
{
    const char *path = buf_data(&l->texts) + h->path + l->top;

    return path + (*path == '/');
}

static int by_key(const void *x, const void *y)
{
    const struct held *a = x, *b = y;

    return compare(sorting, a->key, below_of(sorting, a), b->key, below_of(sorting, b));
}

static void show_held(struct list *l)
{
    sorting = l;
    if (l->nheld > 0)
        qsort(l->held, l->nheld, sizeof(*l->held), by_key);
    for (size_t i = 0; i < l->nheld; i++) {
        const struct held *h = &l->held[i];
        const char *below = below_of(l, h);

        if (l->after != NULL && compare(l, h->key, below, l->after_key, l->after) <= 0)
            continue;
        if (is_full(l))
            return;
        record_entry(&h->st, buf_data(&l->texts) + h->path,
                     h->target > 0 ? buf_data(&l->texts) + h->target : "");
        remember(l, below, h->key);
    }
}

/* ---- the call ---- */

static int parse(struct list *l, const struct args *a, struct err *e)
{
    const char *sort = args_get(a, "sort"), *slash;
    char key[24];

    l->order = sort == NULL || strcmp(sort, "name") == 0 ? BY_NAME
               : strcmp(sort, "size") == 0               ? BY_SIZE
                                                         : BY_TIME;
    l->hidden = args_has(a, "hidden");
    l->reverse = args_has(a, "reverse");
    l->limit = args_u64(a, "limit", UINT64_MAX);
    l->after = args_get(a, "after");
    if (l->reverse && l->order == BY_NAME)
        return err_set(e, ERR_INVALID, "reverse: not possible with sort=name");
    if (l->after == NULL || l->order == BY_NAME)
        return 0;
    slash = strchr(l->after, '/');
    if (slash != NULL)
        snprintf(key, sizeof(key), "%.*s", (int)(slash - l->after), l->after);
    if (slash == NULL || (size_t)(slash - l->after) >= sizeof(key) ||
        str_u64(key, UINT64_MAX, &l->after_key) < 0)
        return err_set(e, ERR_INVALID, "after: not a cursor of a listing with this sort");
    l->after = slash + 1;
    return 0;
}

int file_list(const struct args *a, struct file_done *done, struct err *e)
{
    static struct list l = {.texts = BUF_INIT(LIST_TEXT_MAX)};
    struct walk w = {.arg = &l, .skip = true, .depth = (unsigned)args_u64(a, "depth", 1)};
    char path[PATH_ROOM];
    int fd;

    record_also(a);
    l.done = done;
    if (parse(&l, a, e) < 0 || where_path(args_get(a, "path"), path, e) < 0)
        return -1;
    l.top = strlen(path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_path(e, "%.200s", path);
    w.enter = l.order == BY_NAME ? show : hold;
    if (walk_below(&w, fd, path, e) < 0)
        return -1;
    if (l.order != BY_NAME)
        show_held(&l);
    return 0;
}

int file_stat(const struct args *a, struct file_done *done, struct err *e)
{
    char path[PATH_ROOM];
    autofd int fd = -1;

    record_also(a);
    if (where_path(args_get(a, "path"), path, e) < 0)
        return -1;
    done->count = 1;
    if (!args_has(a, "follow"))
        return record_entry_at(AT_FDCWD, path, path, e);
    fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? err_path(e, "%.200s", path) : record_entry_of(fd, path, e);
}
