/* cp.c - `cove cp`: copies files and directories into, out of and between sandboxes.
 *
 * A directory goes into a sandbox as one archive. It comes out file by file: the tenant
 * controls every name in it, so each local file is created by name below the target
 * directory, and no link is followed on the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/files/pack.h"
#include "cli/files/place.h"
#include "cli/files/stream.h"
#include "json/read.h"

#define LOCAL_PATH_MAX 8192u
#define ARCHIVE_OPTS "&parents=1&links=any"

struct copy {
    struct server server;
    const char *user;
    struct place from, to;
    char target[LOCAL_PATH_MAX]; /* the path of the copy */
    struct bar bar;
    struct upload upload;
    unsigned long left_out; /* devices, sockets, pipes */
};

static const char *last_part(const char *path)
{
    const char *end = path + strlen(path), *p;

    while (end > path + 1 && end[-1] == '/')
        end--;
    for (p = end; p > path && p[-1] != '/';)
        p--;
    return p;
}

/* Sets c->target: a copy to an existing directory goes into it, under its own name. */
static int find_target(struct copy *c, struct err *e)
{
    const char *name = last_part(c->from.path);
    size_t n = strcspn(name, "/"), to_len = strlen(c->to.path);
    bool has_name =
        n > 0 && !(n == 1 && name[0] == '.') && !(n == 2 && strncmp(name, "..", 2) == 0);
    bool into = false;
    struct stat st;
    int len;

    if (!c->to.stream && c->to.sandbox[0] == '\0') {
        into = stat(c->to.path, &st) == 0 && S_ISDIR(st.st_mode);
    } else if (!c->to.stream) {
        struct err none;
        autojson json_t *file = place_stat(&c->server, &c->to, c->user, &none);

        into = place_is_dir(file);
    }
    if (!into && !c->to.stream && to_len > 0 && c->to.path[to_len - 1] == '/')
        return err_set(e, ERR_NOT_FOUND, "%s: no such directory", c->to.path);
    if (into && (c->from.stream || !has_name))
        return err_set(e, ERR_INVALID, "%s is a directory; add a name for the copy", c->to.path);
    len = into ? snprintf(c->target, sizeof(c->target), "%s%s%.*s", c->to.path,
                          c->to.path[to_len - 1] == '/' ? "" : "/", (int)n, name)
               : snprintf(c->target, sizeof(c->target), "%s", c->to.path);
    return len >= (int)sizeof(c->target) ? err_set(e, ERR_INVALID, "the target path is too long")
                                         : 0;
}

/* ---- in ---- */

