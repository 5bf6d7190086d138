/* write.c - a file from stdin: received whole, then in one step, or nothing of it.
 *
 *   path [mode=N] [owner=USER:GROUP [chown]] [append] [atomic] [parents] [new] [gzip] [match=TAGS]
 *   [xattr_prefix=TEXT [xattrs=LINES]]
 *
 * With from=PATH, once for each, those files are the body, and go when it is written.
 * An existing file is overwritten in place, unless it is to be atomic: then a new one
 * takes its name. `new` and `match` are conditions (base/etag.h).
 * `owner` is whose everything becomes that is made here, and with `chown` also what was there. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/etag.h"
#include "base/own.h"
#include "base/str.h"
#include "base/xattr.h"
#include "helper/args.h"
#include "helper/files.h"
#include "helper/gather.h"
#include "helper/inplace.h"
#include "helper/nameless.h"
#include "helper/names.h"
#include "helper/record.h"
#include "helper/say.h"
#include "helper/spool.h"
#include "helper/where.h"

#define LOCK_MS 3000u  /* that we wait for others who write it... */
#define LOCK_STEP_MS 2 /* ...and look whether they still do */
#define TRIES_MAX 20u  /* while others put files of their own there */
#define LINKS_MAX 40u  /* to follow one behind the other, as the kernel does */

struct job {
    struct args a;
    char path[PATH_ROOM]; /* where it is, through links */
    char dir[PATH_ROOM];
    int spool;
    int held; /* what is there, locked; or -1 */
    uid_t uid;
    gid_t gid;
    uint32_t mode; /* FILE_MODE_NONE: as it is, or as usual */
    bool exists;
    struct stat was;
};

/* ---- where ---- */

/* Where a link leads at whose end nothing is: there it is made, as any program would. */
static int follow(char path[PATH_ROOM])
{
    char target[PATH_ROOM], next[2 * PATH_ROOM];
    ssize_t n;

    for (unsigned i = 0; i < LINKS_MAX; i++) {
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : -1;
        target[n] = '\0';
        n = target[0] == '/' ? 0 : path_name(path) - path;
        if (snprintf(next, sizeof(next), "%.*s%s", (int)n, path, target) >= (int)PATH_ROOM) {
            errno = ENAMETOOLONG;
            return -1;
        }
        strcpy(path, next);
    }
    errno = ELOOP;
    return -1;
}

/* The real name of what is there, or will be. */
static int resolve(struct job *j, struct err *e)
{
    const char *named = args_get(&j->a, "path");
    char *real;

    if (where_path(named, j->path, e) < 0)
        return -1;
    if (named[strlen(named) - 1] == '/') { /* only a directory can be meant */
        errno = EISDIR;
        return err_path(e, "%.200s", named);
    }
    real = realpath(j->path, NULL);
    if (real != NULL && strlen(real) < sizeof(j->path))
        strcpy(j->path, real);
    else if (real == NULL && errno == ENOENT && follow(j->path) < 0)
        return err_path(e, "%.200s", j->path);
    free(real);
    str_fmt(j->dir, sizeof(j->dir), "%s", j->path);
    *strrchr(j->dir, '/') = '\0';
    if (j->dir[0] == '\0')
        strcpy(j->dir, "/");
    return 0;
}

/* ---- conditions ---- */

static int look(struct job *j, struct err *e)
{
    j->exists = stat(j->path, &j->was) == 0;
    if (!j->exists && errno != ENOENT)
        return err_path(e, "%.200s", j->path);
    if (j->exists && !S_ISREG(j->was.st_mode))
        return err_set(e, ERR_INVALID, "%.200s: is %s", j->path,
                       S_ISDIR(j->was.st_mode) ? "a directory" : "not a regular file");
    return 0;
}

static int check(struct job *j, struct err *e)
{
    const char *match = args_get(&j->a, "match");
    char tag[ETAG_MAX];

    if (look(j, e) < 0)
        return -1;
    if (j->exists && args_has(&j->a, "new"))
        return err_set(e, ERR_PRECONDITION, "%.200s: there is one already", j->path);
    if (match == NULL)
        return 0;
    if (j->exists)
        etag_of(&j->was, tag);
    if (!j->exists || !etag_listed(match, tag))
        return err_set(e, ERR_PRECONDITION, "%.200s: it is another one than expected", j->path);
    return 0;
}

