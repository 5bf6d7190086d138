/* serve.c - `cove serve`: the order in which the daemon starts, and how it ends. */
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
#include "daemon/embed.h"
#include "daemon/key.h"
#include "daemon/listen.h"
#include "keeper/closer.h"
#include "keeper/counters.h"
#include "keeper/host/doctor.h"
#include "keeper/host/front.h"
#include "keeper/host/ready.h"
#include "keeper/image.h"
#include "keeper/io.h"
#include "keeper/life.h"
#include "keeper/memory.h"
#include "keeper/mount.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/snapshot.h"
#include "keeper/template.h"
#include "loop/job.h"

#define LEAVE_MS 10000 /* for teardowns, when the daemon ends */
#define LEAVE_LOOK_MS 100

/* Our mounts are in a private namespace and go away with us; mounts of the host still reach us. The
 * kernel lets a sandbox mount its own /proc only if ours has no other mounts in it (lxcfs adds
 * some). */
static int own_mounts(struct keeper *k, struct err *e)
{
    (void)k;
    if (unshare(CLONE_NEWNS) < 0)
        return err_sys(e, "create a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(e, "make all mounts slaves");
    if (umount2("/proc", MNT_DETACH) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "mount a /proc without other mounts in it");
    return 0;
}

static int open_key(struct keeper *k, struct err *e)
{
    return key_open(k->dir_fd, k->key_hash, e);
}

static int open_listener(struct keeper *k, struct err *e)
{
    k->listen_fd = listen_open(k->config.listen, k->url, e);
    return k->listen_fd < 0 ? -1 : 0;
}

static int open_init(struct keeper *k, struct err *e)
{
    k->init_fd = embed_init_fd(e);
    k->helper_fd = k->init_fd < 0 ? -1 : embed_helper_fd(e);
    return k->helper_fd < 0 ? -1 : 0;
}

/* Now, as root: later the keeper may be acting as the ids of a sandbox, and a thread inherits that. */
static int open_threads(struct keeper *k, struct err *e)
{
    static const enum job_lane ours[] = {JOB_DISK, JOB_FLUSH, JOB_RESERVE};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (job_open(k->loop, ours[i], e) < 0)
            return -1;
    return 0;
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

/* Each step may rely on the ones above it. The host is checked through its own /proc, so before the
 * mounts. Directories are opened after the mounts: one opened before belongs to the host's
 * namespace, and nothing can be mounted through it. The state directory comes with its lock: from
 * there on no other daemon uses it. */
/* clang-format off */
static const struct {
    const char *what;
    int (*run)(struct keeper *k, struct err *e);
} steps[] = {
    {"privileges",         privileges_drop},
    {"oom score",          memory_protect},
    {"fsync",              fsync_read},
    {"boot id",            host_boot_read},
    {"this host",          doctor_check},
    {"mounts",             own_mounts},
    {"state directory",    dirs_open},
    {"limits",             raise_limits},
    {"api key",            open_key},
    {"id ranges",          ids_open},
    {"cgroups",            cgroup_open},
    {"memory",             memory_open},
    {"network",            network_open},
    {"mounts",             mount_read},
    {"closer",             closer_open},
    {"threads",            open_threads},
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

/* HOST or HOST:PORT; "" is the default. A scheme before it, which is easily typed, would be part of
 * every URL that clients are told. */
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
    k->dir_fd = k->run_fd = k->damaged_fd = k->records.fd = k->front_fd = k->lock_fd =
        k->listen_fd = -1;
    k->init_fd = k->helper_fd = k->disk.fd = k->disk.qgroups_fd = k->ids.fd = -1;
    k->network.watch_io.fd = k->cgroups.v2_fd = -1;
    for (int c = 0; c < CTRL_COUNT; c++)
        k->cgroups.v1_fd[c] = -1;
    nursery_init(k);
    if (config_load(&k->config, argc, argv, e) < 0)
        return -1;
    level = log_level_from(k->config.log_level);
    if (level < 0)
        return err_set(e, ERR_INVALID, "log-level: '%s' is not error, warn, info or debug",
                       k->config.log_level);
    if (!is_domain(k->config.domain))
        return err_set(e, ERR_INVALID, "domain: '%.100s' is not HOST or HOST:PORT",
                       k->config.domain);
    log_open("keeper", (enum log_level)level);
    if (geteuid() != 0)
        return err_set(e, ERR_DENIED, "not root: namespaces, mounts and cgroups need it");
    return loop_new(&k->loop, e);
}

/* No handler for SIGCHLD: the front and the inits have pidfds, and other children are waited for
 * where they are started. */
static int serve(struct keeper *k, struct err *e)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};

    if (front_wait_old(k, e) < 0 || open_listener(k, e) < 0 || template_make_first(k, e) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (loop_signal(k->loop, ends[i], stop_asked, k, e) < 0)
            return -1;
    if (front_start(k, e) < 0)
        return -1;
    pool_refill(k);
    return loop_run(k->loop, e) < 0 ? -1 : front_check(k, e);
}

/* A daemon that ends in order, or could not start, deletes every sandbox that no client has. A
 * teardown that does not finish (a process that the kernel does not end, no free fd) does not block
 * the end: its record is there, and the next start continues with it. */
static void leave(struct keeper *k)
{
    uint64_t until = clock_mono_ns() + LEAVE_MS * 1000000ull;
    struct err e;

    ready_unsay(k);
    pool_drain(k);
    while ((k->counts[COUNT_TEARDOWN] > 0 || job_is_busy(k->loop)) && clock_mono_ns() < until &&
           loop_turn(k->loop, LEAVE_LOOK_MS, &e) == 0)
        continue;
    if (k->counts[COUNT_TEARDOWN] > 0)
        log_warn("%zu sandboxes are not down yet; the next start continues with them",
                 k->counts[COUNT_TEARDOWN]);
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
        r = listen_check(k.config.listen, access(k.config.state, F_OK) < 0, &e);
    if (r == 0)
        r = keeper_come_up(&k, &e);
    if (r == 0) {
        r = serve(&k, &e);
        leave(&k);
    } else {
        cgroup_close_all(&k); /* groups with sandboxes in them stay */
        network_undo(&k);
    }
    nursery_close(&k);
    if (r < 0)
        fprintf(stderr, "cove serve: %s\n", e.msg);
    config_free(&k.config);
    return r < 0 ? err_exit(e.kind) : 0;
}
