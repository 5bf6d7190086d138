/* inside-work.c - one piece of work for inside.c, the same program on the host and in a sandbox:
 *
 *   inside-work ROW DIR      does ROW in DIR and prints how many milliseconds it took
 *
 * Static, so that it runs in any template. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES 4000
#define STATS 100000
#define SYNCS 200
#define EXECS 300
#define ROUND_TRIPS 50000
#define PAGES (128u << 20)
#define BIG_MB 256

static const char *self;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void name(char out[32], int i)
{
    snprintf(out, 32, "d%d/f%d", i % 40, i);
}

static void make_files(void)
{
    char path[32], data[3000];

    memset(data, 'x', sizeof(data));
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof(path), "d%d", i);
        if (mkdir(path, 0755) < 0)
            die("mkdir");
    }
    for (int i = 0; i < FILES; i++) {
        int fd;

        name(path, i);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0 || write(fd, data, sizeof(data)) != sizeof(data) || close(fd) < 0)
            die("make a file");
    }
}

static double files(void)
{
    double start = now_ms();

    make_files();
    return now_ms() - start;
}

static double stats(void)
{
    char path[32];
    struct stat st;
    double start;

    make_files();
    start = now_ms();
    for (int i = 0; i < STATS; i++) {
        name(path, i % FILES);
        if (stat(path, &st) < 0)
            die("stat");
    }
    return now_ms() - start;
}

static double unlinks(void)
{
    char path[32];
    double start;

    make_files();
    start = now_ms();
    for (int i = 0; i < FILES; i++) {
        name(path, i);
        if (unlink(path) < 0)
            die("unlink");
    }
    return now_ms() - start;
}

static double syncs(void)
{
    int fd = open("log", O_WRONLY | O_CREAT, 0644);
    char block[4096] = "";
    double start = now_ms();

    for (int i = 0; i < SYNCS; i++)
        if (write(fd, block, sizeof(block)) != sizeof(block) || fdatasync(fd) < 0)
            die("fdatasync");
    return now_ms() - start;
}

static double big(void)
{
    static char block[1 << 20];
    int fd = open("big", O_WRONLY | O_CREAT, 0644);
    double start = now_ms();

    memset(block, 'b', sizeof(block));
    for (int i = 0; i < BIG_MB; i++)
        if (write(fd, block, sizeof(block)) != sizeof(block))
            die("write");
    if (fsync(fd) < 0)
        die("fsync");
    return now_ms() - start;
}

static double faults(void)
{
    double start = now_ms();
    char *p = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        die("mmap");
    madvise(p, PAGES, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i += 4096)
        p[i] = 1;
    munmap(p, PAGES);
    return now_ms() - start;
}

static double pipes(void)
{
    int there[2], back[2];
    char c = 0;
    double start;
    pid_t pid;

    if (pipe(there) < 0 || pipe(back) < 0 || (pid = fork()) < 0)
        die("pipe");
    if (pid == 0) {
        for (int i = 0; i < ROUND_TRIPS; i++)
            if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
                _exit(1);
        _exit(0);
    }
    start = now_ms();
    for (int i = 0; i < ROUND_TRIPS; i++)
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
            die("pipe");
    waitpid(pid, NULL, 0);
    return now_ms() - start;
}

static double execs(void)
{
    char word[] = "nothing", here[] = ".";
    char *argv[] = {(char *)self, word, here, NULL}, *env[] = {NULL};
    double start = now_ms();

    for (int i = 0; i < EXECS; i++) {
        pid_t pid;
        int status;

        if (posix_spawn(&pid, self, NULL, NULL, argv, env) != 0 || waitpid(pid, &status, 0) < 0 ||
            status != 0)
            die("spawn");
    }
    return now_ms() - start;
}

static const struct {
    const char *name;
    double (*run)(void);
} rows[] = {{"files", files}, {"stat", stats},    {"unlink", unlinks}, {"fdatasync", syncs},
            {"big", big},     {"faults", faults}, {"pipes", pipes},    {"exec", execs}};

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "nothing") == 0)
        return 0;
    self = realpath(argv[0], NULL);
    if (self == NULL || (mkdir(argv[2], 0777) < 0 || chdir(argv[2]) < 0))
        die(argv[2]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, argv[1]) == 0) {
            printf("%.3f\n", rows[i].run());
            return 0;
        }
    return 2;
}
