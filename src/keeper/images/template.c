/* template.c - versions of `base`: found, built under another name, renamed when complete. */
#include "keeper/template.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/file.h"
#include "keeper/image.h"
#include "keeper/images/template_system.h"
#include "keeper/life.h"
#include "keeper/snapshot.h"
#include "keeper/template_base.h"

#define BASE_FORMAT 2 /* raised when a release makes the default template in another way */
#define MADE_MAX (4 * CONFIG_TEXT_MAX + 32)

/* A build runs in a child and reports over a pipe. */
struct refresh {
    pid_t pid;
    int pipe_fd;
    struct loop_io io;
    struct buf in;
    void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total);
    void (*done)(void *arg, const struct err *e);
    void *arg;
};

struct template
{
    struct keeper *k;
    char dir[600]; /* the directory of the versions */
    int dir_fd;
    bool shared; /* --base: other daemons may use versions too */
    char current[64];
    struct refresh refresh;
};

static void remove_tree(const char *path);

/* ---- versions ---- */

static bool is_version(const char *name)
{
    uint64_t stamp;

    return strncmp(name, "base-", 5) == 0 && str_u64(name + 5, UINT64_MAX, &stamp) == 0;
}

static void find_current(struct template *t)
{
    DIR *d = dir_list(t->dir_fd);

    t->current[0] = '\0';
    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (is_version(de->d_name) && strcmp(de->d_name, t->current) > 0)
            str_fmt(t->current, sizeof(t->current), "%.60s", de->d_name);
    if (d != NULL)
        closedir(d);
}

static struct system_settings settings_of(const struct keeper *k)
{
    const struct config *c = &k->config;

    return (struct system_settings){c->apt_mirror, c->pip_index, c->npm_registry, c->package_proxy};
}

/* The inputs of a version; a new one is made when they change. */
static void made_with(const struct keeper *k, char out[MADE_MAX])
{
    snprintf(out, MADE_MAX, "%u %.*s %.*s %.*s %.*s", BASE_FORMAT, CONFIG_TEXT_MAX,
             k->config.apt_mirror, CONFIG_TEXT_MAX, k->config.pip_index, CONFIG_TEXT_MAX,
             k->config.npm_registry, CONFIG_TEXT_MAX, k->config.package_proxy);
}

static int write_info(const struct keeper *k, int dir, const struct base_counts *n, uint64_t now,
                      struct err *e)
{
    autofd int fd = openat(dir, "info", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char text[256 + MADE_MAX], missing[128], made[MADE_MAX];

    template_base_missing(missing, sizeof(missing));
    made_with(k, made);
    snprintf(text, sizeof(text), "files %llu\nbytes %llu\ncreated %llu\nmissing %s%s%s\nmade %s\n",
             (unsigned long long)n->files, (unsigned long long)n->bytes, (unsigned long long)now,
             missing, missing[0] != '\0' && !n->sources ? ", " : "",
             n->sources ? "" : "package sources", made);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0)
        return err_sys(e, "write the template's info");
    return 0;
}

/* Built under another name and renamed when complete. */
static int build(struct template *t,
                 void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total),
                 void *arg, struct err *e)
{
    uint64_t now = clock_real_ms();
    struct system_settings settings = settings_of(t->k);
    struct base_counts n;
    char fresh[64], name[64], path[700];
    autofd int dir = -1, root = -1;

    str_fmt(name, sizeof(name), "base-%llu", (unsigned long long)now);
    str_fmt(fresh, sizeof(fresh), "new-%llu", (unsigned long long)now);
    snprintf(path, sizeof(path), "%s/%s", t->dir, fresh);
    if (mkdirat(t->dir_fd, fresh, 0700) < 0)
        return err_sys(e, "make %s", path);
    dir = openat(t->dir_fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || mkdirat(dir, "root", 0755) < 0)
        return err_sys(e, "make %s/root", path);
    root = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || template_base_build(root, &settings, &n, progress, arg, e) < 0 ||
        write_info(t->k, dir, &n, now, e) < 0) {
        remove_tree(path);
        return -1;
    }
    syncfs(dir);
    if (renameat(t->dir_fd, fresh, t->dir_fd, name) < 0)
        return err_sys(e, "rename the new template into place");
    return 0;
}

/* True if the newest version was made by this release and with these settings. In a shared directory
 * other daemons have other settings: there any version of this release is fine. */
static bool is_current(struct template *t)
{
    char path[80], text[256 + MADE_MAX] = "", made[MADE_MAX], *was;
    autofd int fd = -1;

    if (t->current[0] == '\0')
        return false;
    str_fmt(path, sizeof(path), "%s/info", t->current);
    fd = openat(t->dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || (was = strstr(text, "\nmade ")) == NULL)
        return false;
    was += 6;
    was[strcspn(was, "\n")] = '\0';
    made_with(t->k, made);
    return t->shared ? atoi(was) == BASE_FORMAT : strcmp(was, made) == 0;
}

