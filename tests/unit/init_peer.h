/* init_peer.h - a front for one test: an init of its own, and connections to it.
 *
 * Needs root and cgroup v2; peer_init_open() skips the test without them. Every
 * read has a deadline, so a missing answer fails instead of hanging. */
#ifndef INIT_PEER_H
#define INIT_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "init/serve/serve.h"
#include "wire/init.h"

#define PEER_DEADLINE_S 20

struct peer_init {
    pid_t pid;
    char sock[64], cgroup[96];
};

/* The one that is open: a test that failed has left it for the next to close. */
static struct peer_init peer_left;

struct peer {
    int fd;
    struct buf in;
    uint32_t seq;
    size_t consume; /* the last answer, which is still being looked at */
    uint16_t type;
    union {
        struct init_hello hello;
        struct init_fail fail;
        struct init_ok ok;
        struct init_started started;
        struct init_output output;
        struct init_truncated truncated;
        struct init_exit exit;
        struct init_proc proc;
        struct init_end end;
        struct init_event event;
        struct init_screen screen;
        struct init_fd fd;
    } m;
    int passed; /* the last fd that came along, or -1; the test's to close */
};

static inline const char *peer_cgroup_root(void)
{
    if (geteuid() != 0)
        return NULL;
    if (access("/sys/fs/cgroup/unified/cgroup.procs", W_OK) == 0)
        return "/sys/fs/cgroup/unified";
    return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? "/sys/fs/cgroup" : NULL;
}

__attribute__((noreturn)) static inline void peer_init_run(const struct peer_init *pi,
                                                           int listen_fd)
{
    struct serve_opts o = {
        .listen_fd = listen_fd, .boot_id = "boot", .booted_ms = 7, .nofile = 256};

    o.run_fd = open(pi->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve_default_signals();
    serve_run(&o);
    _exit(1);
}

static inline int peer_init_fds(const struct peer_init *pi)
{
    char path[64];
    int n = 0;

    for (int i = 0; i < 4096; i++) {
        str_fmt(path, sizeof(path), "/proc/%d/fd/%d", pi->pid, i);
        n += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return n;
}

static inline void peer_write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    int fd;

    str_fmt(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) > 0);
    close(fd);
}

/* The orphans of a killed init come to us: when the last is reaped, every group
 * is empty. */
static inline void peer_init_close(struct peer_init *pi)
{
    char path[160];

    kill(pi->pid, SIGKILL);
    peer_write_file(pi->cgroup, "cgroup.kill", "1");
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    for (int i = 1; i < 2000; i++) {
        str_fmt(path, sizeof(path), "%s/%d", pi->cgroup, i);
        rmdir(path);
    }
    unlink(pi->sock);
    peer_left.pid = 0;
    CHECK_INT(rmdir(pi->cgroup), 0);
}

