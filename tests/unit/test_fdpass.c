/* The other end of each fd is a hostile init's: the test plays it. */
#include "engine_rig.h"

#include <netinet/in.h>

#include "front/engine/fdpass.h"

struct passed {
    int n, fd;
    bool file;
    uint64_t size;
    struct err e;
};

static void on_fd(void *arg, int fd, const struct stat *st, const struct err *e)
{
    struct passed *p = arg;

    p->n++;
    p->fd = fd;
    p->file = st != NULL;
    p->size = st != NULL ? (uint64_t)st->st_size : 0;
    if (e != NULL)
        p->e = *e;
}

static void say_with(struct peer *p, uint16_t type, const void *msg, const int *fds, size_t n)
{
    autobuf struct buf out = BUF_INIT(64u << 10);
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(64 * sizeof(int))];
    } c = {0};
    struct iovec iov;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    struct err e;

    CHECK_INT(wire_put(&out, init_msg(type), 1, msg, &e), 0);
    iov = (struct iovec){buf_data(&out), out.len};
    if (n > 0) {
        m.msg_control = &c;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(h), fds, n * sizeof(int));
    }
    CHECK_INT(sendmsg(p->fd, &m, MSG_NOSIGNAL), (ssize_t)out.len);
}

struct scene {
    struct rig r;
    int listen;
    struct peer monitor, p;
    struct passed got;
    struct fd_call *call;
};

static void scene_open(struct scene *s)
{
    *s = (struct scene){0};
    rig_new(&s->r);
    rig_join(&s->r, rig_start(&s->r));
    rig_create(&s->r, "sb1", 0, SANDBOX_END_DELETE, &s->listen, &s->monitor);
}

static void scene_ask(struct scene *s, enum init_fd_kind kind)
{
    union rig_msg m;

    s->got = (struct passed){.fd = -1};
    if (kind == INIT_FD_FILE)
        s->call =
            fd_open(&(struct file_at){{s->r.g, KEY, "sb1"}, "/f", "user", false}, on_fd, &s->got);
    else
        s->call = fd_connect((struct ref){s->r.g, KEY, "sb1"}, 80, 1000, on_fd, &s->got);
    CHECK_INT(s->got.n, 0);
    s->p = init_accept(&s->r, s->listen);
    init_hello_to(&s->p);
    init_hear(&s->r, &s->p, kind == INIT_FD_FILE ? INIT_OPEN : INIT_CONNECT, &m);
}

static void scene_end(struct scene *s)
{
    RIG_UNTIL(&s->r, s->got.n == 1);
    RIG_UNTIL(&s->r, peer_is_closed(&s->p));
    peer_close(&s->p);
}

static void scene_close(struct scene *s)
{
    rig_settle(&s->r);
    peer_close(&s->monitor);
    close(s->listen);
    rig_free(&s->r);
}

static void refuses(struct scene *s, enum init_fd_kind kind, int fd, const char *why)
{
    struct init_fd m = {.kind = kind};

    scene_ask(s, kind);
    say_with(&s->p, INIT_FD, &m, &fd, fd >= 0);
    scene_end(s);
    CHECK_INT(s->got.fd, -1);
    CHECK_INT(s->got.e.kind, ERR_UNRESPONSIVE);
    CHECK_HAS(s->got.e.msg, why);
}

