/* keeper.c - `cove serve`: the order in which the daemon comes up, and its end. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/counters.h"
#include "keeper/doctor.h"
#include "keeper/front.h"
#include "keeper/image.h"
#include "keeper/io.h"
#include "keeper/key.h"
#include "keeper/listen.h"
#include "keeper/mount.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/pool.h"
#include "keeper/ready.h"
#include "keeper/snapshot.h"
#include "keeper/template.h"
#include "keeper/worker.h"

#define LEAVE_MS 10000 /* for what goes down, when the daemon ends */
#define LEAVE_LOOK_MS 100

/* A sandbox may mount its /proc only where one is seen whole: anything that the
 * host has mounted inside its own (lxcfs does) would forbid it to all of them. */
static int clear_proc(struct err *e)
{
    if (umount2("/proc", MNT_DETACH) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "a /proc without other mounts in it");
    return 0;
}

/* Everything we mount hangs in a namespace of our own and goes away with us;
 * what the host mounts and unmounts still reaches us. */
static int own_mounts(struct keeper *k, struct err *e)
{
    (void)k;
    if (unshare(CLONE_NEWNS) < 0)
        return err_sys(e, "a mount namespace of our own");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(e, "make mounts slaves");
    return clear_proc(e);
}

static int open_init(struct keeper *k, struct err *e)
{
    k->init_fd = embed_init_fd(e);
    k->helper_fd = k->init_fd < 0 ? -1 : embed_helper_fd(e);
    return k->helper_fd < 0 ? -1 : 0;
}

static int raise_limits(struct keeper *k, struct err *e)
{
    struct rlimit files;

    (void)e;
    counters_raise();
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    k->nsandboxes_max = doctor_capacity(k);
    return 0;
}

/* Each step may rely on the ones above it. The host is looked at through its own
 * /proc. Then mounts: a directory opened before belongs to the host's namespace, and
 * nothing can be mounted through it. The state directory comes with its lock: from
 * there on it is ours alone. */
/* clang-format off */
static const struct {
    const char *what;
    int (*run)(struct keeper *k, struct err *e);
} steps[] = {
    {"privileges",         privileges_drop},
    {"boot id",            host_boot_read},
    {"this host",          doctor_check},
    {"mounts",             own_mounts},
    {"state directory",    dirs_open},
    {"limits",             raise_limits},
    {"api key",            key_open},
    {"id ranges",          ids_open},
    {"cgroups",            cgroup_open},
    {"network",            network_open},
    {"mounts",             mount_read},
    {"closer",             closer_open},
    {"workers",            worker_open},
    {"disks",              disk_open},
    {"disk I/O",           io_open},
    {"volumes",            mount_open},
    {"templates",          template_open},
    {"images",             image_open},
    {"snapshots",          snapshot_open},
    {"overlays",           rootfs_open},
    {"system call filter", filter_compile},
    {"init",               open_init},
};
/* clang-format on */

int keeper_come_up(struct keeper *k, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i].run(k, e) < 0)
            return err_wrap(e, "%s", steps[i].what);
    pool_open(k);
    if (sandbox_adopt_all(k, e) < 0)
        return -1;
    ids_sweep(k);
    disk_sweep(k);
    snapshot_sweep(k);
    template_sweep(k);
    image_sweep(k);
    return 0;
}

static void stop_asked(void *arg, int signo)
{
    (void)signo;
    front_stop(arg);
}

/* Children other than the front and the inits are waited for by who started
 * them; SIGCHLD itself says nothing that a pidfd does not. */
static int watch_signals(struct keeper *k, struct err *e)
{
    signal(SIGPIPE, SIG_IGN);
    if (loop_signal(k->loop, SIGTERM, stop_asked, k, e) < 0 ||
        loop_signal(k->loop, SIGINT, stop_asked, k, e) < 0 ||
        loop_signal(k->loop, SIGHUP, stop_asked, k, e) < 0)
        return -1;
    return 0;
}

static void blank(struct keeper *k)
{
    k->dir_fd = k->run_fd = k->damaged_fd = k->records.fd = k->front_fd = k->lock_fd =
        k->listen_fd = -1;
    k->init_fd = k->helper_fd = k->disk.fd = k->disk.qgroups_fd = k->ids.fd = -1;
    k->network.watch_io.fd = k->cgroups.v2_fd = -1;
    nursery_init(k);
    for (int c = 0; c < CTRL_COUNT; c++)
        k->cgroups.v1_fd[c] = -1;
}

/* HOST or HOST:PORT; nothing: the default. With a scheme before it, which is easily typed,
 * it would be told to every client, and none could use it. */
static bool is_domain(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    uint64_t port;

    if (text[n] != ':')
        return text[n] == '\0';
    return n > 0 && str_u64(text + n + 1, 65535, &port) == 0 && port > 0;
}

int keeper_load(struct keeper *k, int argc, char *const *argv, struct err *e)
{
    int level;

    memset(k, 0, sizeof(*k));
    blank(k);
    if (config_load(&k->config, argc, argv, e) < 0)
        return -1;
    level = log_level_from(k->config.log_level);
    if (level < 0)
        return err_set(e, ERR_INVALID, "log-level '%s' is none of error, warn, info, debug",
                       k->config.log_level);
    if (!is_domain(k->config.domain))
        return err_set(e, ERR_INVALID, "domain: '%.100s' is not a name, or one with :PORT",
                       k->config.domain);
    log_open("keeper", (enum log_level)level);
    if (geteuid() != 0)
        return err_set(e, ERR_DENIED, "this needs root: it makes namespaces, mounts and cgroups");
    return loop_new(&k->loop, e);
}

static int serve(struct keeper *k, struct err *e)
{
    if (front_wait_old(k, e) < 0 || listen_open(k, e) < 0 || template_make_first(k, e) < 0 ||
        watch_signals(k, e) < 0 || front_start(k, e) < 0)
        return -1;
    pool_refill(k);
    return loop_run(k->loop, e) < 0 ? -1 : front_check(k, e);
}

/* The pool is nobody's: a daemon that ends in order, or could not begin, takes it
 * down, so that nothing but what people asked for stays behind. What does not go down
 * (a process that the kernel does not let go, no fd to do it with) holds up no end: its
 * record is there, and the next start goes on with it. */
static void leave(struct keeper *k)
{
    uint64_t until = clock_mono_ns() + LEAVE_MS * 1000000ull;
    struct err e;

    ready_unsay(k);
    pool_drain(k);
    while ((k->ndying > 0 || worker_is_busy()) && clock_mono_ns() < until &&
           loop_turn(k->loop, LEAVE_LOOK_MS, &e) == 0)
        continue;
    if (k->ndying > 0)
        log_warn("%zu sandboxes do not go down; the next start goes on with them", k->ndying);
    closer_wait();
    if (k->sandboxes.count == 0) {
        cgroup_close_all(k);
        network_close(k);
    }
}

int keeper_main(int argc, char **argv)
{
    static struct keeper k;
    struct err e;
    int r;

    prctl(PR_SET_NAME, "cove-keeper");
    umask(022);
    r = keeper_load(&k, argc, argv, &e);
    if (r == 0)
        r = keeper_come_up(&k, &e);
    if (r == 0) {
        r = serve(&k, &e);
        leave(&k);
    } else {
        cgroup_close_all(&k); /* those with sandboxes in them stay */
    }
    nursery_close(&k);
    if (r < 0)
        fprintf(stderr, "cove serve: %s\n", e.msg);
    config_free(&k.config);
    return r < 0 ? err_exit(e.kind) : 0;
}
