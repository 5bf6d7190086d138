/* stop.c - `cove stop`: ends the daemon; with --all, also every sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/host/ready.h"
#include "keeper/keeper.h"
#include "keeper/life.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "loop/job.h"

#define STOP_WAIT_MS 30000

/* The pid of the daemon that has the lock now; 0 if none has. */
static pid_t holder(const char *state)
{
    char path[600], text[32] = "";
    autofd int fd = -1;
    uint64_t pid;

    snprintf(path, sizeof(path), "%s/lock", state);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return str_u64(text, 1u << 30, &pid) < 0 ? 0 : (pid_t)pid;
}

static int end_daemon(const char *state, struct err *e)
{
    pid_t pid = holder(state);
    autofd int fd = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd < 0 || holder(state) != pid || dirs_holder(pid) == HOLDER_GONE)
        return 0;
    if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0)
        return err_sys(e, "end the daemon (pid %d)", (int)pid);
    if (poll(&p, 1, STOP_WAIT_MS) <= 0)
        return err_set(e, ERR_UNRESPONSIVE, "stop the daemon (pid %d): it did not end within %d ms",
                       (int)pid, STOP_WAIT_MS);
    return 0;
}

/* The daemon that served here has accepted missing walls, or did not start. If the disks are in an
 * image, no other kind of disk is tried. */
static const char *walls_accepted(const char *state)
{
    char image[600];

    str_fmt(image, sizeof(image), "%s/disk.img", state);
    return access(image, F_OK) == 0 ? "no-cpu-limit,no-memory-limit,no-pids-limit"
                                    : "no-cpu-limit,no-memory-limit,no-pids-limit,no-disk-limit";
}

/* No daemon runs: starts like one, without a front, and takes everything down. The pool is not
 * filled meanwhile. */
static int end_all(struct keeper *k, struct err *e)
{
    struct sandbox *sb;

    k->config.pool = 0;
    k->ending = true;
    /* Network leftovers are removed in any case, so the settings do not matter. */
    free(k->config.network);
    free(k->config.accept);
    k->config.network = strdup("none");
    k->config.accept = strdup(walls_accepted(k->config.state));
    if (k->config.network == NULL || k->config.accept == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (keeper_come_up(k, e) < 0)
        return -1;
    SANDBOX_EACH(k, sb)
    sandbox_tell(sb, EV_STOP_ALL);
    while (k->counts[COUNT_TEARDOWN] > 0 || job_is_busy(k->loop))
        if (loop_turn(k->loop, -1, e) < 0)
            return -1;
    closer_wait();
    ids_sweep(k);
    disk_close(k);
    cgroup_close_all(k);
    network_close(k);
    ready_unsay(k);
    return 0;
}

int keeper_stop_main(bool all, const char *state)
{
    static struct keeper k;
    char *const settings[] = {(char *)"--state", (char *)state};
    struct stat st;
    struct err e;
    int r = keeper_load(&k, state != NULL ? 2 : 0, settings, &e);

    prctl(PR_SET_NAME, "cove-stop"); /* it has the lock for a while; see dirs_holder() */
    log_open("stop", LOG_LEVEL_WARN);
    if (r == 0 && stat(k.config.state, &st) < 0)
        r = err_set(&e, ERR_NOT_FOUND, "state directory %s does not exist", k.config.state);
    if (r == 0)
        r = end_daemon(k.config.state, &e);
    if (r == 0 && all)
        r = end_all(&k, &e);
    if (r < 0)
        fprintf(stderr, "cove stop: %s\n", e.msg);
    config_free(&k.config);
    return r < 0 ? err_exit(e.kind) : 0;
}