static int copy_in(struct copy *c, struct err *e)
{
    char target[PLACE_TARGET_MAX], mode[32] = "";
    autofd int fd = -1;
    struct stat st;
    int r;

    if (!c->from.stream && stat(c->from.path, &st) < 0)
        return err_path(e, "%s", c->from.path);
    if (find_target(c, e) < 0)
        return -1;
    if (!c->from.stream && S_ISDIR(st.st_mode)) {
        c->upload.pack = pack_open(c->from.path, e);
        if (c->upload.pack == NULL)
            return -1;
        place_target(target, &c->to, "archive", c->target, c->user, ARCHIVE_OPTS);
        c->upload.after = "unpacking";
        r = stream_put(&c->server, target, &c->upload, e);
        c->left_out += pack_left_out(c->upload.pack);
        upload_close(&c->upload);
        return r;
    }
    fd = c->from.stream ? dup(STDIN_FILENO) : open(c->from.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_path(e, "%s", c->from.path);
    if (!c->from.stream && S_ISREG(st.st_mode)) {
        c->bar.total = (uint64_t)st.st_size;
        snprintf(mode, sizeof(mode), "&mode=%o", st.st_mode & 0777);
    }
    place_target(target, &c->to, "files", c->target, c->user, mode);
    c->upload.fd = fd;
    return stream_put(&c->server, target, &c->upload, e);
}

/* ---- out ---- */

static mode_t mode_of(const json_t *file)
{
    const char *text = json_string_value(json_object_get(file, "mode"));

    return text != NULL ? (mode_t)strtoul(text, NULL, 8) & 0777 : 0644;
}

/* A server that refuses a file names it; a connection that breaks does not. */
static int failed_at(const char *path, struct err *e)
{
    return strncmp(e->msg, path, strlen(path)) == 0 ? -1 : err_wrap(e, "%s", path);
}

/* Downloads `path` into `fd`. The mode of a device, a terminal or a pipe is left alone. */
static int fetch(struct copy *c, struct reply *r, const char *path, int fd, mode_t mode,
                 struct err *e)
{
    struct stat st;

    if (stream_get(r, fd, &c->bar, e) < 0)
        return failed_at(path, e);
    if (fstat(fd, &st) < 0 || (S_ISREG(st.st_mode) && fchmod(fd, mode) < 0 && errno != EPERM))
        return err_path(e, "set the mode of the copy of %s", path);
    return 0;
}

/* Opens the directory below `top` in which the last part of `path` is to be created, through
 * no link; *ret_name points into `path`. */
static int open_parent(int top, char *path, char **ret_name, struct err *e)
{
    autofd int fd = fcntl(top, F_DUPFD_CLOEXEC, 3);
    char *part, *rest = path, *slash;

    while (fd >= 0 && (slash = strchr(rest, '/')) != NULL) {
        int next;

        part = rest;
        *slash = '\0';
        rest = slash + 1;
        if (*part == '\0' || strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0)
            return err_set(e, ERR_INVALID, "the server listed a path with '..': %s", path);
        next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = next;
    }
    *ret_name = rest;
    if (*rest == '\0' || strcmp(rest, "..") == 0 || strcmp(rest, ".") == 0)
        return err_set(e, ERR_INVALID, "the server listed a file with the name '%s'", rest);
    return fd < 0 ? err_path(e, "%s", path) : take_fd(&fd);
}

/* Creates one entry of the listing, in which directories come before their content. A link
 * that an earlier copy left under the same name is replaced. */
static int take_entry(struct copy *c, int top, const json_t *file, size_t skip, struct err *e)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    autofree char *path = place_text(file, "path"), *link = place_text(file, "target"), *at = NULL;
    const char *type = json_string_value(json_object_get(file, "type"));
    autofd int dir = -1, fd = -1;
    char *name = NULL;

    if (path == NULL || type == NULL || strlen(path) <= skip)
        return err_set(e, ERR_UNAVAILABLE, "the server listed a file without path or type");
    at = strdup(path + skip + strspn(path + skip, "/"));
    if (at == NULL || (dir = open_parent(top, at, &name, e)) < 0)
        return -1;
    if (strcmp(type, "directory") == 0)
        return mkdirat(dir, name, mode_of(file) | 0700) < 0 && errno != EEXIST
                   ? err_path(e, "%s", path)
                   : 0;
    if (strcmp(type, "file") == 0) {
        char target[PLACE_TARGET_MAX];
        autoreply struct reply *r = NULL;

        place_target(target, &c->from, "files", path, c->user, "");
        r = stream_ask(&c->server, target, e);
        if (r == NULL)
            return failed_at(path, e);
        fd = openat(dir, name, flags, 0666);
        if (fd < 0 && errno == ELOOP && unlinkat(dir, name, 0) == 0)
            fd = openat(dir, name, flags, 0666);
        return fd < 0 ? err_path(e, "%s", name) : fetch(c, r, path, fd, mode_of(file), e);
    }
    if (strcmp(type, "symlink") == 0 && link != NULL) {
        int r = symlinkat(link, dir, name);

        if (r < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0)
            r = symlinkat(link, dir, name);
        return r < 0 ? err_path(e, "%s", path) : 0;
    }
    c->left_out++;
    return 0;
}

