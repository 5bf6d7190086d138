/* remove.c - see remove.h.
 *
 *   path [recursive] */
#include "helper/files/remove.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "helper/call/call.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/tree/walk.h"
#include "helper/tree/where.h"

static enum walk_next take_file(void *arg, const struct walk_entry *w, struct err *e)
{
    uint64_t *count = arg;

    if (S_ISDIR(w->st.st_mode))
        return WALK_ON;
    if (unlinkat(w->dir, w->name, 0) < 0 && errno != ENOENT) {
        err_path(e, "%.200s", w->path);
        return WALK_STOP;
    }
    ++*count;
    return WALK_OVER;
}

static enum walk_next take_dir(void *arg, const struct walk_entry *w, struct err *e)
{
    uint64_t *count = arg;

    if (unlinkat(w->dir, w->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
        err_path(e, "%.200s", w->path);
        return WALK_STOP;
    }
    ++*count;
    return WALK_ON;
}

int remove_tree(int dir, const char *name, const char *path, uint64_t *count, struct err *e)
{
    struct walk w = {.enter = take_file, .leave = take_dir, .arg = count};
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && walk_below(&w, fd, path, e) < 0)
        return -1;
    if (fd < 0 && errno != ENOTDIR && errno != ELOOP && errno != EACCES)
        return err_path(e, "%.200s", path);
    if (unlinkat(dir, name, fd >= 0 || errno == EACCES ? AT_REMOVEDIR : 0) < 0)
        return err_path(e, "%.200s", path);
    ++*count;
    return 0;
}

int file_remove(const struct args *a, struct file_done *done, struct err *e)
{
    char path[PATH_ROOM], *name;
    autofd int dir = -1;
    struct stat st;

    if (where_path(args_get(a, "path"), path, e) < 0 || (dir = where_parent(path, &name, e)) < 0)
        return -1;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_path(e, "%.200s", path);
    if (args_has(a, "recursive"))
        return remove_tree(dir, name, path, &done->count, e);
    if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        return err_path(e, "%.200s", path);
    done->count = 1;
    return 0;
}
