/* watch.c - see watch.h. */
#include "helper/watch/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "helper/tree/glob.h"
#include "helper/tree/tree.h"
#include "helper/tree/where.h"
#include "helper/watch/changes.h"
#include "helper/watch/watched.h"

#define MASK                                                                                       \
    (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_EXCL_UNLINK | IN_ONLYDIR)
#define WINDOW_MAX 60000u

struct watch {
    int fd;
    char *root;          /* its path without links... */
    struct stat root_st; /* ...and its inode at the start */
    bool recursive;
    bool ready, full; /* full: no more directories can be watched */
    bool astray;      /* the root is not at its path: it or a directory above was moved */
    const char *over; /* why the watch ended, or NULL */
    struct globs include, exclude;
    struct watches dirs;
    struct changes changes;
    uint64_t now;
    uint32_t cookie; /* of the last IN_MOVED_FROM... */
    int moved;       /* ...and the watch descriptor known at that path, or -1 */
};

static bool is_excluded(const struct watch *w, const char *path)
{
    return globs_match(&w->exclude, path);
}

static bool is_shown(const struct watch *w, const char *path)
{
    return (w->include.n == 0 || globs_match(&w->include, path)) && !is_excluded(w, path);
}

/* Reports a change. False: excluded, or the same as the last one reported for this path. */
static bool report(struct watch *w, enum change what, bool dir, const char *path)
{
    return is_shown(w, path) && changes_add(&w->changes, what, dir, path, w->now);
}

/* ---- directories ---- */

/* The root is not held open: the kernel reports IN_DELETE_SELF only after the last fd is
 * closed. */
static int open_root(struct watch *w)
{
    autofd int fd = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        w->astray |= errno == ENOENT || errno == ENOTDIR;
        return -1;
    }
    if (st.st_dev == w->root_st.st_dev && st.st_ino == w->root_st.st_ino)
        return take_fd(&fd);
    w->astray = true;
    errno = ENOENT;
    return -1;
}

/* Opens a path below the root; -1 if it or the root does not exist. */
static int open_in(struct watch *w, const char *path, int flags)
{
    autofd int root = open_root(w);

    return root < 0 ? -1 : tree_open(root, path, flags);
}

/* Through the fd: the path may be another directory meanwhile. */
static int add(struct watch *w, int fd, uint32_t more)
{
    char path[64];

    str_fmt(path, sizeof(path), "/proc/self/fd/%d", fd);
    return inotify_add_watch(w->fd, path, MASK | more);
}

static void say_full(struct watch *w)
{
    if (!w->full && w->ready)
        changes_lost(&w->changes, "watches");
    w->full = true;
}

enum take {
    TAKE_QUIETLY, /* at the start: do not report the content */
    TAKE_NEW,     /* report the content, unless the directory is already known */
    TAKE_AGAIN,   /* it was reported as created: forget what is known of it, report all */
    TAKE_MOVED,   /* moved here: TAKE_NEW if it is the one known at its old path, else AGAIN */
    TAKE_ALL,     /* do not report, and list also directories that are known */
};

static void list(struct watch *w, struct watched *dir, int fd, enum take how, unsigned depth);

