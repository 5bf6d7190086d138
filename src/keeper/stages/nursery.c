/* nursery.c - see nursery.h. */
#include "keeper/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "keeper/host.h"
#include "keeper/stages.h"
#include "wire/birth.h"
#include "wire/fds.h"

#define AHEAD 4          /* open orders, so that the nursery never waits */
#define NURSERY_MS 10000 /* without an answer: the nursery is replaced */

_Static_assert((int)BIRTH_FDS_MAX - (int)BIRTH_V1 >= (int)CTRL_COUNT, "a place for each v1 group");

void nursery_init(struct keeper *k)
{
    struct nursery *n = &k->nursery;

    n->fd = n->io.fd = -1;
    list_init(&n->waiting);
    list_init(&n->ordered);
}

/* In the child: a copy of a program with threads, so only system calls. Fds 0, 1 and 2 are the
 * daemon's: a sandbox must have none of them. */
static void __attribute__((noreturn)) become_nursery(const struct keeper *k, int sock)
{
    static char title[] = "cove: nursery";
    static char *const argv[] = {title, NULL};
    static char *const envp[] = {NULL};
    int high = fcntl(sock, F_DUPFD, NURSERY_FD + 2), null = open("/dev/null", O_RDWR);
    int init = fcntl(k->init_fd, F_DUPFD, NURSERY_FD + 2);
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    /* Written with CAP_SYS_RESOURCE, it is also the lowest score that a sandbox can set. */
    if (score < 0 || write(score, k->memory.score, strlen(k->memory.score)) < 0)
        _exit(6);
    if (high < 0 || null < 0 || init < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(null, 2) < 0 || dup2(high, NURSERY_FD) < 0 ||
        dup3(init, NURSERY_FD + 1, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, NURSERY_FD + 2, ~0u, 0) < 0)
        _exit(4);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, NURSERY_FD + 1, "", argv, envp, AT_EMPTY_PATH);
    _exit(5);
}

static void answered(struct loop_io *io, uint32_t events);
static void is_late(struct loop_timer *t);

static int start(struct keeper *k, struct err *e)
{
    struct nursery *n = &k->nursery;
    int pair[2];

    if (n->pid != 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "create a socket for the nursery");
    n->fd = pair[0];
    fcntl(n->fd, F_SETFL, O_NONBLOCK);
    n->pid = fork();
    if (n->pid == 0)
        become_nursery(k, pair[1]);
    close(pair[1]);
    if (n->pid < 0) {
        n->pid = 0;
        drop_fd(&n->fd);
        return err_sys(e, "fork the nursery");
    }
    return loop_io_start(k->loop, &n->io, n->fd, EPOLLIN, answered, e);
}

/* A kill is safe: the nursery has no state. */
void nursery_close(struct keeper *k)
{
    struct nursery *n = &k->nursery;

    loop_timer_stop(k->loop, &n->late);
    loop_io_stop(k->loop, &n->io);
    drop_fd(&n->fd);
    if (n->pid == 0)
        return;
    kill(n->pid, SIGKILL);
    while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    n->pid = 0;
}

/* Sends an order, with the socket for the new init. 1: the nursery has ended. */
static int order(struct keeper *k, struct sandbox *sb, struct err *e)
{
    autofd int sock = start(k, e) < 0 ? -1 : birth_socket(sb, e);
    autofd int cgroup = sock < 0 ? -1 : cgroup_birth_fd(sb, e);
    struct birth_order o = {.id = ids_base(sb)};
    int fds[BIRTH_FDS_MAX], v1[CTRL_COUNT], r;

    if (cgroup < 0 || cgroup_open_v1(sb, v1, e) < 0)
        return -1;
    for (int i = 0; i < BIRTH_FDS_MAX; i++)
        fds[i] = i == BIRTH_BOOT ? sock : cgroup;
    for (int c = 0; c < CTRL_COUNT; c++)
        if (v1[c] >= 0)
            fds[BIRTH_V1 + o.nv1++] = v1[c];
    r = fds_send(k->nursery.fd, &o, sizeof(o), fds, BIRTH_FDS_MAX, MSG_DONTWAIT);
    if (r < 0) {
        r = errno == EPIPE || errno == ECONNRESET ? 1 : -1;
        err_sys(e, "ask the nursery for an init");
    }
    for (int c = 0; c < CTRL_COUNT; c++)
        drop_fd(&v1[c]);
    return r;
}

/* A sandbox whose order was lost with a nursery is ordered once more. */
static void again(struct sandbox *sb, struct err *e)
{
    if (sb->born_again)
        birth_failed(sb, e);
    else
        list_add_tail(&sb->k->nursery.waiting, &sb->birth_link);
    sb->born_again = true;
}

static void let_go(struct keeper *k);

static void order_more(struct keeper *k)
{
    struct nursery *n = &k->nursery;

    while (n->nordered < AHEAD && !list_empty(&n->waiting)) {
        struct sandbox *sb = LIST_FIRST(&n->waiting, struct sandbox, birth_link);
        struct err e;
        int r;

        list_del(&sb->birth_link);
        r = order(k, sb, &e);
        if (r == 0) {
            list_add_tail(&n->ordered, &sb->birth_link);
            n->nordered++;
        } else if (r < 0) {
            birth_failed(sb, &e);
        } else {
            let_go(k);
            again(sb, &e);
        }
    }
    if (n->nordered == 0)
        loop_timer_stop(k->loop, &n->late);
    else if (loop_timer_set(k->loop, &n->late, NURSERY_MS, is_late) < 0)
        log_warn("set the timer of the nursery: out of memory");
}

void nursery_order(struct sandbox *sb)
{
    list_add_tail(&sb->k->nursery.waiting, &sb->birth_link);
    order_more(sb->k);
}

/* The nursery was killed, perhaps by the kernel for want of memory. */
static void let_go(struct keeper *k)
{
    struct nursery *n = &k->nursery;
    struct err e;

    log_warn("the nursery ended; starting another");
    nursery_close(k);
    err_set(&e, ERR_INTERNAL, "start an init: the nursery ended twice");
    while (!list_empty(&n->ordered)) {
        struct sandbox *sb = LIST_FIRST(&n->ordered, struct sandbox, birth_link);

        list_del(&sb->birth_link);
        n->nordered--;
        again(sb, &e);
    }
}

static void replace(struct keeper *k)
{
    let_go(k);
    order_more(k);
}

static void is_late(struct loop_timer *t)
{
    replace(CONTAINER_OF(t, struct keeper, nursery.late));
}

static void answered(struct loop_io *io, uint32_t events)
{
    struct keeper *k = CONTAINER_OF(io, struct keeper, nursery.io);
    struct sandbox *sb = LIST_FIRST(&k->nursery.ordered, struct sandbox, birth_link);
    struct birth_answer a;
    ssize_t len;
    int pidfd;
    struct err e;

    (void)events;
    len = fds_receive(k->nursery.fd, &a, sizeof(a), &pidfd, 1);
    if (len < 0 && errno == EAGAIN)
        return;
    if (len != (ssize_t)sizeof(a) || sb == NULL || (a.pid == 0) != (pidfd < 0)) {
        replace(k);
        return;
    }
    list_del(&sb->birth_link);
    k->nursery.nordered--;
    order_more(k);
    if (a.pid > 0) {
        birth_born(sb, a.pid, pidfd);
        return;
    }
    errno = a.error;
    err_sys(&e, "clone an init");
    birth_failed(sb, &e);
}
