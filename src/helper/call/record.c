/* record.c - see record.h. */
#include "helper/call/record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "helper/call/call.h"
#include "helper/call/names.h"

#define GATHER (32u << 10)

static struct buf out = BUF_INIT(WIRE_FRAME_MAX);

static void flush(void)
{
    while (out.len > 0) {
        ssize_t n = write(STDOUT_FILENO, buf_data(&out), out.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(1);
        buf_consume(&out, (size_t)n);
    }
}

void record_put(uint16_t type, const void *msg)
{
    struct err e;

    if (wire_put(&out, file_msg(type), 0, msg, &e) < 0)
        _exit(70); /* a field is too long: a bug of the caller */
    if (out.len >= GATHER)
        flush();
}

int record_run(int (*call)(const struct args *a, struct file_done *done, struct err *e), int argc,
               char **argv)
{
    struct file_done done = {0};
    struct err e;
    bool ok = call(&(struct args){argc, argv}, &done, &e) == 0;

    if (ok)
        record_put(FILE_DONE, &done);
    flush();
    return ok ? 0 : say_failed(stderr, &e);
}

void record_entry(const struct stat *st, const char *path, const char *target)
{
    struct file_entry m = {.path = path,
                           .target = target,
                           .owner = names_user(st->st_uid),
                           .group = names_group(st->st_gid),
                           .mode = st->st_mode,
                           .uid = st->st_uid,
                           .gid = st->st_gid,
                           .size = (uint64_t)st->st_size,
                           .ino = st->st_ino,
                           .nlink = st->st_nlink,
                           .mtime_ns = clock_ns_of(&st->st_mtim),
                           .ctime_ns = clock_ns_of(&st->st_ctim)};

    if (strlen(m.owner) > FILE_NAME_MAX)
        m.owner = "";
    if (strlen(m.group) > FILE_NAME_MAX)
        m.group = "";
    record_put(FILE_ENTRY, &m);
}

/* ---- resolve and xattrs ---- */

static struct {
    bool resolve;
    const char *prefix;
} also;

void record_also(const struct args *a)
{
    also.resolve = args_has(a, "resolve");
    also.prefix = args_get(a, "xattrs");
}

static void put_resolved(const char *path)
{
    autofree char *real = realpath(path, NULL);
    struct stat st;

    if (real != NULL && strlen(real) <= FILE_PATH_MAX && stat(real, &st) == 0)
        record_entry(&st, real, "");
    else
        record_put(FILE_ENTRY,
                   &(struct file_entry){.path = path, .target = "", .owner = "", .group = ""});
}

static void put_xattrs(const char *path)
{
    static char names[FILE_XATTR_MAX], value[FILE_XATTR_MAX];
    ssize_t len = llistxattr(path, names, sizeof(names)), n;

    for (const char *at = names; len > 0 && at < names + len; at += strlen(at) + 1) {
        if (strncmp(at, also.prefix, strlen(also.prefix)) != 0)
            continue;
        n = lgetxattr(path, at, value, sizeof(value));
        if (n >= 0)
            record_put(FILE_XATTR, &(struct file_xattr){.name = at, .value = {value, (uint32_t)n}});
    }
}

int record_entry_at(int dir, const char *name, const char *path, struct err *e)
{
    char target[FILE_PATH_MAX + 1] = "";
    struct stat st;
    ssize_t n;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_path(e, "%.200s", path);
    if (S_ISLNK(st.st_mode) && (n = readlinkat(dir, name, target, FILE_PATH_MAX)) > 0)
        target[n] = '\0';
    record_entry(&st, path, target);
    if (also.resolve && S_ISLNK(st.st_mode))
        put_resolved(path);
    if (also.prefix != NULL)
        put_xattrs(path);
    return 0;
}

int record_entry_of(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_path(e, "%.200s", path);
    record_entry(&st, path, "");
    return 0;
}
