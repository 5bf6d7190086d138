/* list.c - lists a directory, to a given depth.
 *
 *   path [depth=N] [hidden] [sort=name|size|modified] [reverse] [limit=N] [after=CURSOR]
 *   [resolve] [xattrs=PREFIX]: only with sort=name; see record.h
 *
 * By name it is a walk: a directory before its content, the names of one directory in byte
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
    struct args a;
    enum order order;
    bool hidden, reverse;
    uint64_t limit;
    const char *after; /* below the top; or NULL */
    uint64_t after_key;
    struct held *held;
    size_t nheld, cheld;
    struct buf texts;
    struct file_done done;
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

static bool is_above(const char *dir, const char *path)
{
    size_t n = strlen(dir);

    return strncmp(dir, path, n) == 0 && path[n] == '/';
}

/* ---- by name ---- */

static bool is_shown(const struct list *l, const struct walk_entry *w)
{
    return l->hidden || w->name[0] != '.';
}

static void remember(struct list *l, const char *below, uint64_t key)
{
    if (l->order == BY_NAME)
        str_fmt(l->last, sizeof(l->last), "%s", below);
    else
        str_fmt(l->last, sizeof(l->last), "%llu/%s", (unsigned long long)key, below);
}

static enum walk_next stop_at_limit(struct list *l)
{
    l->done.more = 1;
    l->done.after = l->last;
    return WALK_STOP;
}

static enum walk_next show(void *arg, const struct walk_entry *w, struct err *e)
{
    struct list *l = arg;
    struct err gone;

    (void)e;
    if (!is_shown(l, w))
        return WALK_OVER;
    if (l->after != NULL && in_order(w->below, l->after) <= 0)
        return is_above(w->below, l->after) || strcmp(w->below, l->after) == 0 ? WALK_ON
                                                                               : WALK_OVER;
    if (l->done.count == l->limit)
        return stop_at_limit(l);
    if (record_entry_at(w->dir, w->name, w->path, &gone) < 0)
        return WALK_OVER;
    l->done.count++;
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
        if (l->done.count == l->limit) {
            stop_at_limit(l);
            return;
        }
        record_entry(&h->st, buf_data(&l->texts) + h->path,
                     h->target > 0 ? buf_data(&l->texts) + h->target : "");
        l->done.count++;
        remember(l, below, h->key);
    }
}

/* ---- the call ---- */

static int parse_cursor(struct list *l, struct err *e)
{
    const char *after = args_get(&l->a, "after");
    const char *slash = after != NULL ? strchr(after, '/') : NULL;
    char key[24];

    l->after = after;
    if (after == NULL || l->order == BY_NAME)
        return 0;
    if (slash == NULL || (size_t)(slash - after) >= sizeof(key))
        return err_set(e, ERR_INVALID, "after: not a cursor of a listing with this sort");
    snprintf(key, sizeof(key), "%.*s", (int)(slash - after), after);
    if (str_u64(key, UINT64_MAX, &l->after_key) < 0)
        return err_set(e, ERR_INVALID, "after: not a cursor of a listing with this sort");
    l->after = slash + 1;
    return 0;
}

static int parse(struct list *l, struct err *e)
{
    const char *sort = args_get(&l->a, "sort");

    l->order = sort == NULL || strcmp(sort, "name") == 0 ? BY_NAME
               : strcmp(sort, "size") == 0               ? BY_SIZE
                                                         : BY_TIME;
    l->hidden = args_has(&l->a, "hidden");
    l->reverse = args_has(&l->a, "reverse");
    l->limit = args_u64(&l->a, "limit", UINT64_MAX);
    if (l->reverse && l->order == BY_NAME)
        return err_set(e, ERR_INVALID, "reverse: not possible with sort=name");
    return parse_cursor(l, e);
}

static int run(struct list *l, struct err *e)
{
    struct walk w = {.enter = show, .arg = l, .skip = true};
    char path[PATH_ROOM];
    int fd;

    record_also(&l->a);
    if (parse(l, e) < 0 || where_path(args_get(&l->a, "path"), path, e) < 0)
        return -1;
    w.depth = (unsigned)args_u64(&l->a, "depth", 1);
    l->top = strlen(path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_path(e, "%.200s", path);
    if (l->order != BY_NAME)
        w.enter = hold;
    if (walk_below(&w, fd, path, e) < 0)
        return -1;
    if (l->order != BY_NAME)
        show_held(l);
    return 0;
}

int list_main(int argc, char **argv)
{
    static struct list l = {.texts = BUF_INIT(LIST_TEXT_MAX)};
    struct err e;

    l.a = (struct args){argc, argv};
    if (run(&l, &e) < 0) {
        record_flush();
        return say_failed(stderr, &e);
    }
    return record_done(&l.done);
}