static int dir_out(struct copy *c, const json_t *from, struct err *e)
{
    autofree char *path = place_text(from, "path"), *after = NULL;
    autofd int top = -1;

    if (path == NULL)
        return err_set(e, ERR_UNAVAILABLE, "the server's answer has no path of the directory");
    if (mkdir(c->target, mode_of(from) | 0700) < 0 && errno != EEXIST)
        return err_path(e, "%s", c->target);
    top = open(c->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_path(e, "%s", c->target);
    do {
        autojson json_t *page = NULL;
        json_t *file;
        size_t i;

        if (place_list(&c->server, &c->from, c->user, "&depth=400", &after, &page, e) < 0)
            return -1;
        json_array_foreach(json_object_get(page, "files"), i, file)
        {
            if (take_entry(c, top, file, strlen(path), e) < 0)
                return -1;
        }
    } while (after != NULL);
    return 0;
}

static int copy_out(struct copy *c, struct err *e)
{
    autojson json_t *file = place_stat(&c->server, &c->from, c->user, e);
    char target[PLACE_TARGET_MAX];
    autoreply struct reply *r = NULL;
    autofd int fd = -1;

    if (file == NULL || find_target(c, e) < 0)
        return -1;
    if (place_is_dir(file) && c->to.stream)
        return err_set(e, ERR_INVALID, "%s is a directory and cannot be written to stdout",
                       c->from.path);
    if (place_is_dir(file))
        return dir_out(c, file, e);
    c->bar.total = (uint64_t)json_integer_value(json_object_get(file, "size"));
    place_target(target, &c->from, "files", c->from.path, c->user, "");
    r = stream_ask(&c->server, target, e);
    if (r == NULL)
        return -1;
    if (c->to.stream)
        return stream_get(r, STDOUT_FILENO, &c->bar, e);
    fd = open(c->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? err_path(e, "%s", c->target) : fetch(c, r, c->from.path, fd, mode_of(file), e);
}

static int copy_between(struct copy *c, struct err *e)
{
    char from[PLACE_TARGET_MAX], to[PLACE_TARGET_MAX], mode[32];
    autojson json_t *file = place_stat(&c->server, &c->from, c->user, e);
    bool dir = place_is_dir(file);
    autoreply struct reply *body = NULL;

    if (file == NULL || find_target(c, e) < 0)
        return -1;
    snprintf(mode, sizeof(mode), "&mode=%o", mode_of(file));
    place_target(from, &c->from, dir ? "archive" : "files", c->from.path, c->user, "");
    place_target(to, &c->to, dir ? "archive" : "files", c->target, c->user,
                 dir ? ARCHIVE_OPTS : mode);
    body = stream_ask(&c->server, from, e);
    if (body == NULL)
        return -1;
    c->upload.body = body;
    return stream_put(&c->server, to, &c->upload, e);
}

static int copy_one(struct copy *c, const char *source, struct err *e)
{
    bool from, to = c->to.sandbox[0] != '\0';

    if (place_parse(&c->from, source, e) < 0)
        return -1;
    c->bar.what = last_part(c->from.path);
    c->bar.total = c->bar.done = 0;
    c->upload.fd = -1;
    c->upload.body = NULL;
    c->upload.after = NULL;
    c->bar.phase = NULL;
    from = c->from.sandbox[0] != '\0';
    if (!from && !to)
        return err_set(e, ERR_INVALID,
                       "both paths are local; write SANDBOX:PATH for a file in a sandbox");
    return from && to ? copy_between(c, e) : from ? copy_out(c, e) : copy_in(c, e);
}

/* Several sources go into a directory, each under its own name. */
static int check_directory(struct copy *c, struct err *e)
{
    autojson json_t *file = NULL;
    struct stat st;

    if (c->to.stream)
        return err_set(e, ERR_INVALID, "several sources cannot be copied to stdout");
    if (c->to.sandbox[0] == '\0')
        return stat(c->to.path, &st) == 0 && S_ISDIR(st.st_mode)
                   ? 0
                   : err_set(e, ERR_INVALID, "%s is not a directory; several sources need one",
                             c->to.path);
    file = place_stat(&c->server, &c->to, c->user, e);
    if (file == NULL)
        return err_wrap(e, "several sources need a directory to copy into");
    return place_is_dir(file)
               ? 0
               : err_set(e, ERR_INVALID, "%s is not a directory; several sources need one",
                         c->to.path);
}

static int run(const struct args *a, struct err *e)
{
    static struct copy c = {.upload = {.fd = -1}}; /* too large for the stack */
    int last = a->noperands - 1, r = 0;

    c.user = args_value(a, "user");
    c.upload.bar = &c.bar;
    if (place_parse(&c.to, a->operands[last], e) < 0 || server_find(&c.server, e) < 0)
        return -1;
    if (last > 1 && check_directory(&c, e) < 0)
        return -1;
    for (int i = 0; i < last && r == 0; i++)
        r = copy_one(&c, a->operands[i], e);
    if (r < 0)
        bar_end(&c.bar);
    else
        bar_sum(&c.bar, "copied", false);
    if (r == 0 && c.left_out > 0)
        cmd_complain("cp", "%lu devices, sockets or pipes were left out", c.left_out);
    return r;
}

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'u', "user", "USER", "act as this user of the sandbox [user]"},
    {'r', "recursive", NULL, "accepted: directories are always copied with all they contain"},
    {0},
};
/* clang-format on */

const struct cmd cmd_cp = {
    .name = "cp",
    .usage = "cp [OPTIONS] SOURCE... TARGET",
    .summary = "copy files and directories into, out of and between sandboxes",
    .about =
        "SOURCE and TARGET are SANDBOX:PATH, a local path, or - for standard input or output.\n"
        "A PATH in a sandbox is absolute, relative to /workspace, or begins with ~/. If TARGET\n"
        "is an existing directory, the copy goes into it; several SOURCEs need one. Progress is\n"
        "shown on a terminal.",
    .opts = opts,
    .min = 2,
    .max = CMD_ANY,
    .run = run,
};
