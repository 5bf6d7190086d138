/* dirs.c - see dirs.h. */
#include "helper/dirs.h"

#include <fcntl.h>
#include <string.h>

#include "base/own.h"
#include "helper/say.h"
#include "helper/tree.h"

struct note {
    struct timespec mtime;
    mode_t mode;
    unsigned room; /* of the path, with its NUL and what keeps the next note aligned */
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

/* A path sorts behind its beginning, so backwards is deepest first. */
static int backwards(const void *x, const void *y)
{
    const struct note *a = *(const struct note *const *)x, *b = *(const struct note *const *)y;
    int r = strcmp(PATH_OF(b), PATH_OF(a));

    return r != 0 ? r : a < b ? -1 : 1;
}

static int finish_one(const struct note *n, int top, struct err *e)
{
    autofd int fd = tree_open(top, PATH_OF(n), O_RDONLY | O_DIRECTORY);
    struct timespec t[2] = {n->mtime, n->mtime};

    if (fd < 0 || fchmod(fd, n->mode) < 0 || futimens(fd, t) < 0)
        return say_sys(e, "set mode and time of", PATH_OF(n));
    return 0;
}

int dirs_finish(struct dirs *d, int fd, struct err *e)
{
    autofree const struct note **all = calloc(d->n + 1, sizeof(*all));
    const char *at = buf_data(&d->notes);
    int r = 0;

    if (all == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < d->n; i++) {
        all[i] = (const struct note *)(const void *)at;
        at += sizeof(struct note) + all[i]->room;
    }
    qsort(all, d->n, sizeof(*all), backwards);
    for (size_t i = 0; r == 0 && i < d->n; i++)
        if (i + 1 == d->n || strcmp(PATH_OF(all[i]), PATH_OF(all[i + 1])) != 0)
            r = finish_one(all[i], fd, e);
    return r;
}
