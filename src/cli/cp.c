/* cp.c - `cove cp`: files and directories, into sandboxes, out of them, and between them.
 *
 * A directory goes in as one archive. It comes out file by file: what a sandbox holds is
 * a stranger's, and nothing of it decides where something is made here but names, below
 * the target and through no link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/place.h"
#include "cli/stream.h"
#include "json/read.h"

#define LOCAL_PATH_MAX 8192u
#define FROM "cove cp: "

struct copy {
    struct server server;
    const char *user;
    struct place from, to;
    char target[LOCAL_PATH_MAX]; /* where it goes: a path there or here */
    struct bar bar;
    unsigned long left_out;
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

/* Of ".", ".." and "/" there is no name to go by. */
static bool has_name(const char *path)
{
    const char *p = last_part(path);
    size_t n = strcspn(p, "/");

    return n > 0 && !(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.');
}

static bool is_dir(const struct copy *c, const struct place *p)
{
    json_t *file;
    struct stat st;
    struct err none;
    bool r;

    if (p->stream)
        return false;
    if (p->sandbox[0] == '\0')
        return stat(p->path, &st) == 0 && S_ISDIR(st.st_mode);
    file = place_stat(&c->server, p, p->path, c->user, &none);
    r = file != NULL &&
        strcmp(json_string_value(json_object_get(file, "type")) ?: "", "directory") == 0;
    json_decref(file);
    return r;
}

/* What goes to a directory that is there goes into it, under its own name. */
static int find_target(struct copy *c, struct err *e)
{
    const char *name = last_part(c->from.path);
    size_t n = strlen(c->to.path);
    bool into = !c->to.stream && is_dir(c, &c->to);
    int len;

    if (!into && !c->to.stream && n > 0 && c->to.path[n - 1] == '/')
        return err_set(e, ERR_NOT_FOUND, "%s: no such directory", c->to.path);
    if (into && (c->from.stream || !has_name(c->from.path)))
        return err_set(e, ERR_INVALID, "%s is a directory: say what the copy is to be called",
                       c->to.path);
    len = into ? snprintf(c->target, sizeof(c->target), "%s%s%.*s", c->to.path,
                          c->to.path[n - 1] == '/' ? "" : "/", (int)strcspn(name, "/"), name)
               : snprintf(c->target, sizeof(c->target), "%s", c->to.path);
    return len >= (int)sizeof(c->target) ? err_set(e, ERR_INVALID, "the path is too long") : 0;
}

/* ---- in ---- */

static int file_in(struct copy *c, struct err *e)
{
    char target[PLACE_TARGET_MAX], mode[32] = "";
    autofd int fd = c->from.stream ? dup(STDIN_FILENO) : open(c->from.path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_path(e, "%s", c->from.path);
    if (!c->from.stream && S_ISREG(st.st_mode)) {
        c->bar.total = (uint64_t)st.st_size;
        snprintf(mode, sizeof(mode), "&mode=%o", st.st_mode & 0777);
    }
    place_target(target, &c->to, "files", c->target, c->user, mode);
    return stream_put(&c->server, target, fd, &c->bar, e);
}

static int dir_in(struct copy *c, struct err *e)
{
    char target[PLACE_TARGET_MAX];

    place_target(target, &c->to, "archive", c->target, c->user, "&parents=1&links=any");
    return stream_put_dir(&c->server, target, c->from.path, &c->bar, &c->left_out, e);
}

/* ---- out ---- */

/* The directory that the last part of `path` is to be made in, below `top` and through no
 * link; *ret_name points into `path`. */
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
            return err_set(e, ERR_INVALID, "the server named %s", path);
        next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = next;
    }
    *ret_name = rest;
    if (*rest == '\0' || strcmp(rest, "..") == 0 || strcmp(rest, ".") == 0)
        return err_set(e, ERR_INVALID, "the server named '%s'", rest);
    return fd < 0 ? err_path(e, "%s", path) : take_fd(&fd);
}

static mode_t mode_of(const json_t *file)
{
    const char *text = json_string_value(json_object_get(file, "mode"));

    return text != NULL ? (mode_t)strtoul(text, NULL, 8) : 0644;
}

