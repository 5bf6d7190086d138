/* front.c - the front: started, and started again when it ends. It runs as the same user. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "host/internal.h"
#include "wire/front.h"

#define AGAIN_MS 50 /* after a death; doubled up to... */
#define AGAIN_MAX 5000

static void begin(struct loop_timer *t);

/* Above everything first, so that no dup2 overwrites one that is still to be moved. */
static int place_fds(const struct host *h, int sock)
{
    const int from[] = {h->listen_fd, sock, h->run_fd, h->front_fd};
    const int to[] = {FRONT_FD_LISTEN, FRONT_FD_KEEPER, FRONT_FD_RUN, FRONT_FD_STATE};
    int high[ARRAY_LEN(from)];

    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if ((high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64)) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if (dup2(high[i], to[i]) < 0)
            return -1;
    return 0;
}

static void __attribute__((noreturn))
child_main(const struct host *h, int sock, char **argv, char **envp)
{
    int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    exe = exe < 0 ? -1 : fcntl(exe, F_DUPFD_CLOEXEC, 64);
    if (exe < 0 || place_fds(h, sock) < 0)
        _exit(70);
    fexecve(exe, argv, envp);
    _exit(70);
}

static int spawn(struct host *h, int sock, struct err *e)
{
    autofree char **settings = config_argv(&h->config);
    char title[] = "cove: front", arg[] = FRONT_ARG;
    char *argv[2 + CONFIG_COUNT + 1] = {title, arg};
    char hash[128], mode[64], *envp[] = {hash, mode, NULL};
    struct clone_args args = {.flags = CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)&h->front.pidfd,
                              .exit_signal = SIGCHLD};
    long pid;

    if (settings == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        argv[i + 2] = settings[i];
    str_fmt(hash, sizeof(hash), "COVE_KEY_SHA256=%s", h->key_hash);
    str_fmt(mode, sizeof(mode), FRONT_MODE_ENV "=%s",
            h->o->container ? FRONT_MODE_CONTAINER : FRONT_MODE_HOST);
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        child_main(h, sock, argv, envp);
    if (pid < 0)
        return err_sys(e, "start the front");
    h->front.pid = (pid_t)pid;
    return 0;
}

static void is_gone(struct loop_io *io, uint32_t events)
{
    struct host *h = CONTAINER_OF(io, struct host, front.io);
    siginfo_t si = {0};

    (void)events;
    if (waitid(P_PIDFD, (id_t)h->front.pidfd, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
        return;
    loop_io_stop(h->loop, &h->front.io);
    drop_fd(&h->front.pidfd);
    h->front.pid = 0;
    link_end(h);
    if (!h->ready && si.si_code == CLD_EXITED)
        h->status = si.si_status;
    if (h->ending || h->status != 0) {
        loop_stop(h->loop);
        return;
    }
    log_warn("the front ended (%s %d); starting another",
             si.si_code == CLD_EXITED ? "status" : "signal", si.si_status);
    loop_timer_set(h->loop, &h->front.again, h->front.wait_ms, begin);
    h->front.wait_ms = h->front.wait_ms * 2 > AGAIN_MAX ? AGAIN_MAX : h->front.wait_ms * 2;
}

static int born(struct host *h, struct err *e)
{
    autofd int mine = -1, theirs = -1;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "make a socket to the front");
    mine = pair[0];
    theirs = pair[1];
    if (spawn(h, theirs, e) < 0 ||
        loop_io_start(h->loop, &h->front.io, h->front.pidfd, EPOLLIN, is_gone, e) < 0)
        return -1;
    return link_begin(h, take_fd(&mine), e);
}

static void begin(struct loop_timer *t)
{
    struct host *h = CONTAINER_OF(t, struct host, front.again);
    struct err e;

    if (born(h, &e) < 0) {
        log_error("%s", e.msg);
        loop_timer_set(h->loop, &h->front.again, AGAIN_MAX, begin);
    }
}

int front_begin(struct host *h, struct err *e)
{
    h->front.wait_ms = AGAIN_MS;
    return born(h, e);
}

void front_end(struct host *h)
{
    if (h->front.pid == 0)
        loop_stop(h->loop);
    else
        kill(h->front.pid, h->ending ? SIGKILL : SIGTERM);
    h->ending = true;
}
