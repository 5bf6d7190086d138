/* front.c - the unprivileged half: born here, without privileges, and born again
 * when it dies. The listener is ours, so connects wait in its backlog meanwhile. */
#include "keeper/host/front.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/host/ready.h"
#include "keeper/ops.h"
#include "wire/front.h"

#define FRONT_AGAIN_MS 50    /* after a death; doubled up to... */
#define FRONT_AGAIN_MAX 5000 /* ...this, while it keeps dying young */
#define FRONT_YOUNG_MS 10000

#define LEAVE_MS 3000 /* for the front of a killed keeper to end; then it is killed... */
#define LEFT_MS 10000 /* ...and then given up */
#define LEAVE_STEP_MS 10

struct front {
    struct keeper *k;
    pid_t pid;
    int pidfd;
    struct loop_io io;
    struct loop_timer again;
    uint64_t wait_ms, born_ns;
    bool stopping, said;
    int gave_up; /* status with which it ended by itself before it was ready; 0: it did not */
};

static void begin(struct loop_timer *t);

/* In the child: from root to cove, for good. Raw system calls: glibc's would tell the
 * keeper's other thread, which it believes in and which this copy does not have; if
 * that one was just starting, the child would wait for it without end. */
static int drop_privileges(const struct keeper *k)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0}};

    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap) < 0)
            return -1;
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) < 0 ||
        syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, k->cove_gid, k->cove_gid, k->cove_gid) < 0 ||
        syscall(SYS_setresuid, k->cove_uid, k->cove_uid, k->cove_uid) < 0)
        return -1;
    if (syscall(SYS_capset, &h, d) < 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Moves the fds to their places above everything first, so that no dup2
 * overwrites one that is still to be moved. */
static int place_fds(const struct keeper *k, int sock)
{
    const int from[] = {k->listen_fd, sock, k->run_fd, k->front_fd};
    const int to[] = {FRONT_FD_LISTEN, FRONT_FD_KEEPER, FRONT_FD_RUN, FRONT_FD_STATE};
    int high[ARRAY_LEN(from)];

    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if ((high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64)) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if (dup2(high[i], to[i]) < 0)
            return -1;
    return (int)syscall(SYS_close_range, FRONT_FD_STATE + 1, ~0u, 0);
}

static void __attribute__((noreturn))
child_main(const struct keeper *k, int sock, char **argv, char **envp)
{
    struct rlimit files;
    sigset_t none;
    int exe;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (place_fds(k, sock) < 0) {
        log_error("front: its fds: %s", strerror(errno));
        _exit(70);
    }
    exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (exe < 0 || drop_privileges(k) < 0) {
        log_error("front: dropping privileges: %s", strerror(errno));
        _exit(70);
    }
    fexecve(exe, argv, envp);
    log_error("front: exec: %s", strerror(errno));
    _exit(70);
}

static int spawn(struct front *f, int sock, struct err *e)
{
    autofree char **settings = config_argv(&f->k->config);
    char title[] = "cove: front", arg[] = FRONT_ARG;
    char *argv[2 + CONFIG_COUNT + 1] = {title, arg};
    char hash[128], *envp[] = {hash, NULL};
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&f->pidfd, .exit_signal = SIGCHLD};
    long pid;

    if (settings == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        argv[i + 2] = settings[i];
    str_fmt(hash, sizeof(hash), "COVE_KEY_SHA256=%s", f->k->key_hash);
    pid = sys_clone3(&args);
    if (pid == 0)
        child_main(f->k, sock, argv, envp);
    if (pid < 0)
        return err_sys(e, "start the front");
    f->pid = (pid_t)pid;
    return 0;
}

static void reaped(struct loop_io *io, uint32_t events)
{
    struct front *f = CONTAINER_OF(io, struct front, io);
    siginfo_t si = {0};

    (void)events;
    if (waitid(P_PIDFD, (id_t)f->pidfd, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
        return;
    loop_io_stop(f->k->loop, &f->io);
    drop_fd(&f->pidfd);
    f->pid = 0;
    link_close(f->k);
    if (!f->said && si.si_code == CLD_EXITED)
        f->gave_up = si.si_status;
    if (f->stopping || f->gave_up != 0) {
        loop_stop(f->k->loop);
        return;
    }
    log_warn("the front ended (%s %d); starting another",
             si.si_code == CLD_EXITED ? "status" : "signal", si.si_status);
    if (loop_now_ns(f->k->loop) - f->born_ns > FRONT_YOUNG_MS * 1000000ull)
        f->wait_ms = FRONT_AGAIN_MS;
    loop_timer_set(f->k->loop, &f->again, f->wait_ms, begin);
    f->wait_ms = f->wait_ms * 2 > FRONT_AGAIN_MAX ? FRONT_AGAIN_MAX : f->wait_ms * 2;
}

static int born(struct front *f, struct err *e)
{
    autofd int mine = -1, theirs = -1;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "socket to the front");
    mine = pair[0];
    theirs = pair[1];
    f->born_ns = loop_now_ns(f->k->loop);
    if (spawn(f, theirs, e) < 0 ||
        loop_io_start(f->k->loop, &f->io, f->pidfd, EPOLLIN, reaped, e) < 0)
        return -1;
    return link_open(f->k, take_fd(&mine), e);
}

static void begin(struct loop_timer *t)
{
    struct front *f = CONTAINER_OF(t, struct front, again);
    struct err e;

    if (born(f, &e) < 0) {
        log_error("%s", e.msg);
        loop_timer_set(f->k->loop, &f->again, FRONT_AGAIN_MAX, begin);
    }
}

/* ---- that of a keeper before us ---- */

/* It has our directory for fronts open: its database is there. Each thread is looked at, for the
 * first may have ended while another waits for a disk. */
static bool serves_here(const struct stat *dir, const char *pid)
{
    char path[96], name[32] = "";
    struct stat st;
    bool here = false;
    DIR *d;

    str_fmt(path, sizeof(path), "/proc/%.20s/comm", pid);
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, name, sizeof(name) - 1) <= 0 || strcmp(name, FRONT_NAME "\n") != 0)
        return false;
    str_fmt(path, sizeof(path), "/proc/%.20s/task", pid);
    d = opendir(path);
    for (struct dirent *de; !here && d != NULL && (de = readdir(d)) != NULL;) {
        str_fmt(path, sizeof(path), "%.20s/fd/%d", de->d_name, FRONT_FD_STATE);
        here = fstatat(dirfd(d), path, &st, 0) == 0 && st.st_ino == dir->st_ino &&
               st.st_dev == dir->st_dev;
    }
    if (d != NULL)
        closedir(d);
    return here;
}