/* A link of that name, as an earlier copy may have left it, makes room. */
static int make_file(int dir, const char *name)
{
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, flags, 0666);

    if (fd < 0 && errno == ELOOP && unlinkat(dir, name, 0) == 0)
        fd = openat(dir, name, flags, 0666);
    return fd;
}

static int make_link(const char *to, int dir, const char *name)
{
    int r = symlinkat(to, dir, name);

    if (r < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0)
        r = symlinkat(to, dir, name);
    return r;
}

/* A device, a terminal or a pipe that is copied to stays as it is. */
static int set_mode(int fd, mode_t mode)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -1;
    return S_ISREG(st.st_mode) ? fchmod(fd, mode & 0777) : 0;
}

/* What is private there is private here; and we write into it. */
static mode_t dir_mode(const json_t *file)
{
    return (mode_of(file) & 0777) | 0700;
}

static int fetch(struct copy *c, const char *path, int dir, const char *name, mode_t mode,
                 struct err *e)
{
    char target[PLACE_TARGET_MAX];
    autoreply struct reply *r = NULL;
    autofd int fd = -1;

    place_target(target, &c->from, "files", path, c->user, "");
    r = stream_ask(&c->server, target, e);
    if (r == NULL)
        return err_wrap(e, "%s", path);
    fd = make_file(dir, name);
    if (fd < 0)
        return err_path(e, "%s", name);
    if (stream_get(r, fd, &c->bar, e) < 0)
        return err_wrap(e, "%s", path);
    return set_mode(fd, mode) < 0 ? err_path(e, "%s", name) : 0;
}

/* One entry of the listing; directories come before what is in them. */
static int take_entry(struct copy *c, int top, const json_t *file, size_t skip, struct err *e)
{
    autofree char *path = place_text(file, "path"), *link = place_text(file, "target"), *at = NULL;
    const char *type = json_string_value(json_object_get(file, "type"));
    autofd int dir = -1;
    char *name = NULL;

    if (path == NULL || type == NULL || strlen(path) <= skip)
        return err_set(e, ERR_UNAVAILABLE, "the server listed something without a name");
    at = strdup(path + skip + strspn(path + skip, "/"));
    if (at == NULL || (dir = open_parent(top, at, &name, e)) < 0)
        return -1;
    if (strcmp(type, "directory") == 0)
        return mkdirat(dir, name, dir_mode(file)) < 0 && errno != EEXIST ? err_path(e, "%s", path)
                                                                         : 0;
    if (strcmp(type, "file") == 0)
        return fetch(c, path, dir, name, mode_of(file), e);
    if (strcmp(type, "symlink") == 0 && link != NULL)
        return make_link(link, dir, name) < 0 ? err_path(e, "%s", path) : 0;
    c->left_out++;
    return 0;
}

static int take_page(struct copy *c, int top, const char *after, size_t skip, json_t **ret,
                     struct err *e)
{
    char target[PLACE_TARGET_MAX], more[PLACE_TARGET_MAX / 2] = "&depth=400&limit=10000",
                                                           code[8192];
    json_t *file;
    size_t i;

    if (after != NULL) {
        place_encode(code, sizeof(code), after);
        snprintf(more, sizeof(more), "&depth=400&limit=10000&after=%.7000s", code);
    }
    place_target(target, &c->from, "files/list", c->from.path, c->user, more);
    if (client_call(&c->server, "GET", target, NULL, ret, e) < 0)
        return -1;
    json_array_foreach(json_object_get(*ret, "files"), i, file)
    {
        if (take_entry(c, top, file, skip, e) < 0)
            return -1;
    }
    return 0;
}

