/* engine.c - init: started, adopted, ended. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "host/internal.h"
#include "wire/boot.h"
#include "wire/fds.h"
#include "wire/host.h"
#include "wire/init.h"

#define ANSWER_MS 10000
#define END_MS 6000 /* for init to kill what it started; then it is killed itself */
#define ORPHANS_MS 5000

static void address(const struct host *h, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* by fd: a path may be longer than such an address */
    str_fmt(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" HOST_ID, h->run_fd);
}

/* ---- adopting ---- */

/* Init speaks first: its hello. */
static int read_hello(struct host *h, int fd)
{
    autobuf struct buf in = BUF_INIT(WIRE_HEAD + 256);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct wire_head head;
    struct init_hello m;
    const char *body;
    struct err e;
    int whole = 0;

    while (whole == 0 && poll(&p, 1, ANSWER_MS) == 1) {
        char *room = buf_room(&in, 256);
        ssize_t n = room == NULL ? -1 : recv(fd, room, 256, 0);

        if (n <= 0)
            return -1;
        buf_added(&in, (size_t)n);
        whole = wire_peek(&in, &head, &body, &e);
    }
    if (whole != 1 || head.type != INIT_HELLO ||
        wire_get(init_msg(INIT_HELLO), body, head.len, &m, &e) < 0 ||
        !init_is_understood(m.version))
        return -1;
    str_fmt(h->engine.boot_id, sizeof(h->engine.boot_id), "%s", m.boot_id);
    h->engine.started_ms = m.booted_ms;
    return 0;
}

static bool is_isolated(pid_t pid)
{
    char path[64], theirs[64] = "", ours[64] = "";

    str_fmt(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    return readlink(path, theirs, sizeof(theirs) - 1) > 0 &&
           readlink("/proc/self/ns/pid", ours, sizeof(ours) - 1) > 0 && strcmp(ours, theirs) != 0;
}

/* 0: it runs, and its pidfd is here. */
static int adopt(struct host *h)
{
    autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a;
    struct ucred peer;
    socklen_t len = sizeof(peer);

    address(h, &a);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || read_hello(h, fd) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
        return -1;
    h->engine.pid = peer.pid;
    h->engine.pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    h->isolated = is_isolated(peer.pid);
    return h->engine.pidfd < 0 ? -1 : 0;
}

/* ---- starting ---- */

static int make_socket(struct host *h, struct err *e)
{
    autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a;

    address(h, &a);
    unlinkat(h->run_fd, HOST_ID, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        fchmodat(h->run_fd, HOST_ID, 0600, 0) < 0)
        return err_sys(e, "make the socket of init");
    return take_fd(&fd);
}

static void __attribute__((noreturn)) become_init(const struct host *h, int boot)
{
    static char title[] = "cove: init", arg[] = HOST_ARG;
    static char *const argv[] = {title, arg, NULL};
    static char *const envp[] = {NULL};
    int high = fcntl(boot, F_DUPFD, BOOT_FD + 2), program = fcntl(h->init_fd, F_DUPFD, BOOT_FD + 2);
    int null = open("/dev/null", O_RDWR);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid(); /* Ctrl-C is for this process alone */
    if (high < 0 || program < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(high, BOOT_FD) < 0 || dup3(program, BOOT_FD + 1, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, BOOT_FD + 2, ~0u, 0) < 0 || chdir("/") < 0)
        _exit(4);
    syscall(SYS_execveat, BOOT_FD + 1, "", argv, envp, AT_EMPTY_PATH);
    _exit(5);
}

static int send_boot(struct host *h, int sock, int listen_fd, struct err *e)
{
    autofd int run = cgroup_run(h);
    struct host_message m = {.version = INIT_VERSION,
                             .cgroups = run >= 0,
                             /* a user namespace with one id has no others */
                             .identities = geteuid() == 0};
    const int fds[HOST_FD_COUNT] = {listen_fd, h->helper_fd, run >= 0 ? run : h->helper_fd};
    struct pollfd p = {.fd = sock, .events = POLLIN};
    struct boot_answer a;

    _Static_assert(sizeof(m.boot_id) > ID_UUID_LEN, "a boot id is a UUID");
    id_uuid(m.boot_id);
    str_fmt(h->engine.boot_id, sizeof(h->engine.boot_id), "%s", m.boot_id);
    str_fmt(m.sessions, sizeof(m.sessions), "%s/sessions", h->state);
    if (fds_send(sock, &m, sizeof(m), fds, HOST_FD_COUNT, 0) < 0)
        return err_sys(e, "start init");
    if (poll(&p, 1, ANSWER_MS) != 1 || recv(sock, &a, sizeof(a), 0) != (ssize_t)sizeof(a))
        return err_set(e, ERR_INTERNAL, "start init: it ended, or did not answer in %d ms",
                       ANSWER_MS);
    a.error[sizeof(a.error) - 1] = '\0';
    return a.ok ? 0 : err_set(e, ERR_INTERNAL, "start init: %s", a.error);
}

static int launch(struct host *h, struct err *e)
{
    autofd int listen_fd = make_socket(h, e), mine = -1, theirs = -1;
    int pair[2];

    if (listen_fd < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "make a socket for init");
    mine = pair[0];
    theirs = pair[1];
    h->engine.pid = isolate_fork(h, &h->engine.pidfd, e);
    if (h->engine.pid < 0)
        return -1;
    if (h->engine.pid == 0)
        become_init(h, theirs);
    drop_fd(&theirs);
    return send_boot(h, mine, listen_fd, e);
}

static void is_gone(struct loop_io *io, uint32_t events)
{
    struct host *h = CONTAINER_OF(io, struct host, engine.io);

    (void)events;
    log_warn("init ended; what it had started is killed");
    engine_stop(h);
    link_died(h, "its init ended");
}

int engine_start(struct host *h, struct err *e)
{
    if (h->engine.state == ENGINE_UP)
        return 0;
    if (adopt(h) == 0) {
        log_info("adopted init, pid %d", (int)h->engine.pid);
    } else if (launch(h, e) < 0) {
        engine_stop(h);
        return -1;
    } else {
        h->engine.started_ms = clock_real_ms();
    }
    if (loop_io_start(h->loop, &h->engine.io, h->engine.pidfd, EPOLLIN, is_gone, e) < 0)
        return -1;
    h->engine.state = ENGINE_UP;
    return 0;
}

/* ---- ending ---- */

static pid_t parent_of(const char *pid)
{
    char path[64], text[512] = "", *at;
    autofd int fd = -1;

    str_fmt(path, sizeof(path), "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return 0;
    at = strrchr(text, ')');
    return at == NULL || at[1] == '\0' ? 0 : (pid_t)strtol(at + 3, NULL, 10);
}

/* What a killed init had started are our children now (PR_SET_CHILD_SUBREAPER), and their children
 * will be. True: there are none. */
static bool kill_children(const struct host *h)
{
    DIR *d = opendir("/proc");
    bool none = true;
    pid_t pid;

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        if (de->d_name[0] < '0' || de->d_name[0] > '9' || parent_of(de->d_name) != getpid())
            continue;
        pid = (pid_t)strtol(de->d_name, NULL, 10);
        if (pid == h->front.pid)
            continue;
        none = false;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, WNOHANG);
    }
    if (d != NULL)
        closedir(d);
    return none;
}

static bool has_ended(int pidfd, int ms)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return pidfd < 0 || poll(&p, 1, ms) == 1;
}

void engine_stop(struct host *h)
{
    uint64_t until = clock_mono_ns() + ORPHANS_MS * 1000000ull;

    loop_io_stop(h->loop, &h->engine.io);
    if (h->engine.pidfd >= 0) {
        syscall(SYS_pidfd_send_signal, h->engine.pidfd, SIGTERM, NULL, 0);
        if (!has_ended(h->engine.pidfd, END_MS))
            syscall(SYS_pidfd_send_signal, h->engine.pidfd, SIGKILL, NULL, 0);
        has_ended(h->engine.pidfd, END_MS);
        waitpid(h->engine.pid, NULL, WNOHANG);
    }
    while (!kill_children(h) && clock_mono_ns() < until)
        poll(NULL, 0, 2);
    drop_fd(&h->engine.pidfd);
    h->engine.pid = 0;
    h->engine.state = ENGINE_DOWN;
    unlinkat(h->run_fd, HOST_ID, 0);
}