/* After a move: looks again for directories that could not be reached under the old path. */
static void complete(struct watch *w, struct watched *dir, unsigned depth)
{
    char path[PATH_ROOM];
    int fd;

    if (dir->partial && dir->parent != NULL && watched_path(dir->parent, dir->name, path) == 0 &&
        (fd = open_in(w, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) >= 0) {
        dir->partial = false;
        list(w, dir, fd, TAKE_NEW, depth);
    }
    /* list() may move a sibling into this directory, so the list is walked by hand */
    for (struct list *l = dir->children.next; l != &dir->children; l = l->next)
        complete(w, CONTAINER_OF(l, struct watched, link), depth + 1);
}

/* Watches directory `name` in `parent`, and lists it if it is new. Directories that are gone
 * or unreadable are skipped. */
static void take(struct watch *w, struct watched *parent, const char *name, enum take how,
                 unsigned depth)
{
    char path[PATH_ROOM];
    struct watched *known, *dir;
    autofd int fd = -1;
    int wd;

    if (!w->recursive || depth > PATH_DEPTH_MAX || watched_path(parent, name, path) < 0 ||
        is_excluded(w, path))
        return;
    fd = open_in(w, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    wd = fd < 0 ? -1 : add(w, fd, 0);
    if (wd < 0) {
        parent->partial |= fd < 0 && errno == ENOENT;
        if (fd >= 0 && (errno == ENOSPC || errno == ENOMEM))
            say_full(w);
        return;
    }
    known = watched_find(&w->dirs, wd);
    if (how == TAKE_MOVED)
        how = known == NULL || wd == w->moved ? TAKE_NEW : TAKE_AGAIN;
    if (known != NULL && how == TAKE_AGAIN && !watched_is_above(known, parent)) {
        watched_drop(&w->dirs, known, NULL, NULL);
        known = NULL;
    }
    dir = watched_put(&w->dirs, wd, parent, name);
    if (dir == NULL) {
        inotify_rm_watch(w->fd, wd);
        say_full(w);
        return;
    }
    dir->met = how == TAKE_ALL;
    if (known == NULL || how == TAKE_ALL)
        list(w, dir, take_fd(&fd), how, depth);
    else
        complete(w, dir, depth);
}

/* On btrfs a directory fd shows the names at the time of open(), which was before the watch
 * began: open it again. */
static DIR *open_anew(int fd)
{
    autofd int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);

    if (d != NULL)
        take_fd(&again);
    return d;
}

/* Takes the fd. */
static void list(struct watch *w, struct watched *dir, int fd, enum take how, unsigned depth)
{
    autofd int old = fd;
    DIR *d = fd < 0 ? NULL : open_anew(fd);
    char path[PATH_ROOM];
    struct stat st;

    if (d == NULL)
        return;
    drop_fd(&old);
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        bool is_dir = de->d_type == DT_DIR, news = false;

        if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
            watched_path(dir, de->d_name, path) < 0)
            continue;
        if (de->d_type == DT_UNKNOWN)
            is_dir =
                fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
        if (how == TAKE_NEW || how == TAKE_AGAIN)
            news = report(w, CHANGE_CREATE, is_dir, path);
        if (is_dir)
            take(w, dir, de->d_name, news ? TAKE_AGAIN : how, depth + 1);
    }
    closedir(d);
}

static void unwatch(void *arg, int wd)
{
    inotify_rm_watch(((struct watch *)arg)->fd, wd);
}

/* A path was moved out of the tree. If it was a known directory, stop watching it and
 * everything below, whatever has its name now. */
static void left(void *arg, const char *path, bool dir)
{
    char copy[PATH_ROOM], *rest = copy, *name;
    struct watch *w = arg;
    struct watched *at = w->dirs.root;

    if (!dir || !w->recursive)
        return;
    str_fmt(copy, sizeof(copy), "%s", path);
    while (at != NULL && (name = strsep(&rest, "/")) != NULL)
        at = watched_child(at, name, rest == NULL);
    if (at != NULL)
        watched_drop(&w->dirs, at, unwatch, w);
}

static unsigned depth_of(const struct watched *d)
{
    unsigned n = 0;

    for (; d->parent != NULL; d = d->parent)
        n++;
    return n;
}

/* After a queue overflow: there may be directories that are not known, at any depth, and
 * known ones may have moved. Changes from before are reported before the overflow: a client
 * that lists again after it must not get them later. */
static void look_again(struct watch *w)
{
    autofd int fd = w->recursive ? open_root(w) : -1;

    changes_flush(&w->changes);
    changes_lost(&w->changes, "queue");
    if (fd < 0)
        return;
    list(w, w->dirs.root, take_fd(&fd), TAKE_ALL, 0);
    watched_drop_unmet(&w->dirs, unwatch, w);
}

