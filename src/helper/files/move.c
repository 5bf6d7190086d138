/* move.c - copies and moves from one path to another, all or nothing.
 *
 *   path to=PATH [overwrite] [parents] [owner=USER:GROUP]
 *
 * The copy is made next to its target under a temporary name and renamed when it is complete;
 * only a directory that is merged into an existing one is filled in place. A move is a
 * rename; between filesystems it is a copy, after which the source is removed. */
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "helper/call/names.h"
#include "helper/call/record.h"
#include "helper/files/copy.h"
#include "helper/files/files.h"
#include "helper/files/remove.h"
#include "helper/tree/tree.h"
#include "helper/tree/where.h"

/* SIGTERM: the client is gone; see INIT_START_LEASH. An incomplete copy is removed; after the
 * rename the call completes. */
static volatile sig_atomic_t stopped;

static void on_term(int signo)
{
    (void)signo;
    stopped = 1;
}

struct way {
    char from[PATH_ROOM], to[PATH_ROOM];
    char *from_name, *to_name; /* the last parts; point into them */
    int from_dir, to_dir;
    struct stat st, target;
    bool overwrite, exists;
    struct copy copy;
};

/* Refuses to copy a directory into itself, under whatever name. */
static int check_inside(const struct way *w, struct err *e)
{
    autofree char *from = realpath(w->from, NULL), *to = NULL;
    char parent[PATH_ROOM];
    size_t n;

    if (!S_ISDIR(w->st.st_mode) || from == NULL)
        return 0;
    str_fmt(parent, sizeof(parent), "%s", w->to);
    *strrchr(parent, '/') = '\0';
    to = realpath(parent[0] == '\0' ? "/" : parent, NULL);
    n = strlen(from);
    if (to != NULL && strncmp(to, from, n) == 0 && (to[n] == '/' || to[n] == '\0' || n == 1))
        return err_set(e, ERR_INVALID,
                       "%.200s: is below the directory that is to be copied or moved", w->to);
    return 0;
}

static int prepare(struct way *w, const struct args *a, struct err *e)
{
    const char *to = args_get(a, "to");
    struct sigaction sa = {.sa_handler = on_term, .sa_flags = SA_RESTART};

    sigaction(SIGTERM, &sa, NULL);
    w->overwrite = w->copy.overwrite = args_has(a, "overwrite");
    if (to == NULL)
        return err_set(e, ERR_INVALID, "to: missing");
    if (names_parse_new(args_get(a, "owner"), &w->copy.uid, &w->copy.gid, e) < 0 ||
        where_path(args_get(a, "path"), w->from, e) < 0 || where_path(to, w->to, e) < 0)
        return -1;
    if ((w->from_dir = where_parent(w->from, &w->from_name, e)) < 0)
        return -1;
    if (fstatat(w->from_dir, w->from_name, &w->st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_path(e, "%.200s", w->from);
    if (args_has(a, "parents") && where_make_parents(w->to, w->copy.uid, w->copy.gid, e) < 0)
        return -1;
    if ((w->to_dir = where_parent(w->to, &w->to_name, e)) < 0)
        return -1;
    w->exists = fstatat(w->to_dir, w->to_name, &w->target, AT_SYMLINK_NOFOLLOW) == 0;
    if (w->exists && !w->overwrite) {
        errno = EEXIST;
        return err_path(e, "%.200s", w->to);
    }
    return check_inside(w, e);
}

static int rename_to(const struct way *w, int dir, const char *name)
{
    return (int)syscall(SYS_renameat2, dir, name, w->to_dir, w->to_name,
                        w->overwrite ? 0 : RENAME_NOREPLACE);
}

/* A temporary name next to the target, so on the same filesystem. */
static int copy_beside(struct way *w, struct err *e)
{
    char temp[PATH_BESIDE_ROOM];
    struct err none;

    path_beside(temp);
    if (copy_tree(&w->copy, w->from_dir, w->from_name, w->from, w->to_dir, temp, w->to, e) == 0) {
        if (rename_to(w, w->to_dir, temp) == 0)
            return 0;
        err_path(e, "%.200s", w->to);
    }
    tree_remove(w->to_dir, temp, &none); /* also directories whose copied mode forbids it */
    return -1;
}

static int answer(const struct way *w, struct file_done *done, struct err *e)
{
    done->count = w->copy.count;
    done->bytes = w->copy.bytes;
    return record_entry_at(w->to_dir, w->to_name, w->to, e);
}

int file_copy(const struct args *a, struct file_done *done, struct err *e)
{
    static struct way w = {.from_dir = -1, .to_dir = -1, .copy.stop = &stopped};
    bool of_dir, over_dir;
    int r;

    if (prepare(&w, a, e) < 0)
        return -1;
    of_dir = S_ISDIR(w.st.st_mode);
    over_dir = w.exists && S_ISDIR(w.target.st_mode);
    if (w.exists && w.target.st_ino == w.st.st_ino && w.target.st_dev == w.st.st_dev)
        return err_set(e, ERR_INVALID, "%.200s: source and target are the same", w.to);
    if (w.exists && of_dir != over_dir)
        return err_set(e, ERR_CONFLICT,
                       "%.200s: a directory and another kind of file cannot replace each other",
                       w.to);
    if (of_dir && !over_dir)
        r = copy_beside(&w, e);
    else
        r = copy_tree(&w.copy, w.from_dir, w.from_name, w.from, w.to_dir, w.to_name, w.to, e);
    return r < 0 ? -1 : answer(&w, done, e);
}

int file_move(const struct args *a, struct file_done *done, struct err *e)
{
    static struct way w = {.from_dir = -1, .to_dir = -1, .copy.stop = &stopped};
    uint64_t gone = 0;

    if (prepare(&w, a, e) < 0)
        return -1;
    if (rename_to(&w, w.from_dir, w.from_name) == 0) {
        w.copy.count = 1;
        return answer(&w, done, e);
    }
    if (errno == EXDEV && w.exists && S_ISDIR(w.target.st_mode))
        errno = ENOTEMPTY;
    if (errno != EXDEV)
        return err_path(e, "%.200s", w.to);
    if (copy_beside(&w, e) < 0 || remove_tree(w.from_dir, w.from_name, w.from, &gone, e) < 0)
        return -1;
    return answer(&w, done, e);
}