static int dir_out(struct copy *c, const json_t *from, struct err *e)
{
    autofree char *path = place_text(from, "path"), *after = NULL;
    autofd int top = -1;

    if (path == NULL)
        return err_set(e, ERR_UNAVAILABLE, "the server did not say where it is");
    if (mkdir(c->target, dir_mode(from)) < 0 && errno != EEXIST)
        return err_path(e, "%s", c->target);
    top = open(c->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_path(e, "%s", c->target);
    for (;;) {
        autojson json_t *page = NULL;
        const char *next;

        if (take_page(c, top, after, strlen(path), &page, e) < 0)
            return -1;
        next = json_string_value(json_object_get(page, "next"));
        free(after);
        after = next != NULL ? strdup(next) : NULL;
        if (after == NULL)
            return 0;
    }
}

static int file_out(struct copy *c, const json_t *from, struct err *e)
{
    char target[PLACE_TARGET_MAX];
    autoreply struct reply *r = NULL;
    autofd int fd = -1;

    place_target(target, &c->from, "files", c->from.path, c->user, "");
    r = stream_ask(&c->server, target, e);
    if (r == NULL)
        return -1;
    if (!c->to.stream) {
        fd = open(c->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
            return err_path(e, "%s", c->target);
    }
    if (stream_get(r, c->to.stream ? STDOUT_FILENO : fd, &c->bar, e) < 0)
        return -1;
    if (!c->to.stream && set_mode(fd, mode_of(from)) < 0 && errno != EPERM)
        return err_path(e, "%s", c->target);
    return 0;
}

/* ---- which way ---- */

static int copy_in(struct copy *c, struct err *e)
{
    struct stat st;

    if (!c->from.stream && stat(c->from.path, &st) < 0)
        return err_path(e, "%s", c->from.path);
    if (find_target(c, e) < 0)
        return -1;
    return !c->from.stream && S_ISDIR(st.st_mode) ? dir_in(c, e) : file_in(c, e);
}

static int copy_out(struct copy *c, struct err *e)
{
    autojson json_t *file = place_stat(&c->server, &c->from, c->from.path, c->user, e);
    const char *type = json_string_value(json_object_get(file, "type"));
    bool dir = type != NULL && strcmp(type, "directory") == 0;

    if (file == NULL || find_target(c, e) < 0)
        return -1;
    if (dir && c->to.stream)
        return err_set(e, ERR_INVALID, "%s is a directory", c->from.path);
    if (dir)
        return dir_out(c, file, e);
    c->bar.total = (uint64_t)json_integer_value(json_object_get(file, "size"));
    return file_out(c, file, e);
}

static int copy_between(struct copy *c, struct err *e)
{
    char from[PLACE_TARGET_MAX], to[PLACE_TARGET_MAX], mode[32];
    bool dir = is_dir(c, &c->from);
    autojson json_t *file = place_stat(&c->server, &c->from, c->from.path, c->user, e);

    if (file == NULL || find_target(c, e) < 0)
        return -1;
    snprintf(mode, sizeof(mode), "&mode=%o", mode_of(file) & 0777);
    place_target(from, &c->from, dir ? "archive" : "files", c->from.path, c->user, "");
    place_target(to, &c->to, dir ? "archive" : "files", c->target, c->user,
                 dir ? "&parents=1&links=any" : mode);
    return stream_pass(&c->server, from, to, &c->bar, e);
}

static int run(const struct args *a, struct err *e)
{
    static struct copy c;
    bool from, to;
    int r;

    c.user = args_value(a, "user");
    if (place_parse(&c.from, a->operands[0], e) < 0 || place_parse(&c.to, a->operands[1], e) < 0 ||
        server_find(&c.server, e) < 0)
        return -1;
    c.bar.what = last_part(c.from.path);
    from = c.from.sandbox[0] != '\0';
    to = c.to.sandbox[0] != '\0';
    if (!from && !to)
        return err_set(e, ERR_INVALID, "neither is in a sandbox: SANDBOX:PATH is");
    r = from && to ? copy_between(&c, e) : from ? copy_out(&c, e) : copy_in(&c, e);
    bar_end(&c.bar);
    if (r == 0 && c.left_out > 0)
        fprintf(stderr, FROM "%lu devices, sockets or pipes were left out\n", c.left_out);
    return r;
}

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'u', "user", "USER", "whose rights are used in the sandbox [user]"},
    {0},
};
/* clang-format on */

const struct cmd cmd_cp = {
    .name = "cp",
    .usage = "cp [OPTIONS] SOURCE TARGET",
    .summary = "copy files and directories into, out of and between sandboxes",
    .about =
        "SOURCE and TARGET are SANDBOX:PATH, a path here, or - for standard input or output.\n"
        "A PATH in a sandbox is absolute, relative to /workspace, or begins with ~/. What goes\n"
        "to a directory that is there goes into it. Progress is shown on a terminal.",
    .opts = opts,
    .min = 2,
    .max = 2,
    .run = run,
};