/* Its pid; 0 if there is none. */
static pid_t find_old(const struct keeper *k)
{
    struct stat dir;
    DIR *d = fstat(k->front_fd, &dir) < 0 ? NULL : opendir("/proc");
    pid_t pid = 0;

    for (struct dirent *de; pid == 0 && d != NULL && (de = readdir(d)) != NULL;)
        if (de->d_name[0] >= '0' && de->d_name[0] <= '9' && serves_here(&dir, de->d_name))
            pid = (pid_t)strtol(de->d_name, NULL, 10);
    if (d != NULL)
        closedir(d);
    return pid;
}

/* It notices that its keeper is gone and ends, unless it is stopped or waits for a disk. Until
 * then it has the port and the database, and a new one would not start. */
int front_wait_old(struct keeper *k, struct err *e)
{
    pid_t pid;

    for (int waited = 0; (pid = find_old(k)) != 0; waited += LEAVE_STEP_MS) {
        autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0);

        if (waited >= LEFT_MS)
            return err_set(e, ERR_CONFLICT,
                           "the front (pid %d) of a cove that was killed does not end", (int)pid);
        if (waited == LEAVE_MS && fd >= 0 && find_old(k) == pid) {
            log_warn("the front (pid %d) of a keeper that is gone does not end: killing it",
                     (int)pid);
            syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
        }
        poll(NULL, 0, LEAVE_STEP_MS);
    }
    return 0;
}

/* ---- ours ---- */

int front_start(struct keeper *k, struct err *e)
{
    struct front *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    f->k = k;
    f->pidfd = f->io.fd = -1;
    f->wait_ms = FRONT_AGAIN_MS;
    k->front = f;
    return born(f, e);
}

int front_check(const struct keeper *k, struct err *e)
{
    if (k->front->gave_up == 0)
        return 0;
    return err_set(e, ERR_INTERNAL, "the front cannot start, for the reason it gave above");
}

void front_ready(struct keeper *k)
{
    if (!k->front->said)
        ready_say(k);
    k->front->said = true;
}

/* It closed its socket or spoke nonsense: whatever it is now, it must go. */
void front_ended(struct keeper *k)
{
    if (k->front != NULL && k->front->pid > 0)
        kill(k->front->pid, SIGKILL);
}

void front_stop(struct keeper *k)
{
    if (k->front == NULL || k->front->pid == 0) {
        loop_stop(k->loop);
        return;
    }
    if (k->front->stopping) /* asked a second time: at once */
        kill(k->front->pid, SIGKILL);
    k->front->stopping = true;
    kill(k->front->pid, SIGTERM);
}

bool front_is_stopping(const struct keeper *k)
{
    return k->front != NULL && k->front->stopping;
}

bool front_is_up(const struct keeper *k)
{
    return k->front != NULL && k->front->pid > 0;
}