static int build_locked(struct template *t, bool only_if_needed,
                        void (*progress)(void *arg, const char *text, uint64_t done,
                                         uint64_t total),
                        void *arg, struct err *e)
{
    autofd int lock = openat(t->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        return err_sys(e, "lock %s", t->dir);
    if (only_if_needed) {
        find_current(t); /* another daemon may have made it meanwhile */
        if (is_current(t))
            return 0;
    }
    return build(t, progress, arg, e);
}

static void say_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    (void)arg;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r  %s: %llu%%  ", text,
                (unsigned long long)(total == 0 || done > total ? 100 : done * 100 / total));
}

static int open_dir(struct template *t, struct err *e)
{
    struct keeper *k = t->k;

    t->shared = k->config.base[0] != '\0';
    if (t->shared && k->config.base[0] != '/')
        return err_set(e, ERR_INVALID, "--base: '%s' is not an absolute path", k->config.base);
    if (t->shared)
        snprintf(t->dir, sizeof(t->dir), "%.500s", k->config.base);
    else
        snprintf(t->dir, sizeof(t->dir), "%s/templates", k->dir);
    if (mkdir(t->dir, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", t->dir);
    t->dir_fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->dir_fd < 0 || fchown(t->dir_fd, 0, 0) < 0 || fchmod(t->dir_fd, 0700) < 0)
        return err_sys(e, "open %s", t->dir);
    return 0;
}

int template_open(struct keeper *k, struct err *e)
{
    struct system_settings settings = settings_of(k);
    struct template *t;

    if (system_check(&settings, e) < 0)
        return -1;
    t = calloc(1, sizeof(*t));
    if (t == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    t->k = k;
    t->dir_fd = t->refresh.pipe_fd = -1;
    k->base = t;
    if (open_dir(t, e) < 0)
        return -1;
    find_current(t);
    return 0;
}

int template_make_first(struct keeper *k, struct err *e)
{
    struct template *t = k->base;

    if (is_current(t))
        return 0;
    log_info(t->current[0] == '\0'
                 ? "making the default template from this host's files (once, some seconds)"
                 : "making the default template again: the release or its settings have changed");
    if (build_locked(t, true, say_progress, NULL, e) < 0)
        return -1;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\n");
    find_current(t);
    return 0;
}

const char *template_current(struct keeper *k, const char *name, struct err *e)
{
    const char *version = strcmp(name, "base") == 0 ? k->base->current : image_current(k, name);

    if (version == NULL)
        err_set(e, ERR_NOT_FOUND, "no template '%s'", name);
    return version;
}

int template_layers(struct keeper *k, const char *version, int *fds, struct err *e)
{
    char path[80];

    if (snapshot_is_version(version))
        return snapshot_layers(k, version, fds, e);
    if (image_is_version(version))
        return image_layers(k, version, fds, e);
    if (!is_version(version))
        return err_set(e, ERR_INTERNAL, "template version '%s' does not exist", version);
    str_fmt(path, sizeof(path), "%s/root", version);
    fds[0] = openat(k->base->dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fds[0] < 0 ? err_sys(e, "open template version %s", version) : 1;
}

int template_show(struct keeper *k, const char *name, struct template_row *ret, struct err *e)
{
    struct template *t = k->base;
    unsigned long long files = 0, bytes = 0, created = 0;
    char path[80], text[256 + MADE_MAX] = "", *missing;
    autofd int fd = -1;

    if (template_current(k, name, e) == NULL)
        return -1;
    str_fmt(path, sizeof(path), "%s/info", t->current);
    fd = openat(t->dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
        sscanf(text, "files %llu\nbytes %llu\ncreated %llu", &files, &bytes, &created);
    missing = strstr(text, "missing ");
    *ret = (struct template_row){.files = files, .bytes = bytes, .created_ms = created};
    str_fmt(ret->name, sizeof(ret->name), "%s", name);
    str_fmt(ret->state, sizeof(ret->state), t->refresh.pid != 0 ? "refreshing" : "ready");
    if (missing != NULL && missing[8] != '\n')
        snprintf(ret->note, sizeof(ret->note), "this host lacks: %.*s",
                 (int)strcspn(missing + 8, "\n"), missing + 8);
    return 0;
}

/* ---- refresh, in a child ---- */

struct report {
    uint64_t done, total;
    uint32_t kind; /* 0 progress, 1 whole, 2 failed */
    char text[220];
};

static void report_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct report r = {.done = done, .total = total};

    str_fmt(r.text, sizeof(r.text), "%s", text);
    if (write(*(int *)arg, &r, sizeof(r)) < 0)
        return;
}

/* A child must not keep what the next daemon waits for: the lock, the port, the front's socket.
 * Keeps fds 0 to 2 and two more. */
static void shed_fds(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

    if (low > 3)
        syscall(SYS_close_range, 3u, low - 1, 0u);
    if (high > low + 1)
        syscall(SYS_close_range, low + 1, high - 1, 0u);
    syscall(SYS_close_range, high + 1, ~0u, 0u);
}

static void __attribute__((noreturn)) child_main(struct template *t, int fd)
{
    struct report r = {.kind = 1};
    struct err e;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the next start removes half a template */
    shed_fds(t->dir_fd, fd);

    if (build_locked(t, false, report_progress, &fd, &e) < 0) {
        r.kind = 2;
        snprintf(r.text, sizeof(r.text), "%.200s", e.msg);
    }
    _exit(write(fd, &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
}

static void finish(struct template *t, const struct err *e)
{
    struct refresh *r = &t->refresh;

    loop_io_stop(t->k->loop, &r->io);
    drop_fd(&r->pipe_fd);
    buf_free(&r->in);
    waitpid(r->pid, NULL, 0);
    r->pid = 0;
    find_current(t);
    r->done(r->arg, e);
    if (e == NULL) {
        log_info("template base is now version %s", t->current);
        pool_drop_stale(t->k);
        template_sweep(t->k);
    }
}

static void reported(struct loop_io *io, uint32_t events)
{
    struct template *t =
        CONTAINER_OF(CONTAINER_OF(io, struct refresh, io), struct template, refresh);
    struct refresh *r = &t->refresh;
    struct report rep;
    struct err e;
    ssize_t n = read(r->pipe_fd, &rep, sizeof(rep));

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof(rep)) {
        err_set(&e, ERR_INTERNAL, "build the template: the child ended without a report");
        finish(t, &e);
    } else if (rep.kind == 1) {
        finish(t, NULL);
    } else if (rep.kind == 2) {
        err_set(&e, ERR_INTERNAL, "%.200s", rep.text);
        finish(t, &e);
    } else if (r->progress != NULL) {
        r->progress(r->arg, rep.text, rep.done, rep.total);
    }
}

int template_refresh(struct keeper *k, const char *name,
                     void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total),
                     void (*done)(void *arg, const struct err *e), void *arg, struct err *e)
{
    struct refresh *r = &k->base->refresh;
    autofd int in = -1, out = -1;
    int fds[2];

    if (template_current(k, name, e) == NULL)
        return -1;
    if (strcmp(name, "base") != 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "refresh '%s': only 'base' is made from this host; add the template again",
                       name);
    if (r->pid != 0)
        return err_set(e, ERR_CONFLICT, "template '%s' is being refreshed already", name);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "create a pipe");
    in = fds[0];
    out = fds[1];
    r->pid = fork();
    if (r->pid == 0)
        child_main(k->base, out);
    if (r->pid < 0) {
        r->pid = 0;
        return err_sys(e, "fork the template build");
    }
    r->progress = progress;
    r->done = done;
    r->arg = arg;
    r->pipe_fd = take_fd(&in);
    return loop_io_start(k->loop, &r->io, r->pipe_fd, EPOLLIN, reported, e);
}

/* ---- removing ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_tree(const char *path)
{
    if (nftw(path, remove_one, 64, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
        log_warn("remove %s: %s", path, strerror(errno));
}

/* Removing a tree takes seconds: done in a grandchild. */
static void remove_version(struct keeper *k, const char *name)
{
    char path[700];
    pid_t pid;

    snprintf(path, sizeof(path), "%s/%s", k->base->dir, name);
    log_info("removing template version %s", name);
    pid = fork();
    if (pid == 0) {
        /* A second fork: init of the host becomes the parent and waits for it. */
        if (fork() == 0) {
            syscall(SYS_close_range, 3u, ~0u, 0u); /* not the lock, not the port */
            remove_tree(path);
        }
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

/* In a shared directory only unfinished builds are removed, and only while no build runs: other
 * daemons may use its versions. */
void template_sweep(struct keeper *k)
{
    struct template *t = k->base;
    autofd int lock = openat(t->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool quiet = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
    DIR *d = dir_list(t->dir_fd);

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        bool half = strncmp(de->d_name, "new-", 4) == 0 && quiet;

        if (half || (!t->shared && is_version(de->d_name) && strcmp(de->d_name, t->current) != 0 &&
                     sandbox_users(k, de->d_name, true) + snapshot_users(k, de->d_name) == 0))
            remove_version(k, de->d_name);
    }
    if (d != NULL)
        closedir(d);
}

void template_close(struct keeper *k)
{
    if (k->base == NULL)
        return;
    drop_fd(&k->base->dir_fd);
    free(k->base);
    k->base = NULL;
}