/* ---- events ----
 *
 * When an event is read, its path may already be another file: created or moved there after
 * the event. That file was then listed and reported early, and its own events follow. So: a
 * path whose own event reports it as new, or moves it from a path where it was not known, is
 * reported with all its content; and if another directory was known at the old path of a
 * move, that one is gone. */

/* Whether the directory moved to `path` is not the one that was known at its old path. */
static bool is_another(struct watch *w, const char *path)
{
    autofd int fd = !w->recursive || w->moved < 0 || is_excluded(w, path)
                        ? -1
                        : open_in(w, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    int wd = fd < 0 ? -1 : add(w, fd, 0);

    return wd >= 0 && wd != w->moved;
}

static void on_move(struct watch *w, struct watched *dir, const struct inotify_event *ev,
                    const char *path)
{
    bool is_dir = ev->mask & IN_ISDIR, shown = is_shown(w, path);

    if (ev->mask & IN_MOVED_FROM) {
        const struct watched *known = watched_out(dir, ev->name);

        changes_from(&w->changes, ev->cookie, is_dir, shown, path, w->now);
        w->cookie = ev->cookie;
        w->moved = known != NULL ? known->wd : -1;
        return;
    }
    if (w->cookie != ev->cookie)
        w->moved = -1;
    if (is_dir && is_another(w, path))
        changes_part(&w->changes, ev->cookie);
    if (changes_to(&w->changes, ev->cookie, is_dir, shown, is_excluded(w, path), path, w->now)) {
        /* a directory that was known keeps its watch descriptor, and is not listed again */
        if (is_dir)
            take(w, dir, ev->name, TAKE_MOVED, depth_of(dir) + 1);
        return;
    }
    report(w, CHANGE_CREATE, is_dir, path);
    if (is_dir)
        take(w, dir, ev->name, TAKE_AGAIN, depth_of(dir) + 1);
}

static void on_name(struct watch *w, struct watched *dir, const struct inotify_event *ev)
{
    bool is_dir = ev->mask & IN_ISDIR, news = false;
    char path[PATH_ROOM];

    if (watched_path(dir, ev->name, path) < 0)
        return;
    if (ev->mask & (IN_MOVED_FROM | IN_MOVED_TO))
        on_move(w, dir, ev, path);
    else if (ev->mask & IN_CREATE)
        news = report(w, CHANGE_CREATE, is_dir, path);
    else if (ev->mask & IN_DELETE)
        report(w, CHANGE_DELETE, is_dir, path);
    else if (ev->mask & IN_MODIFY)
        report(w, CHANGE_MODIFY, is_dir, path);
    else if (ev->mask & IN_ATTRIB)
        report(w, CHANGE_ATTRIB, is_dir, path);
    if (is_dir && (ev->mask & IN_CREATE))
        take(w, dir, ev->name, news ? TAKE_AGAIN : TAKE_NEW, depth_of(dir) + 1);
}

static void on_event(struct watch *w, const struct inotify_event *ev)
{
    struct watched *dir = ev->wd >= 0 ? watched_find(&w->dirs, ev->wd) : NULL;

    if (ev->mask & IN_Q_OVERFLOW) {
        look_again(w);
    } else if (dir == NULL) {
        return; /* a late event of a directory that is not watched any more */
    } else if (dir == w->dirs.root && (ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))) {
        w->over = ev->mask & IN_MOVE_SELF ? "moved"
                  : ev->mask & IN_UNMOUNT ? "unmounted"
                                          : "deleted";
    } else if (ev->mask & IN_IGNORED) {
        if (dir != w->dirs.root)
            watched_drop(&w->dirs, dir, unwatch, w);
    } else if (ev->len > 0) {
        on_name(w, dir, ev);
    }
}

