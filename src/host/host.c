/* host.c - see host.h: the state directory, the order of the start, the end. */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cove-version.h"
#include "daemon/embed.h"
#include "host/internal.h"

/* Sessions have their files below it, and bash reads that path as a word of a script. */
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+@%:,-"

int host_default_state(char out[HOST_STATE_MAX + 1], struct err *e)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool own = xdg != NULL && xdg[0] == '/';
    int n;

    if (geteuid() == 0) {
        strcpy(out, "/var/lib/cove-host");
        return 0;
    }
    if (!own && (home == NULL || home[0] != '/'))
        return err_set(e, ERR_INVALID, "no home directory for the state; name one with --state");
    n = snprintf(out, HOST_STATE_MAX + 1, "%s/%scove/host", own ? xdg : home,
                 own ? "" : ".local/state/");
    if (n < 0 || (unsigned)n > HOST_STATE_MAX)
        return err_set(e, ERR_INVALID,
                       "the path of the state directory is longer than %u bytes; "
                       "name a shorter one with --state",
                       HOST_STATE_MAX);
    return 0;
}

/* ---- the state directory ---- */

static int make_parents(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
            *at = '/';
            return -1;
        }
        *at = '/';
    }
    return 0;
}

static int open_dir(int at, const char *name, mode_t mode, struct err *e)
{
    autofd int fd = -1;
    struct stat st;

    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "open %s", name);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_DENIED, "%s belongs to uid %u, not to uid %u as whom this runs", name,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    if (fchmod(fd, mode) < 0)
        return err_sys(e, "chmod %s", name);
    return take_fd(&fd);
}

static int name_state(struct host *h, struct err *e)
{
    if (h->o->state == NULL)
        return host_default_state(h->state, e);
    if (h->o->state[0] != '/' || strlen(h->o->state) > HOST_STATE_MAX ||
        h->o->state[strspn(h->o->state, PLAIN)] != '\0')
        return err_set(
            e, ERR_INVALID,
            "--state '%.200s': expected an absolute path of at most %u letters, digits and "
            "/._+@%%:,-",
            h->o->state, HOST_STATE_MAX);
    strcpy(h->state, h->o->state);
    return 0;
}

static int open_state(struct host *h, struct err *e)
{
    if (name_state(h, e) < 0)
        return -1;
    if (make_parents(h->state) < 0)
        return err_sys(e, "make %s", h->state);
    h->dir_fd = open_dir(AT_FDCWD, h->state, 0711, e);
    if (h->dir_fd < 0)
        return -1;
    h->lock_fd = openat(h->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (h->lock_fd < 0)
        return err_sys(e, "open %s/lock", h->state);
    if (flock(h->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_CONFLICT, "%s is in use by another server; name another with --state",
                       h->state);
    h->run_fd = open_dir(h->dir_fd, "run", 0700, e);
    h->front_fd = h->run_fd < 0 ? -1 : open_dir(h->dir_fd, "front", 0700, e);
    if (h->front_fd < 0)
        return -1;
    own_close(&(int){open_dir(h->dir_fd, "sessions", 0711, e)});
    return key_open(h->dir_fd, h->key_hash, e);
}

/* ---- the start ---- */

static int open_programs(struct host *h, struct err *e)
{
    h->init_fd = embed_init_fd(e);
    h->helper_fd = h->init_fd < 0 ? -1 : embed_helper_fd(e);
    return h->helper_fd < 0 ? -1 : 0;
}

static int open_listener(struct host *h, struct err *e)
{
    h->listen_fd = listen_open(h->config.listen, h->url, e);
    return h->listen_fd < 0 ? -1 : 0;
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    front_end(arg);
}

static int open_loop(struct host *h, struct err *e)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};

    signal(SIGPIPE, SIG_IGN);
    if (loop_new(&h->loop, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (loop_signal(h->loop, ends[i], on_signal, h, e) < 0)
            return -1;
    return 0;
}

static int settings(struct host *h, struct err *e)
{
    int n = 0, level;

    while (h->o->settings[n] != NULL)
        n++;
    if (config_load(&h->config, n, (char *const *)h->o->settings, e) < 0)
        return -1;
    level = log_level_from(h->config.log_level);
    if (level < 0)
        return err_set(e, ERR_INVALID, "log-level: '%s' is not error, warn, info or debug",
                       h->config.log_level);
    log_open(h->o->name, (enum log_level)level);
    return listen_check(h->config.listen, false, e);
}

/* Orphans of an init that was killed come to us. */
static int be_reaper(struct host *h, struct err *e)
{
    struct rlimit files;

    (void)h;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? err_sys(e, "become a subreaper") : 0;
}

static int open_cgroup(struct host *h, struct err *e)
{
    (void)e;
    cgroup_begin(h);
    return 0;
}

/* clang-format off */
static const struct {
    const char *what;
    int (*run)(struct host *h, struct err *e);
} steps[] = {
    {"settings",        settings},
    {"state directory", open_state},
    {"loop",            open_loop},
    {"processes",       be_reaper},
    {"programs",        open_programs},
    {"cgroup",          open_cgroup},
    {"listen",          open_listener},
    {"init",            engine_start},
    {"front",           front_begin},
};
/* clang-format on */

void host_is_ready(struct host *h)
{
    if (h->ready)
        return;
    h->ready = true;
    printf("cove %s ready on %s\n", COVE_VERSION, h->url);
    printf("\n  Commands run on this machine as uid %u, with all it may do: this is no sandbox.\n",
           (unsigned)geteuid());
    printf("  isolation: %s\n", h->isolated
                                    ? "PID and mount namespaces: commands do not see the server"
                                    : "none: commands can see, signal and read the server");
    printf("  process trees: %s\n", h->cgroup_fd >= 0
                                        ? "a cgroup for each command"
                                        : "marks; no cgroup is delegated to this user");
    if (!h->o->container)
        printf("\n    export COVE_URL=%s COVE_API_KEY=$(cat %s/api-key)\n"
               "    cove exec " HOST_ID " -- uname -a\n\n",
               h->url, h->state);
    fflush(stdout);
}

static void leave(struct host *h)
{
    if (h->loop != NULL && h->dir_fd >= 0 && h->run_fd >= 0)
        engine_stop(h);
    cgroup_end(h);
    link_end(h);
    loop_free(h->loop);
    config_free(&h->config);
}

int host_main(const struct host_opts *o)
{
    static struct host h;
    struct err e;
    int r = 0;

    h = (struct host){.o = o};
    h.dir_fd = h.run_fd = h.front_fd = h.lock_fd = h.listen_fd = h.init_fd = h.helper_fd = -1;
    h.cgroup_fd = h.engine.pidfd = h.front.pidfd = h.link.fd = -1;
    prctl(PR_SET_NAME, "cove-host");
    umask(022);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++)
        if ((r = steps[i].run(&h, &e)) < 0)
            err_wrap(&e, "%s", steps[i].what);
    if (r == 0)
        r = loop_run(h.loop, &e);
    leave(&h);
    if (r < 0)
        fprintf(stderr, "cove %s: %s\n", o->name, e.msg);
    return r < 0 ? err_exit(e.kind) : h.status;
}
