/* pause.c - pausing and resuming an idle sandbox over HTTP, and the same done
 * directly: a write to cgroup.freeze and reads until it is frozen.
 *
 * Both depend on the core of the frozen process (the writer's own core or one that was
 * just awake takes a third of the time), so there are many rounds. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 800
#define PLACES 20 /* sandboxes one after the other, each beside a group of its own */
#define WARM_UP 10
#define SLEEPER "{\"argv\":[\"sleep\",\"1000000\"]}"

/* A cgroup of our own with a sleeping process, as in the sandbox. */
struct floor {
    char dir[300];
    pid_t pid;
    int freeze, events;
};

static void find_v2(char out[256])
{
    FILE *f = fopen("/proc/self/mounts", "re");
    char line[1024], type[32];

    out[0] = '\0';
    while (f != NULL && out[0] == '\0' && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "%*s %255s %31s", out, type) != 2 || strcmp(type, "cgroup2") != 0)
            out[0] = '\0';
    if (f != NULL)
        fclose(f);
    if (out[0] == '\0')
        die("no cgroup v2 hierarchy");
}

static int open_in(const struct floor *f, const char *name, int flags)
{
    char path[400];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        die("open %s", path);
    return fd;
}

static void floor_open(struct floor *f)
{
    char root[256];
    int procs;

    find_v2(root);
    snprintf(f->dir, sizeof(f->dir), "%s/cove-bench-%d", root, (int)getpid());
    if (mkdir(f->dir, 0755) < 0)
        die("make %s", f->dir);
    procs = open_in(f, "cgroup.procs", O_WRONLY);
    f->pid = fork();
    if (f->pid == 0) {
        if (write(procs, "0", 1) != 1)
            _exit(1);
        execlp("sleep", "sleep", "1000000", (char *)NULL);
        _exit(1);
    }
    close(procs);
    f->freeze = open_in(f, "cgroup.freeze", O_WRONLY);
    f->events = open_in(f, "cgroup.events", O_RDONLY);
}

static void floor_close(struct floor *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    close(f->freeze);
    close(f->events);
    rmdir(f->dir);
}

static double floor_switch(struct floor *f, const char *value, const char *until)
{
    double start = now_ms();
    char text[128];

    if (write(f->freeze, value, 1) != 1)
        die("write cgroup.freeze");
    do {
        ssize_t n = pread(f->events, text, sizeof(text) - 1, 0);

        if (n <= 0)
            die("read cgroup.events");
        text[n] = '\0';
    } while (strstr(text, until) == NULL);
    return now_ms() - start;
}

static double timed(struct client *c, const char *method, const char *path)
{
    double start = now_ms();

    client_call(c, method, path, NULL, 200);
    return now_ms() - start;
}

struct rows {
    struct samples pause, resume, freeze, thaw, empty;
};

static void one_place(struct client *c, struct rows *r, size_t rounds)
{
    char id[CLIENT_ID_MAX], paths[2][160], start[160];
    struct floor f;

    floor_open(&f);
    sandbox_create(c, id);
    snprintf(start, sizeof(start), "/v1/sandboxes/%s/processes", id);
    client_call(c, "POST", start, SLEEPER, 201);
    daemon_settle(c);
    snprintf(paths[0], sizeof(paths[0]), "/v1/sandboxes/%s/pause", id);
    snprintf(paths[1], sizeof(paths[1]), "/v1/sandboxes/%s/resume", id);
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double ms[4] = {timed(c, "POST", paths[0]), floor_switch(&f, "1", "frozen 1"),
                        timed(c, "POST", paths[1]), floor_switch(&f, "0", "frozen 0")};
        struct samples *const to[4] = {&r->pause, &r->freeze, &r->resume, &r->thaw};

        for (int k = 0; k < 4 && i >= WARM_UP; k++)
            samples_add(to[k], ms[k]);
        samples_add(&r->empty, timed(c, "GET", "/health"));
    }
    sandbox_delete(c, id);
    floor_close(&f);
}

int main(void)
{
    struct rows r = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS) / PLACES;
    struct client c;

    client_open(&c);
    for (size_t i = 0; i < PLACES; i++)
        one_place(&c, &r, rounds);
    row_ratio("pause an idle sandbox", &r.pause, "cgroup.freeze and read back", &r.freeze, 5);
    row_ratio("resume it", &r.resume, "cgroup.freeze and read back", &r.thaw, 0);
    note_print(
        "pause: an HTTP request that does nothing took %.3f ms in the same run, freezing by hand "
        "%.3f",
        samples_at(&r.empty, 50), samples_at(&r.freeze, 50));
    client_close(&c);
    return 0;
}