/* Reads all pending events before any is reported: they may repeat what a listing found. */
static int take_events(struct watch *w, struct err *e)
{
    static char room[64 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = 0;

    w->now = clock_mono_ms();
    while (w->over == NULL && (n = read(w->fd, room, sizeof(room))) > 0) {
        for (ssize_t at = 0; at < n && w->over == NULL;) {
            const struct inotify_event *ev = (const void *)(room + at);

            on_event(w, ev);
            at += (ssize_t)(sizeof(*ev) + ev->len);
        }
        if (w->changes.n > CHANGES_MAX)
            changes_tell(&w->changes, w->now);
    }
    return w->over == NULL && n < 0 && errno != EAGAIN ? err_sys(e, "read events") : 0;
}

static int run(struct watch *w, struct err *e)
{
    while (w->over == NULL) {
        struct pollfd p = {.fd = w->fd, .events = POLLIN};
        int wait = changes_tell(&w->changes, clock_mono_ms());

        poll(&p, 1, wait);
        if (take_events(w, e) < 0)
            return -1;
        if (w->over != NULL || !w->astray)
            continue;
        /* The root is not at its path. If it was deleted, the kernel reports that soon. Otherwise
         * new directories in it cannot be opened: end the watch rather than miss changes. */
        poll(NULL, 0, CHANGES_MOVE_MS);
        if (take_events(w, e) < 0)
            return -1;
        if (w->over == NULL)
            w->over = "moved";
    }
    w->changes.window_ms = 0;
    while (changes_tell(&w->changes, clock_mono_ms()) >= 0)
        poll(NULL, 0, CHANGES_MOVE_MS);
    drop_fd(&w->fd);
    printf("end %s\n", w->over);
    fflush(stdout);
    for (;;)
        pause();
}

/* ---- start ---- */

static int start(struct watch *w, const char *path, struct err *e)
{
    autofd int fd = where_open(path, O_RDONLY | O_DIRECTORY, e);
    char link[64], real[PATH_ROOM];
    ssize_t n;
    int wd;

    if (fd < 0)
        return -1;
    str_fmt(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, real, sizeof(real) - 1);
    /* chdir("/"): our cwd must not keep the directory from being deleted */
    if (n < 0 || fstat(fd, &w->root_st) < 0 || chdir("/") < 0)
        return err_sys(e, "find the path of the directory");
    w->root = strndup(real, (size_t)n);
    if (w->root == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0 && errno == EMFILE)
        return err_set(e, ERR_LIMIT,
                       "the user of the sandbox has no inotify instances left "
                       "(fs.inotify.max_user_instances)");
    if (w->fd < 0)
        return err_sys(e, "inotify");
    wd = add(w, fd, IN_DELETE_SELF | IN_MOVE_SELF);
    if (wd < 0 && errno == ENOSPC)
        return err_set(e, ERR_LIMIT,
                       "the user of the sandbox has no inotify watches left "
                       "(fs.inotify.max_user_watches)");
    if (wd < 0)
        return say_sys(e, "watch", path);
    if (watched_put(&w->dirs, wd, NULL, "") == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (w->recursive)
        list(w, w->dirs.root, take_fd(&fd), TAKE_QUIETLY, 0);
    puts("ready");
    w->ready = true;
    if (w->full)
        changes_lost(&w->changes, "watches");
    return 0;
}

int watch_main(int argc, char **argv)
{
    static struct watch w;
    uint64_t window;
    size_t includes = 0;
    struct err e;

    if (argc < 3 || str_u64(argv[2], WINDOW_MAX, &window) < 0)
        return 64;
    w = (struct watch){.fd = -1, .recursive = argv[1][0] == 'r'};
    changes_init(&w.changes, stdout, (unsigned)window);
    w.changes.left = left;
    w.changes.arg = &w;
    /* includes come first, then excludes; the marks are removed */
    for (int i = 3; i < argc; i++)
        includes += argv[i]++[0] == '+';
    w.include = (struct globs){argv + 3, includes};
    w.exclude = (struct globs){argv + 3 + includes, (size_t)argc - 3 - includes};
    return start(&w, argv[0], &e) < 0 || run(&w, &e) < 0 ? say_failed(stderr, &e) : 0;
}
