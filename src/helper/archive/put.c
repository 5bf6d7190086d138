/* put.c - see put.h. */
#include "helper/archive/put.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/archive/unpack.h"
#include "helper/call/call.h"
#include "helper/tree/tree.h"
#include "helper/tree/where.h"
#include "json/read.h"

#define SWAPS_MAX 5 /* tries, if another process creates and removes the directory */

/* SIGTERM: the client is gone; see INIT_START_LEASH. */
static volatile sig_atomic_t stopped;

static void on_term(int signo)
{
    (void)signo;
    stopped = 1;
}

struct put {
    const char *path, *flags; /* as the caller gave them */
    struct unpack_count count;
    /* all or nothing: */
    int parent;                                     /* the parent of the directory */
    char target[PATH_ROOM], name[PATH_BESIDE_ROOM]; /* its path; the temporary name next to it */
    char left[PATH_ROOM + 64];                      /* see put.h */
};

static bool has(const struct put *p, char flag)
{
    return strchr(p->flags, flag) != NULL;
}

static int step(void *arg, struct err *e)
{
    (void)arg;
    return stopped ? err_set(e, ERR_GONE, "the client went away") : 0;
}

static int fill(struct put *p, int fd, unsigned flags, struct err *e)
{
    autosource struct source *from = source_open(STDIN_FILENO, &stopped, e);
    struct unpack_opts o = {.fd = fd,
                            .flags = flags | (has(p, 'o') ? UNPACK_OWNERS : 0) |
                                     (has(p, 'l') ? UNPACK_LINKS : 0),
                            .count = &p->count,
                            .step = step};

    return from == NULL || unpack(from, &o, e) < 0 ? -1 : step(NULL, e);
}

/* ---- over existing content ---- */

static int unpack_over(struct put *p, struct err *e)
{
    autofd int fd = -1;

    if (has(p, 'p') && where_make(p->path, e) < 0)
        return -1;
    fd = where_open(p->path, O_RDONLY | O_DIRECTORY, e);
    return fd < 0 ? -1 : fill(p, fd, UNPACK_MERGE, e);
}

/* ---- all or nothing ---- */

static int open_parent(struct put *p, struct err *e)
{
    const char *name;
    char up[PATH_ROOM];

    if (where_path(p->path, p->target, e) < 0)
        return -1;
    name = path_name(p->target);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(e, ERR_INVALID, "'%.200s' cannot be replaced: the path must end in a name",
                       p->target);
    str_fmt(up, sizeof(up), "%.*s.", (int)(name - p->target), p->target);
    if (has(p, 'p') && where_make(up, e) < 0)
        return -1;
    p->parent = where_open(up, O_RDONLY | O_DIRECTORY, e);
    return p->parent < 0 ? -1 : 0;
}

/* Creates the temporary directory, with the mode of the one it replaces. */
static int make_beside(struct put *p, const char *name, struct err *e)
{
    mode_t mode = 0755;
    struct stat st;
    int fd;

    if (fstatat(p->parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISDIR(st.st_mode))
            return err_set(e, ERR_INVALID, "'%.200s' is not a directory", p->target);
        mode = (st.st_mode & 07777) | 0700;
    }
    if (mkdirat(p->parent, p->name, 0700) < 0)
        return say_sys(e, "create a directory next to", p->target);
    fd = tree_open(p->parent, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return say_sys(e, "create a directory next to", p->target);
    return fd;
}

/* Exchanges the two directories, and removes the old one under the temporary name. */
static int swap(struct put *p, const char *name, struct err *e)
{
    struct err why;

    for (int i = 0; i < SWAPS_MAX; i++) {
        if (renameat2(p->parent, p->name, p->parent, name, RENAME_EXCHANGE) == 0) {
            if (tree_remove(p->parent, p->name, &why) < 0)
                str_fmt(p->left, sizeof(p->left), "%.*s%s", (int)(name - p->target), p->target,
                        p->name);
            return 0;
        }
        if (errno != ENOENT)
            break;
        if (renameat2(p->parent, p->name, p->parent, name, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return say_sys(e, "replace", p->target);
}

static int replace(struct put *p, struct err *e)
{
    const char *name;
    struct err ignored;
    autofd int fd = -1;
    int r;

    if (open_parent(p, e) < 0)
        return -1;
    name = path_name(p->target);
    path_beside(p->name);
    fd = make_beside(p, name, e);
    r = fd < 0 ? -1 : fill(p, fd, 0, e);
    if (r == 0)
        r = swap(p, name, e);
    if (r < 0 && fd >= 0)
        tree_remove(p->parent, p->name, &ignored);
    return r;
}

static int say_result(const struct put *p, struct err *e)
{
    autojson json_t *all = json_pack(
        "{s:I, s:I, s:I, s:s}", "entries", (json_int_t)p->count.entries, "bytes",
        (json_int_t)p->count.bytes, "skipped", (json_int_t)p->count.skipped, "left", p->left);
    autofree char *text = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);

    if (text == NULL)
        return err_set(e, ERR_INTERNAL, "the answer has a path that is not UTF-8");
    printf("R %s\n", text);
    return fflush(stdout) == 0 ? 0 : err_sys(e, "answer");
}

int put_main(int argc, char **argv)
{
    static struct put p;
    struct sigaction sa = {.sa_handler = on_term}; /* no SA_RESTART: a read must end */
    struct err e;
    int r;

    if (argc != 2)
        return 64;
    p = (struct put){.path = argv[0], .flags = argv[1], .parent = -1};
    sigaction(SIGTERM, &sa, NULL);
    r = (has(&p, 'a') ? replace : unpack_over)(&p, &e);
    if (r == 0)
        r = say_result(&p, &e);
    return r < 0 ? say_failed(stderr, &e) : 0;
}