static int tcp_pair(int *ret_other)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_INT(bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(listen(l, 1), 0);
    CHECK_INT(getsockname(l, (struct sockaddr *)&a, &len), 0);
    CHECK_INT(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
    *ret_other = accept(l, NULL, NULL);
    close(l);
    return c;
}

TEST(a_tcp_socket_arrives_and_does_not_linger)
{
    struct linger on = {1, 600}, l;
    socklen_t len = sizeof(l);
    struct init_fd m = {.kind = INIT_FD_SOCKET};
    struct scene s;
    int other, fd = tcp_pair(&other);

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on));
    scene_open(&s);
    scene_ask(&s, INIT_FD_SOCKET);
    say_with(&s.p, INIT_FD, &m, &fd, 1);
    close(fd);
    scene_end(&s);
    CHECK(s.got.fd >= 0);
    CHECK_INT(getsockopt(s.got.fd, SOL_SOCKET, SO_LINGER, &l, &len), 0);
    CHECK_INT(l.l_onoff, 0);
    CHECK_INT(fcntl(s.got.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    fd_close(s.r.g, s.got.fd, KEY);
    CHECK_INT(recv(other, &l, 1, 0), 0);
    scene_close(&s);
    close(other);
}

TEST(an_fd_of_another_kind_is_refused)
{
    struct scene s;
    int other, tcp = tcp_pair(&other), pair[2], pipe_fds[2];
    int proc = open("/proc/self/status", O_RDONLY), tmp = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_INT(pipe(pipe_fds), 0);
    scene_open(&s);
    refuses(&s, INIT_FD_SOCKET, pair[0], "not a TCP socket");
    refuses(&s, INIT_FD_SOCKET, udp, "not a TCP socket");
    refuses(&s, INIT_FD_SOCKET, proc, "not a TCP socket");
    refuses(&s, INIT_FD_SOCKET, -1, "not the one fd");
    refuses(&s, INIT_FD_FILE, proc, "not a file of the sandbox's root");
    refuses(&s, INIT_FD_FILE, tmp, "not a file of the sandbox's root");
    refuses(&s, INIT_FD_FILE, pipe_fds[0], "not a regular file");
    refuses(&s, INIT_FD_FILE, tcp, "not a regular file");
    scene_close(&s);
    close(tcp), close(other), close(pair[0]), close(pair[1]), close(pipe_fds[0]);
    close(pipe_fds[1]), close(proc), close(tmp), close(udp);
}

TEST(more_fds_than_one_are_all_closed)
{
    struct init_fd m = {.kind = INIT_FD_SOCKET};
    struct scene s;
    int other[2], fds[2] = {tcp_pair(&other[0]), tcp_pair(&other[1])}, many[32], pair[2];
    char c;

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    scene_open(&s);
    scene_ask(&s, INIT_FD_SOCKET);
    say_with(&s.p, INIT_FD, &m, fds, 2);
    close(fds[0]), close(fds[1]);
    scene_end(&s);
    CHECK_INT(s.got.fd, -1);
    CHECK_INT(recv(other[0], &c, 1, 0), 0);
    CHECK_INT(recv(other[1], &c, 1, 0), 0);
    scene_ask(&s, INIT_FD_SOCKET);
    for (int i = 0; i < 32; i++)
        many[i] = pair[0];
    say_with(&s.p, INIT_FD, &m, many, 32);
    close(pair[0]);
    scene_end(&s);
    CHECK_INT(s.got.fd, -1);
    CHECK_INT(recv(pair[1], &c, 1, 0), 0);
    scene_close(&s);
    close(other[0]), close(other[1]), close(pair[1]);
}

/* A socket whose close waits: bytes that its peer does not read, and linger. */
static int lingering(int *ret_other)
{
    struct linger on = {1, 1};
    int fd = tcp_pair(ret_other), small = 4096;
    char junk[65536] = {0};

    setsockopt(*ret_other, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    while (send(fd, junk, sizeof(junk), MSG_DONTWAIT) > 0)
        ;
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
    return fd;
}

static uint64_t longest_turn(struct rig *r, const int *n)
{
    uint64_t worst = 0;

    for (int i = 0; i < RIG_TURNS && *n == 0; i++) {
        uint64_t t = clock_mono_ms();

        rig_turn(r);
        t = clock_mono_ms() - t;
        worst = t > worst ? t : worst;
    }
    CHECK_INT(*n, 1);
    return worst;
}

TEST(the_loop_never_waits_for_the_close_of_a_passed_fd)
{
    struct init_fd m = {.kind = INIT_FD_SOCKET};
    struct scene s;
    int other[6], fds[5], before = tcp_pair(&other[5]);

    scene_open(&s);
    scene_ask(&s, INIT_FD_SOCKET);
    /* More than we have room for: the kernel closes the rest while we receive. */
    for (int i = 0; i < 5; i++)
        fds[i] = lingering(&other[i]);
    say_with(&s.p, INIT_FD, &m, fds, 5);
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    CHECK(longest_turn(&s.r, &s.got.n) < 800);
    CHECK_INT(s.got.fd, -1);
    peer_close(&s.p);
    /* Others are served meanwhile. */
    scene_ask(&s, INIT_FD_SOCKET);
    say_with(&s.p, INIT_FD, &m, &before, 1);
    CHECK(longest_turn(&s.r, &s.got.n) < 800);
    CHECK(s.got.fd >= 0);
    fd_close(s.r.g, s.got.fd, KEY);
    peer_close(&s.p);
    close(before);
    for (int i = 0; i < 6; i++)
        close(other[i]);
    scene_close(&s);
}

TEST(a_failure_keeps_the_kind_and_text_of_init)
{
    struct init_fail m = {.code = "gone", .message = "nothing listens on port 80"};
    struct scene s;

    scene_open(&s);
    scene_ask(&s, INIT_FD_SOCKET);
    say_with(&s.p, INIT_FAIL, &m, NULL, 0);
    scene_end(&s);
    CHECK_INT(s.got.e.kind, ERR_GONE);
    CHECK_STR(s.got.e.msg, "nothing listens on port 80");
    scene_close(&s);
}

TEST(silence_nonsense_and_a_closed_connection_end_it)
{
    struct scene s;
    char junk[4096];

    memset(junk, 0xff, sizeof(junk));
    scene_open(&s);
    scene_ask(&s, INIT_FD_FILE);
    peer_raw(&s.p, junk, sizeof(junk));
    scene_end(&s);
    CHECK_INT(s.got.e.kind, ERR_UNRESPONSIVE);
    scene_ask(&s, INIT_FD_FILE);
    peer_close(&s.p);
    RIG_UNTIL(&s.r, s.got.n == 1);
    CHECK_INT(s.got.e.kind, ERR_GONE);
    clock_hold(clock_mono_ns(), clock_real_ms());
    scene_ask(&s, INIT_FD_FILE);
    clock_hold(clock_mono_ns() + (FD_DEADLINE_MS + 1) * 1000000ull, clock_real_ms());
    scene_end(&s);
    CHECK_INT(s.got.e.kind, ERR_UNRESPONSIVE);
    clock_release();
    scene_close(&s);
}

TEST(a_cancelled_request_calls_nothing_back_and_closes_its_fd)
{
    struct init_fd m = {.kind = INIT_FD_SOCKET};
    struct scene s;
    int other, fd = tcp_pair(&other);
    char c;

    scene_open(&s);
    scene_ask(&s, INIT_FD_SOCKET);
    say_with(&s.p, INIT_FD, &m, &fd, 1);
    close(fd);
    fd_cancel(s.call);
    RIG_UNTIL(&s.r, recv(other, &c, 1, MSG_DONTWAIT) == 0);
    CHECK_INT(s.got.n, 0);
    peer_close(&s.p);
    close(other);
    scene_close(&s);
}

TEST(an_unknown_sandbox_is_reported_from_the_loop)
{
    struct passed got = {.fd = -1};
    struct scene s;

    scene_open(&s);
    fd_open(&(struct file_at){{s.r.g, KEY, "nope"}, "/f", NULL, false}, on_fd, &got);
    CHECK_INT(got.n, 0);
    RIG_UNTIL(&s.r, got.n == 1);
    CHECK_INT(got.e.kind, ERR_NOT_FOUND);
    scene_close(&s);
}
