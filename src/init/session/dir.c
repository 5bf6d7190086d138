/* dir.c - see dir.h. */
#include "init/session/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "init/session/script.h"

#define NUMBERS_MAX 10000u
#define TEXT_ROOM 512u

static int refused(struct err *e, const char *what)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return err_set(e, ERR_LIMIT,
                       "session: no room left for the files of sessions; delete one first");
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        return err_set(e, ERR_UNAVAILABLE, "session: open %s: %s", what, strerror(errno));
    return err_sys(e, "session: open %s", what);
}

static int make_dir(struct session_dir *d, const char *root, struct err *e)
{
    static unsigned next;

    for (unsigned i = 0; i < NUMBERS_MAX; i++) {
        str_fmt(d->path, sizeof(d->path), "%s/%u", root, next = next % NUMBERS_MAX + 1);
        if (mkdir(d->path, 0711) == 0) {
            d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            return d->fd < 0 ? refused(e, d->path) : 0;
        }
        if (errno == ENOENT)
            return err_set(e, ERR_UNSUPPORTED, "create session: %s does not exist in this sandbox",
                           root);
        if (errno != EEXIST) {
            refused(e, d->path);
            break;
        }
    }
    if (errno == EEXIST)
        err_set(e, ERR_LIMIT, "create session: all %u directories are in use; delete one first",
                NUMBERS_MAX);
    d->path[0] = '\0';
    return -1;
}

static int make_fifo(struct session_dir *d, const char *name, struct err *e)
{
    if (mkfifoat(d->fd, name, 0600) < 0 ||
        fchownat(d->fd, name, d->uid, d->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return refused(e, name);
    return 0;
}

static int open_fifo(struct session_dir *d, const char *name, int flags, struct err *e)
{
    int fd = openat(d->fd, name, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? refused(e, name) : fd;
}

int session_dir_make(struct session_dir *d, const char *root, const struct user *u, struct err *e)
{
    static const char *const fifos[] = {"c", "s", "1", "2"};

    *d = (struct session_dir){.fd = -1, .uid = u->uid, .gid = u->gid};
    if (make_dir(d, root, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(fifos); i++)
        if (make_fifo(d, fifos[i], e) < 0)
            return -1;
    return 0;
}

int session_dir_begin(struct session_dir *d, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_ROOM);
    autofd int fd = openat(d->fd, SESSION_SCRIPT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

    script_begin(&text, d->path);
    if (fd < 0 || text.failed || write(fd, buf_data(&text), text.len) != (ssize_t)text.len)
        return refused(e, SESSION_SCRIPT);
    return 0;
}

void session_dir_remove(struct session_dir *d)
{
    DIR *list = d->fd >= 0 ? fdopendir(d->fd) : NULL;
    struct dirent *de;

    while (list != NULL && (de = readdir(list)) != NULL)
        unlinkat(d->fd, de->d_name, 0);
    if (list != NULL)
        closedir(list);
    else
        drop_fd(&d->fd);
    if (d->path[0] != '\0')
        rmdir(d->path);
    d->fd = -1;
    d->path[0] = '\0';
}

static const char *const outputs[] = {"1", "2"};

int session_dir_renew(struct session_dir *d, int stream, struct err *e)
{
    if (unlinkat(d->fd, outputs[stream], 0) < 0)
        return refused(e, outputs[stream]);
    return make_fifo(d, outputs[stream], e);
}

int session_dir_output(struct session_dir *d, int stream, struct err *e)
{
    return open_fifo(d, outputs[stream], O_RDONLY, e);
}

int session_dir_hold(struct session_dir *d, int stream, struct err *e)
{
    return open_fifo(d, outputs[stream], O_WRONLY, e);
}

int session_dir_calls(struct session_dir *d, struct err *e)
{
    return open_fifo(d, "c", O_RDWR, e);
}

int session_dir_replies(struct session_dir *d, struct err *e)
{
    return open_fifo(d, "s", O_RDWR, e);
}

void session_dir_input_name(uint64_t number, char out[SHELL_INPUT_MAX])
{
    out[0] = '\0';
    if (number != 0)
        str_fmt(out, SHELL_INPUT_MAX, "i%llu", (unsigned long long)number);
}

int session_dir_input(struct session_dir *d, uint64_t number, int *ret, struct err *e)
{
    char name[SHELL_INPUT_MAX];

    session_dir_input_name(number, name);
    *ret = openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    if (*ret < 0 || fchown(*ret, d->uid, d->gid) < 0)
        return refused(e, "stdin");
    return 0;
}

void session_dir_drop_input(struct session_dir *d, uint64_t number)
{
    char name[SHELL_INPUT_MAX];

    session_dir_input_name(number, name);
    unlinkat(d->fd, name, 0);
}
