/* test_init_fd.c - fds that init opens or connects and passes to the front; with a real init. */
#include "unit.h"

#include "init_peer.h"

#include <netinet/in.h>

struct scene {
    struct peer_init pi;
    struct peer p;
    char dir[64], path[128];
};

static void scene_open(struct scene *s)
{
    peer_init_open(&s->pi);
    peer_open(&s->p, &s->pi);
    strcpy(s->dir, "/tmp/cove-unit-fd-XXXXXX");
    CHECK(mkdtemp(s->dir) != NULL);
    CHECK_INT(chmod(s->dir, 0755), 0);
    str_fmt(s->path, sizeof(s->path), "%s/f", s->dir);
}

static void scene_close(struct scene *s)
{
    unlink(s->path);
    CHECK_INT(rmdir(s->dir), 0);
    peer_close(&s->p);
    peer_init_close(&s->pi);
}

static void put(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_INT(fchmod(fd, mode), 0);
    close(fd);
}

static void fails(struct scene *s, const char *user, const char *path, const char *code)
{
    struct init_open m = {.path = path, .user = user};

    peer_ask(&s->p, INIT_OPEN, &m, INIT_FAIL);
    CHECK_STR(s->p.m.fail.code, code);
    CHECK_INT(s->p.passed, -1);
}

TEST(an_open_file_is_passed_if_the_user_may_read_it)
{
    struct init_open m = {.user = "65534"};
    struct scene s;
    char text[8] = "";

    scene_open(&s);
    put(s.path, "hello", 0644);
    m.path = s.path;
    peer_ask(&s.p, INIT_OPEN, &m, INIT_FD);
    CHECK_INT(s.p.m.fd.kind, INIT_FD_FILE);
    CHECK_INT(read(s.p.passed, text, sizeof(text)), 5);
    CHECK_STR(text, "hello");
    drop_fd(&s.p.passed);
    put(s.path, "secret", 0600);
    fails(&s, "65534", s.path, "denied");
    m.user = "root";
    peer_ask(&s.p, INIT_OPEN, &m, INIT_FD); /* and init is itself again */
    drop_fd(&s.p.passed);
    scene_close(&s);
}

TEST(only_regular_files_of_the_root_mount_are_opened)
{
    struct scene s;

    scene_open(&s);
    fails(&s, "root", "/proc/self/status", "invalid");
    fails(&s, "root", "/dev/null", "invalid");
    fails(&s, "root", s.dir, "invalid");
    fails(&s, "root", s.path, "not_found");
    fails(&s, "root", "relative", "invalid");
    fails(&s, "no-such-user", s.path, "invalid");
    CHECK_INT(mkfifo(s.path, 0666), 0);
    fails(&s, "root", s.path, "invalid");
    CHECK_HAS(s.p.m.fail.message, "named pipe");
    unlink(s.path);
    CHECK_INT(symlink("/proc/self/fd/0", s.path), 0);
    fails(&s, "root", s.path, "invalid");
    scene_close(&s);
}

static int server(int family, unsigned *port)
{
    struct sockaddr_in6 a = {.sin6_family = (sa_family_t)family};
    socklen_t len = sizeof(a);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (family == AF_INET6)
        a.sin6_addr = in6addr_loopback;
    else
        ((struct sockaddr_in *)(void *)&a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(listen(fd, 4), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin6_port);
    return fd;
}

TEST(connect_finds_a_port_on_127_0_0_1_and_on_ipv6_loopback)
{
    struct init_connect m = {.timeout_ms = 5000};
    struct scene s;
    int families[] = {AF_INET, AF_INET6};

    scene_open(&s);
    for (int i = 0; i < 2; i++) {
        int fd = server(families[i], &m.port), other;
        char c;

        peer_ask(&s.p, INIT_CONNECT, &m, INIT_FD);
        CHECK_INT(s.p.m.fd.kind, INIT_FD_SOCKET);
        other = accept(fd, NULL, NULL);
        CHECK_INT(write(s.p.passed, "x", 1), 1);
        CHECK_INT(read(other, &c, 1), 1);
        drop_fd(&s.p.passed);
        CHECK_INT(read(other, &c, 1), 0); /* init has kept nothing of it */
        close(other);
        close(fd);
    }
    peer_ask(&s.p, INIT_CONNECT, &m, INIT_FAIL);
    CHECK_STR(s.p.m.fail.code, "gone");
    m.port = 0;
    peer_ask(&s.p, INIT_CONNECT, &m, INIT_FAIL);
    CHECK_STR(s.p.m.fail.code, "invalid");
    scene_close(&s);
}

TEST(connecting_to_a_port_that_never_accepts_times_out)
{
    struct init_connect m = {.timeout_ms = 100};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = server(AF_INET, &m.port), full[64], n = 0;
    struct scene s;

    scene_open(&s);
    CHECK_INT(listen(fd, 0), 0);
    a.sin_port = htons((uint16_t)m.port);
    for (; n < 8; n++) {
        full[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(full[n], (struct sockaddr *)&a, sizeof(a));
    }
    peer_ask(&s.p, INIT_CONNECT, &m, INIT_FAIL);
    CHECK_STR(s.p.m.fail.code, "timeout");
    while (n > 0)
        close(full[--n]);
    close(fd);
    scene_close(&s);
}