static inline void peer_init_open(struct peer_init *pi)
{
    static int serial;
    const char *root = peer_cgroup_root();
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd;

    if (root == NULL)
        skip();
    if (peer_left.pid > 0)
        peer_init_close(&peer_left);
    str_fmt(pi->cgroup, sizeof(pi->cgroup), "%s/cove-unit-%d-%d", root, getpid(), ++serial);
    str_fmt(pi->sock, sizeof(pi->sock), "/tmp/cove-unit-%d", getpid());
    CHECK_INT(mkdir(pi->cgroup, 0755), 0);
    strcpy(a.sun_path, pi->sock);
    unlink(pi->sock);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(listen(fd, 64), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pi->pid = fork();
    if (pi->pid == 0)
        peer_init_run(pi, fd);
    close(fd);
    peer_left = *pi;
}

static inline ssize_t peer_recv(struct peer *p, char *room, size_t n)
{
    struct iovec iov = {room, n};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } c;
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
    ssize_t got = recvmsg(p->fd, &m, MSG_CMSG_CLOEXEC);

    if (got > 0 && CMSG_FIRSTHDR(&m) != NULL)
        memcpy(&p->passed, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
    return got;
}

/* The next answer; its type. 0 when the connection is closed. */
static inline int peer_next(struct peer *p)
{
    struct wire_head h;
    const char *body;
    struct err e;
    int ret;

    buf_consume(&p->in, p->consume);
    p->consume = 0;
    while ((ret = wire_peek(&p->in, &h, &body, &e)) == 0) {
        char *room = buf_room(&p->in, 65536);
        ssize_t n = peer_recv(p, room, 65536);

        if (n < 0 && errno == EAGAIN)
            fail_msg("no answer in %d s", PEER_DEADLINE_S);
        if (n <= 0)
            return 0;
        buf_added(&p->in, (size_t)n);
    }
    CHECK_INT(ret, 1);
    CHECK(init_msg(h.type) != NULL);
    CHECK_INT(wire_get(init_msg(h.type), body, h.len, &p->m, &e), 0);
    CHECK(h.seq == p->seq);
    p->consume = WIRE_HEAD + h.len;
    p->type = h.type;
    return h.type;
}

static inline void peer_open(struct peer *p, const struct peer_init *pi)
{
    struct timeval tv = {.tv_sec = PEER_DEADLINE_S};
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    *p = (struct peer){.in = BUF_INIT(8u << 20), .passed = -1};
    strcpy(a.sun_path, pi->sock);
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(p->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    CHECK_INT(peer_next(p), INIT_HELLO);
}

static inline void peer_close(struct peer *p)
{
    close(p->fd);
    buf_free(&p->in);
}

static inline void peer_send_as(struct peer *p, uint16_t type, uint32_t seq, const void *msg)
{
    struct buf out = BUF_INIT(8u << 20);
    struct err e;

    CHECK_INT(wire_put(&out, init_msg(type), seq, msg, &e), 0);
    CHECK_INT(send(p->fd, buf_data(&out), out.len, MSG_NOSIGNAL), (ssize_t)out.len);
    buf_free(&out);
}

static inline void peer_send(struct peer *p, uint16_t type, const void *msg)
{
    peer_send_as(p, type, ++p->seq, msg);
}

/* Asks, and wants an answer of this type. */
static inline void peer_ask(struct peer *p, uint16_t type, const void *msg, int want)
{
    peer_send(p, type, msg);
    if (peer_next(p) != want) {
        if (p->type == INIT_FAIL)
            print_error("fail %s: %s\n", p->m.fail.code, p->m.fail.message);
        CHECK_INT(p->type, want);
    }
}

/* A start of these words (up to a NULL); the caller may change more before
 * sending. Points into one static buffer. */
static inline struct init_start peer_words(const char *id, uint32_t flags, ...)
{
    static struct buf words = BUF_INIT(1u << 20);
    static const char env[] = "PATH=/usr/bin:/bin";
    struct init_start m = {.id = id, .cwd = "/", .user = "root", .flags = flags};
    const char *w;
    va_list ap;

    buf_clear(&words);
    va_start(ap, flags);
    while ((w = va_arg(ap, const char *)) != NULL)
        wire_strv_add(&words, w);
    va_end(ap);
    m.argv = wire_strv_of(&words);
    m.env = (struct wire_strv){env, sizeof(env), 1};
    return m;
}

static inline void peer_sh(struct peer *p, const char *id, uint32_t flags, const char *script)
{
    struct init_start m = peer_words(id, flags, "/bin/sh", "-c", script, NULL);

    peer_ask(p, INIT_START, &m, INIT_STARTED);
}

/* Collects output until something else comes; returns that type. */
static inline int peer_collect(struct peer *p, struct buf *out, struct buf *err)
{
    while (peer_next(p) == INIT_OUTPUT)
        buf_add(p->m.output.stream == INIT_STDERR ? err : out, p->m.output.data.p,
                p->m.output.data.len);
    return p->type;
}

#endif
