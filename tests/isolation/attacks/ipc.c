/* ipc.c - leaves a mark in everything that processes can share, or looks for one.
 *
 *   ipc leave NAME   makes the marks, says so, and stays until its stdin ends
 *   ipc find NAME    tries to reach each of them */
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "attack.h"

#define PORT 34567

static key_t key_of(const char *name)
{
    key_t k = 0x1000;

    for (; *name != '\0'; name++)
        k = (key_t)((unsigned)k * 31 + (unsigned char)*name);
    return k & 0x7fffffff;
}

static socklen_t abstract(struct sockaddr_un *a, const char *name)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int tcp(uint32_t to)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(to)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval soon = {.tv_sec = 2};

    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
    return connect(fd, (struct sockaddr *)&a, sizeof(a));
}

static int tcp_listen(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -1 : listen(fd, 1);
}

static void leave(const char *name)
{
    struct sockaddr_un a;
    socklen_t len = abstract(&a, name);
    key_t key = key_of(name);
    char path[128], c;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), shm, msg, sem;

    TRY("abstract", bind(fd, (struct sockaddr *)&a, len) < 0 ? -1 : listen(fd, 1));
    TRY("tcp", tcp_listen());
    TRY("shm", shm = shmget(key, 4096, IPC_CREAT | 0666));
    TRY("msg", msg = msgget(key, IPC_CREAT | 0666));
    TRY("sem", sem = semget(key, 1, IPC_CREAT | 0666));
    snprintf(path, sizeof(path), "/%s", name);
    TRY("mq", mq_open(path, O_CREAT | O_RDWR, 0666, NULL));
    TRY("posix shm", shm_open(path, O_CREAT | O_RDWR, 0666));
    snprintf(path, sizeof(path), "/tmp/%s", name);
    TRY("file", open(path, O_CREAT | O_RDWR, 0666));
    say("left", "ok");
    while (read(0, &c, 1) > 0)
        continue;
    shmctl(shm, IPC_RMID, NULL);
    msgctl(msg, IPC_RMID, NULL);
    semctl(sem, 0, IPC_RMID);
    unlink(path);
    snprintf(path, sizeof(path), "/%s", name);
    mq_unlink(path);
    shm_unlink(path);
}

static void find(const char *name)
{
    struct sockaddr_un a;
    socklen_t len = abstract(&a, name);
    key_t key = key_of(name);
    char path[128];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    TRY("abstract", connect(fd, (struct sockaddr *)&a, len));
    TRY("tcp", tcp(INADDR_LOOPBACK));
    TRY("shm", shmget(key, 4096, 0));
    TRY("msg", msgget(key, 0));
    TRY("sem", semget(key, 1, 0));
    snprintf(path, sizeof(path), "/%s", name);
    TRY("mq", mq_open(path, O_RDWR));
    TRY("posix shm", shm_open(path, O_RDWR, 0));
    snprintf(path, sizeof(path), "/tmp/%s", name);
    TRY("file", open(path, O_RDONLY));
}

/* Connects to a port at an IPv4 address, both in numbers. */
static void dial(const char *address, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    unsigned b[4];

    sscanf(address, "%u.%u.%u.%u", &b[0], &b[1], &b[2], &b[3]);
    a.sin_addr.s_addr = htonl(b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]);
    TRY("tcp", connect(fd, (struct sockaddr *)&a, sizeof(a)));
    TRY("udp", sendto(udp, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)));
}

int main(int argc, char **argv)
{
    if (argc > 3)
        dial(argv[2], argv[3]);
    else if (argc > 2 && strcmp(argv[1], "leave") == 0)
        leave(argv[2]);
    else if (argc > 2)
        find(argv[2]);
    return done();
}
