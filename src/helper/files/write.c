/* write.c - writes a file from stdin: receives it completely, then changes the file in one
 * step, or not at all.
 *
 *   path [mode=N] [owner=USER:GROUP [chown]] [append] [atomic] [parents] [new] [gzip] [match=TAGS]
 *   [xattr_prefix=TEXT [xattrs=LINES]]
 *
 * With from=PATH, which may be repeated, those files are the body, and are removed afterwards.
 * An existing file is overwritten in place; with `atomic` a new file replaces it. `new` and
 * `match` are conditions (base/etag.h). `owner` applies to everything that is created here,
 * with `chown` also to an existing file. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/etag.h"
#include "base/own.h"
#include "base/str.h"
#include "base/xattr.h"
#include "helper/call/call.h"
#include "helper/call/names.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/files/inplace.h"
#include "helper/files/spool.h"
#include "helper/files/tmpfile.h"
#include "helper/tree/where.h"

#define LOCK_MS 3000u  /* wait for the lock of another writer... */
#define LOCK_STEP_MS 2 /* ...trying in steps of this */
#define TRIES_MAX 20u  /* if other processes replace the file meanwhile */
#define LINKS_MAX 40u  /* links to follow, as in the kernel */

struct job {
    const struct args *a;
    char path[PATH_ROOM]; /* with all links resolved */
    char dir[PATH_ROOM];
    int spool;
    int held; /* the existing file, locked; or -1 */
    uid_t uid;
    gid_t gid;
    uint32_t mode; /* FILE_MODE_NONE: keep it; 0644 for a new file */
    bool exists;
    struct stat was;
};

/* ---- the path ---- */

/* Follows a dangling link: the file is created at its target, as open(O_CREAT) does. */
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

/* ---- conditions ---- */

static int check(struct job *j, struct err *e)
{
    const char *match = args_get(j->a, "match");
    char tag[ETAG_MAX];

    j->exists = stat(j->path, &j->was) == 0;
    if (!j->exists && errno != ENOENT)
        return err_path(e, "%.200s", j->path);
    if (j->exists && !S_ISREG(j->was.st_mode))
        return err_set(e, ERR_INVALID, "%.200s: is %s", j->path,
                       S_ISDIR(j->was.st_mode) ? "a directory" : "not a regular file");
    if (j->exists && args_has(j->a, "new"))
        return err_set(e, ERR_PRECONDITION, "%.200s: exists already", j->path);
    if (match == NULL)
        return 0;
    if (j->exists)
        etag_of(&j->was, tag);
    if (!j->exists || !etag_listed(match, tag))
        return err_set(e, ERR_PRECONDITION,
                       "%.200s: its ETag does not match: the file was changed or does not exist",
                       j->path);
    return 0;
}

/* ---- the change ---- */

static int label(const struct job *j, int fd)
{
    const char *prefix = args_get(j->a, "xattr_prefix"), *lines = args_get(j->a, "xattrs");

    return prefix == NULL ? 0 : xattr_replace(fd, prefix, lines != NULL ? lines : "");
}

/* Last of all: every write and every chown clears these bits. */
static int set_ids(const struct job *j, int fd)
{
    return j->mode == FILE_MODE_NONE || (j->mode & 06000) == 0 ? 0 : fchmod(fd, j->mode);
}

/* Watchers of the directory expect a write after the create, as from any program; linking the
 * file caused only a create. */
