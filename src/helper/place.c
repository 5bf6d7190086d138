/* place.c - see place.h. */
#include "helper/place.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/say.h"
#include "helper/tree.h"
#include "helper/unpack.h"
#include "helper/where.h"
#include "json/read.h"

#define SWAPS_MAX 5 /* tries, while somebody else makes and removes the directory */

/* The sender is gone; see INIT_START_LEASH. */
static volatile sig_atomic_t stopped;

static void on_term(int signo)
{
    (void)signo;
    stopped = 1;
}

struct place {
    const char *path, *flags; /* as the caller gave them */
    struct unpack_count count;
    int parent;                                     /* all or nothing: of the directory... */
    char target[PATH_ROOM], name[PATH_BESIDE_ROOM]; /* ...its path, and what is filled beside it */
    char left[PATH_ROOM + 64];
};

static bool has(const struct place *p, char flag)
{
    return strchr(p->flags, flag) != NULL;
}

static int step(void *arg, struct err *e)
{
    (void)arg;
    return stopped ? err_set(e, ERR_GONE, "the sender went away") : 0;
}

static int fill(struct place *p, int fd, unsigned flags, struct err *e)
{
    autosource struct source *from = source_open(STDIN_FILENO, &stopped, e);
    struct unpack_opts o = {.fd = fd,
                            .flags = flags | (has(p, 'o') ? UNPACK_OWNERS : 0) |
                                     (has(p, 'l') ? UNPACK_LINKS : 0),
                            .count = &p->count,
                            .step = step};

    return from == NULL || unpack(from, &o, e) < 0 ? -1 : step(NULL, e);
}

/* ---- laid over ---- */

static int lay_over(struct place *p, struct err *e)
{
    autofd int fd = -1;

    if (has(p, 'p') && where_make(p->path, e) < 0)
        return -1;
    fd = where_open(p->path, O_RDONLY | O_DIRECTORY, e);
    return fd < 0 ? -1 : fill(p, fd, UNPACK_MERGE, e);
}

/* ---- all or nothing ---- */

static int open_parent(struct place *p, struct err *e)
{
    const char *name;
    char up[PATH_ROOM];

    if (where_path(p->path, p->target, e) < 0)
        return -1;
    name = path_name(p->target);
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(e, ERR_INVALID, "'%.200s' cannot be replaced as a whole", p->target);
    str_fmt(up, sizeof(up), "%.*s.", (int)(name - p->target), p->target);
    if (has(p, 'p') && where_make(up, e) < 0)
        return -1;
    p->parent = where_open(up, O_RDONLY | O_DIRECTORY, e);
    return p->parent < 0 ? -1 : 0;
}

/* The mode of what is replaced, unless the archive has one. */
static int make_beside(struct place *p, const char *name, struct err *e)
{
    mode_t mode = 0755;
    struct stat st;
    int fd;

    if (fstatat(p->parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISDIR(st.st_mode))
            return err_set(e, ERR_INVALID, "'%.200s' is no directory", p->target);
        mode = (st.st_mode & 07777) | 0700;
    }
    if (mkdirat(p->parent, p->name, 0700) < 0)
        return say_sys(e, "make a directory beside", p->target);
    fd = tree_open(p->parent, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return say_sys(e, "make a directory beside", p->target);
    return fd;
}

/* What was there is under our name then, and goes. */
static int swap(struct place *p, const char *name, struct err *e)
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

static int replace(struct place *p, struct err *e)
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

static int say_result(const struct place *p, struct err *e)
{
    autojson json_t *all = json_pack(
        "{s:I, s:I, s:I, s:s}", "entries", (json_int_t)p->count.entries, "bytes",
        (json_int_t)p->count.bytes, "skipped", (json_int_t)p->count.skipped, "left", p->left);
    autofree char *text = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);

    if (text == NULL) /* a name that is not UTF-8 */
        return err_set(e, ERR_INTERNAL, "the answer cannot be said");
    printf("R %s\n", text);
    return fflush(stdout) == 0 ? 0 : err_sys(e, "answer");
}

int place_main(int argc, char **argv)
{
    static struct place p;
    struct sigaction sa = {.sa_handler = on_term}; /* no SA_RESTART: a read must end */
    struct err e;
    int r;

    if (argc != 2)
        return 64;
    p = (struct place){.path = argv[0], .flags = argv[1], .parent = -1};
    sigaction(SIGTERM, &sa, NULL);
    r = (has(&p, 'a') ? replace : lay_over)(&p, &e);
    if (r == 0)
        r = say_result(&p, &e);
    return r < 0 ? say_failed(stderr, &e) : 0;
}