/* ---- the step ---- */

static int label(const struct job *j, int fd)
{
    const char *prefix = args_get(&j->a, "xattr_prefix"), *lines = args_get(&j->a, "xattrs");

    return prefix == NULL ? 0 : xattr_replace(fd, prefix, lines != NULL ? lines : "");
}

/* Other bytes than those that somebody let run as their owner: as with any write, the bits
 * that said so go. */
static int dress(const struct job *j, struct err *e)
{
    mode_t mode = j->mode != FILE_MODE_NONE ? j->mode : j->exists ? j->was.st_mode & 01777 : 0644;
    uid_t uid = j->uid != (uid_t)-1 ? j->uid : j->exists ? j->was.st_uid : (uid_t)-1;
    gid_t gid = j->gid != (gid_t)-1 ? j->gid : j->exists ? j->was.st_gid : (gid_t)-1;
    bool asked = j->uid != (uid_t)-1 || j->gid != (gid_t)-1;

    /* Keeping the old one's owner is a wish: another user's file becomes one's own. */
    if (fchown(j->spool, uid, gid) < 0 && asked)
        return err_path(e, "%.200s", j->path);
    return fchmod(j->spool, mode) < 0 || label(j, j->spool) < 0 ? err_path(e, "%.200s", j->path)
                                                                : 0;
}

/* The last thing that is done to it: every write takes these bits away, and a new owner. */
static int set_ids(const struct job *j, int fd)
{
    return j->mode == FILE_MODE_NONE || (j->mode & 06000) == 0 ? 0 : fchmod(fd, j->mode);
}

/* Who watches the directory waits for a write to the name, as of any program; so far it
 * has only appeared. */