static void announce(const struct job *j)
{
    autofd int fd = open(j->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat mine, there;
    char first;

    if (fd >= 0 && fstat(fd, &there) == 0 && fstat(j->spool, &mine) == 0 &&
        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev &&
        pread(j->spool, &first, 1, 0) == 1 && (pwrite(fd, &first, 1, 0) < 0 || set_ids(j, fd) < 0))
        return; /* the file is complete in any case */
}

/* Gives the spooled file owner, mode and attributes, then the name. 1: another process created
 * the file meanwhile. Set-id bits of the replaced file are not kept, as with any write: its
 * content is different now. */
static int write_new(const struct job *j, struct err *e)
{
    mode_t mode = j->mode != FILE_MODE_NONE ? j->mode : j->exists ? j->was.st_mode & 01777 : 0644;
    uid_t uid = j->uid != (uid_t)-1 ? j->uid : j->exists ? j->was.st_uid : (uid_t)-1;
    gid_t gid = j->gid != (gid_t)-1 ? j->gid : j->exists ? j->was.st_gid : (gid_t)-1;
    bool asked = j->uid != (uid_t)-1 || j->gid != (gid_t)-1;
    char name[PATH_BESIDE_ROOM], temp[PATH_ROOM + sizeof(name)];
    int saved;

    /* Keeping the owner of the replaced file may fail: then the file belongs to us. */
    if ((fchown(j->spool, uid, gid) < 0 && asked) || fchmod(j->spool, mode) < 0 ||
        label(j, j->spool) < 0)
        return err_path(e, "%.200s", j->path);
    if (!j->exists) {
        if (tmpfile_link(j->spool, AT_FDCWD, j->path) < 0)
            return errno == EEXIST ? 1 : err_path(e, "%.200s", j->path);
        if (!args_has(j->a, "atomic"))
            announce(j);
        return 0;
    }
    /* under a temporary name first: only rename() can replace a file */
    path_beside(name);
    str_fmt(temp, sizeof(temp), "%s/%s", j->dir, name);
    if (tmpfile_link(j->spool, AT_FDCWD, temp) < 0)
        return err_path(e, "%.200s", j->path);
    if (rename(temp, j->path) == 0)
        return 0;
    saved = errno;
    unlink(temp);
    errno = saved;
    return err_path(e, "%.200s", j->path);
}

static int write_over(const struct job *j, struct err *e)
{
    bool chowns = args_has(j->a, "chown") && (j->uid != (uid_t)-1 || j->gid != (gid_t)-1);
    bool appends = args_has(j->a, "append");
    int fd = j->held;

    if ((j->mode != FILE_MODE_NONE && fchmod(fd, j->mode & 01777) < 0) ||
        (chowns && fchown(fd, j->uid, j->gid) < 0) || label(j, fd) < 0 ||
        (appends ? inplace_append(j->spool, fd) : inplace_replace(j->spool, fd)) < 0 ||
        set_ids(j, fd) < 0)
        return err_path(e, "%.200s", j->path);
    return 0;
}

/* Whether the existing file is overwritten. */
static bool is_in_place(const struct job *j)
{
    return j->exists && !args_has(j->a, "atomic");
}

/* Opens and locks the existing file. 1: it was replaced meanwhile. A file that we may not
 * open can still be replaced. */
static int hold(struct job *j, struct err *e)
{
    const int flags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    bool in_place = is_in_place(j);
    struct stat st;

    drop_fd(&j->held);
    j->held = open(j->path, (in_place ? O_RDWR : O_RDONLY) | flags);
    if (j->held < 0 && in_place && errno == EACCES)
        j->held = open(j->path, O_WRONLY | flags);
    if (j->held < 0)
        return in_place ? err_path(e, "%.200s", j->path) : 0;
    /* The lock orders the writes of init and cove-helper. A program of the tenant may hold it
     * without end, so after LOCK_MS we continue without it. */
    for (unsigned ms = 0; ms < LOCK_MS && flock(j->held, LOCK_EX | LOCK_NB) < 0; ms += LOCK_STEP_MS)
        poll(NULL, 0, LOCK_STEP_MS);
    if (check(j, e) < 0 || fstat(j->held, &st) < 0)
        return -1;
    return !j->exists || st.st_ino != j->was.st_ino || st.st_dev != j->was.st_dev;
}

/* Changes the file. 1: another process replaced it meanwhile. */
static int commit(struct job *j, struct err *e)
{
    int r = check(j, e);

    /* the existing file must not change between the check and the write */
    if (r == 0 && j->exists && (is_in_place(j) || args_has(j->a, "match")))
        r = hold(j, e);
    if (r != 0)
        return r;
    return is_in_place(j) ? write_over(j, e) : write_new(j, e);
}

/* ---- from=PATH ---- */

#define GATHER_PIECE (16u << 20)

static const char *source_of(const char *arg)
{
    static const char name[] = "from=";

    return strncmp(arg, name, sizeof(name) - 1) == 0 ? arg + sizeof(name) - 1 : NULL;
}

/* Appends each source, in the order of the arguments. */
static int gather(struct job *j, struct err *e)
{
    for (int i = 0; i < j->a->n; i++) {
        const char *named = source_of(j->a->v[i]);
        autofd int from = named == NULL ? -1 : where_open(named, O_RDONLY, e);
        struct stat st;
        ssize_t n;

        if (named == NULL)
            continue;
        if (from < 0)
            return -1;
        if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
            return err_set(e, ERR_INVALID, "%.200s: is not a regular file", named);
        while ((n = sendfile(j->spool, from, NULL, GATHER_PIECE)) != 0)
            if (n < 0 && errno != EINTR)
                return err_path(e, "%.200s", named);
    }
    return 0;
}

/* Removes the sources, except one that is the written file itself. */
static int remove_sources(const struct job *j, struct err *e)
{
    struct stat kept, st;
    char source[PATH_ROOM];

    if (stat(j->path, &kept) < 0)
        return err_path(e, "%.200s", j->path);
    for (int i = 0; i < j->a->n; i++) {
        if (source_of(j->a->v[i]) == NULL || where_path(source_of(j->a->v[i]), source, e) < 0)
            continue;
        if (stat(source, &st) == 0 && st.st_ino == kept.st_ino && st.st_dev == kept.st_dev)
            continue;
        if (unlink(source) < 0 && errno != ENOENT)
            return err_path(e, "%.200s", source);
    }
    return 0;
}

/* ---- the call ---- */

/* Sets j->path and j->dir, and everything else that the arguments say. */
static int prepare(struct job *j, struct err *e)
{
    const char *named = args_get(j->a, "path");
    char *real;

    j->mode = (uint32_t)args_u64(j->a, "mode", FILE_MODE_NONE);
    if (names_parse_new(args_get(j->a, "owner"), &j->uid, &j->gid, e) < 0 ||
        where_path(named, j->path, e) < 0)
        return -1;
    if (named[strlen(named) - 1] == '/') { /* a trailing slash means a directory */
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
    if (check(j, e) < 0)
        return -1;
    return !j->exists && args_has(j->a, "parents") ? where_make_parents(j->path, j->uid, j->gid, e)
                                                   : 0;
}

int file_write(const struct args *a, struct file_done *done, struct err *e)
{
    struct job j = {.a = a, .spool = -1, .held = -1};
    bool gathers = args_has(a, "from");
    enum spool_how how = args_has(a, "gzip") ? SPOOL_GZIP : 0;
    int r = 1;

    if (prepare(&j, e) < 0 || (j.spool = spool_open(j.dir, e)) < 0)
        return -1;
    if (is_in_place(&j) && !args_has(a, "append"))
        how |= SPOOL_CLONE;
    if ((gathers ? gather(&j, e) : spool_fill(j.spool, how, e)) < 0)
        return -1;
    spool_whole();
    for (unsigned i = 0; r > 0 && i < TRIES_MAX; i++)
        r = commit(&j, e);
    if (r > 0)
        return err_set(e, ERR_CONFLICT, "%.200s: other processes keep replacing it", j.path);
    if (r < 0 || (gathers && remove_sources(&j, e) < 0))
        return -1;
    done->count = 1;
    return record_entry_at(AT_FDCWD, j.path, j.path, e);
}
