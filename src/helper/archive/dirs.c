/* dirs.c - see dirs.h. */
#include "helper/archive/dirs.h"

#include <fcntl.h>
#include <string.h>

#include "base/own.h"
#include "helper/call/call.h"
#include "helper/tree/tree.h"

struct note {
    struct timespec mtime;
    mode_t mode;
    unsigned room; /* bytes of the path, with NUL and padding for alignment */
};

#define PATH_OF(note) ((const char *)((note) + 1))

void dirs_init(struct dirs *d, size_t max)
{
    buf_init(&d->notes, max);
    d->n = 0;
}

void dirs_free(struct dirs *d)
{
    buf_free(&d->notes);
}

int dirs_note(struct dirs *d, const char *path, mode_t mode, const struct timespec *mtime,
              struct err *e)
{
    size_t len = strlen(path) + 1, room = (len + 7) & ~(size_t)7;
    struct note n = {*mtime, mode, (unsigned)room};
    static const char none[8];

    buf_add(&d->notes, &n, sizeof(n));
    buf_add(&d->notes, path, len);
    buf_add(&d->notes, none, room - len);
    d->n++;
    return d->notes.failed ? err_set(e, ERR_TOO_LARGE,
                                     "too many directories, or their names are "
                                     "too long")
                           : 0;
}

/* A path sorts after its parent, so descending order is deepest first. */
static int descending(const void *x, const void *y)
{
    const struct note *a = *(const struct note *const *)x, *b = *(const struct note *const *)y;
    int r = strcmp(PATH_OF(b), PATH_OF(a));

    return r != 0 ? r : a < b ? -1 : 1;
}

int dirs_finish(struct dirs *d, int fd, struct err *e)
{
    autofree const struct note **all = calloc(d->n + 1, sizeof(*all));
    const char *at = buf_data(&d->notes);

    if (all == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < d->n; i++) {
        all[i] = (const struct note *)(const void *)at;
        at += sizeof(struct note) + all[i]->room;
    }
    qsort(all, d->n, sizeof(*all), descending);
    for (size_t i = 0; i < d->n; i++) {
        const char *path = PATH_OF(all[i]);
        struct timespec t[2] = {all[i]->mtime, all[i]->mtime};
        autofd int dir = -1;

        if (i + 1 < d->n && strcmp(path, PATH_OF(all[i + 1])) == 0)
            continue;
        dir = tree_open(fd, path, O_RDONLY | O_DIRECTORY);
        if (dir < 0 || fchmod(dir, all[i]->mode) < 0 || futimens(dir, t) < 0)
            return say_sys(e, "set mode and time of", path);
    }
    return 0;
}