static void announce(const struct job *j)
{
    autofd int fd = open(j->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat mine, there;
    char first;

    if (fd >= 0 && fstat(fd, &there) == 0 && fstat(j->spool, &mine) == 0 &&
        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev &&
        pread(j->spool, &first, 1, 0) == 1 && (pwrite(fd, &first, 1, 0) < 0 || set_ids(j, fd) < 0))
        return; /* it is all there in any case */
}

/* A name of its own first: only a rename takes the place of another. */
static int take_name(const struct job *j, struct err *e)
{
    char name[PATH_BESIDE_ROOM], temp[PATH_ROOM + sizeof(name)];
    int saved;

    path_beside(name);
    str_fmt(temp, sizeof(temp), "%s/%s", j->dir, name);
    if (nameless_link(j->spool, AT_FDCWD, temp) < 0)
        return err_path(e, "%.200s", j->path);
    if (rename(temp, j->path) == 0)
        return 0;
    saved = errno;
    unlink(temp);
    errno = saved;
    return err_path(e, "%.200s", j->path);
}

static int open_target(const char *path)
{
    int flags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC, fd = open(path, O_RDWR | flags);

    return fd < 0 && errno == EACCES ? open(path, O_WRONLY | flags) : fd;
}

static int write_over(const struct job *j, struct err *e)
{
    int fd = j->held;

    if (j->mode != FILE_MODE_NONE && fchmod(fd, j->mode & 01777) < 0)
        return err_path(e, "%.200s", j->path);
    if ((j->uid != (uid_t)-1 || j->gid != (gid_t)-1) && args_has(&j->a, "chown") &&
        fchown(fd, j->uid, j->gid) < 0)
        return err_path(e, "%.200s", j->path);
    if (label(j, fd) < 0)
        return err_path(e, "%.200s", j->path);
    if ((args_has(&j->a, "append") ? inplace_append : inplace_replace)(j->spool, fd) < 0 ||
        set_ids(j, fd) < 0)
        return err_path(e, "%.200s", j->path);
    return 0;
}

/* Whether it goes into the file that is there. */
static bool is_in_place(const struct job *j)
{
    return j->exists && !args_has(&j->a, "atomic");
}

/* Whether it has to stay what it was when it was looked at. */
static bool needs_lock(const struct job *j)
{
    return j->exists && (is_in_place(j) || args_has(&j->a, "match"));
}

/* Between those who write files, init and its helpers. Any program may hold it too, and for
 * ever: after a while we go on, as if it had written at the same time without one. */
static void lock(int fd)
{
    for (unsigned ms = 0; ms < LOCK_MS && flock(fd, LOCK_EX | LOCK_NB) < 0; ms += LOCK_STEP_MS)
        poll(NULL, 0, LOCK_STEP_MS);
}

/* 1: it is another one by now. What may not be opened can be replaced all the same. */
static int hold(struct job *j, struct err *e)
{
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    bool in_place = is_in_place(j);
    struct stat st;

    drop_fd(&j->held);
    j->held = in_place ? open_target(j->path) : open(j->path, flags);
    if (j->held < 0 && in_place)
        return err_path(e, "%.200s", j->path);
    if (j->held < 0)
        return 0;
    lock(j->held);
    if (check(j, e) < 0 || fstat(j->held, &st) < 0)
        return -1;
    return !j->exists || st.st_ino != j->was.st_ino || st.st_dev != j->was.st_dev;
}

/* 1: somebody was faster. */
static int step(struct job *j, struct err *e)
{
    int r = check(j, e);

    if (r == 0 && needs_lock(j))
        r = hold(j, e);
    if (r != 0)
        return r;
    if (is_in_place(j))
        return write_over(j, e);
    if (dress(j, e) < 0)
        return -1;
    if (j->exists)
        return take_name(j, e);
    if (nameless_link(j->spool, AT_FDCWD, j->path) == 0) {
        if (!args_has(&j->a, "atomic"))
            announce(j);
        return 0;
    }
    return errno == EEXIST ? 1 : err_path(e, "%.200s", j->path);
}

static int commit(struct job *j, struct err *e)
{
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        int r = step(j, e);

        if (r <= 0)
            return r;
    }
    return err_set(e, ERR_CONFLICT, "%.200s: others keep putting another there", j->path);
}

static int prepare(struct job *j, struct err *e)
{
    const char *owner = args_get(&j->a, "owner");

    j->uid = (uid_t)-1;
    j->gid = (gid_t)-1;
    j->mode = (uint32_t)args_u64(&j->a, "mode", FILE_MODE_NONE);
    if (owner != NULL && names_parse(owner, &j->uid, &j->gid, e) < 0)
        return -1;
    if (j->uid != (uid_t)-1 && j->gid == (gid_t)-1)
        j->gid = names_gid_of(j->uid);
    if (resolve(j, e) < 0 || check(j, e) < 0)
        return -1;
    return !j->exists && args_has(&j->a, "parents") ? where_make_parents(j->path, j->uid, j->gid, e)
                                                    : 0;
}

static int receive(struct job *j, bool gather, struct err *e)
{
    bool clone = is_in_place(j) && !args_has(&j->a, "append");
    enum spool_how how = (args_has(&j->a, "gzip") ? SPOOL_GZIP : 0) | (clone ? SPOOL_CLONE : 0);

    return gather ? gather_fill(j->spool, &j->a, e) : spool_fill(j->spool, how, e);
}

static int run(struct job *j, struct err *e)
{
    bool gather = args_has(&j->a, "from");

    if (prepare(j, e) < 0 || (j->spool = spool_open(j->dir, e)) < 0 || receive(j, gather, e) < 0)
        return -1;
    spool_whole();
    if (commit(j, e) < 0 || (gather && gather_remove(&j->a, j->path, e) < 0))
        return -1;
    return record_entry_at(AT_FDCWD, j->path, j->path, e);
}

int write_main(int argc, char **argv)
{
    struct job j = {.a = {argc, argv}, .spool = -1, .held = -1};
    struct err e;

    if (run(&j, &e) < 0)
        return say_failed(stderr, &e);
    return record_done(&(struct file_done){.count = 1, .bytes = 0});
}
