/* stream.c - how fast a command's output reaches a client, next to a reader at the
 * other end of a pipe on the host. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 5
#define READ_SIZE (256u << 10)

extern char **environ;

static const struct {
    const char *what, *accept, *command;
    size_t mb;
    double target; /* MB/s */
} cases[] = {
    {"stream bytes (octet-stream)", "application/octet-stream", "head -c 1024M /dev/zero", 1024,
     500},
    {"stream text (SSE)", "text/event-stream", "yes | head -c 256M", 256, 0},
};

/* The same command into a pipe that we read: the cost of one copy through the kernel. */
static void floor_pipe(const char *command, uint64_t want)
{
    const char *argv[] = {"bash", "-c", command, NULL};
    posix_spawn_file_actions_t files;
    autofree char *into = malloc(READ_SIZE);
    uint64_t got = 0;
    int fds[2], status;
    pid_t pid;
    ssize_t n;

    if (into == NULL || pipe2(fds, O_CLOEXEC) < 0)
        die("pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fds[1], 1);
    if (posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        die("%s cannot be started", argv[0]);
    posix_spawn_file_actions_destroy(&files);
    close(fds[1]);
    while ((n = read(fds[0], into, READ_SIZE)) > 0)
        got += (uint64_t)n;
    close(fds[0]);
    if (waitpid(pid, &status, 0) != pid || got != want)
        die("the pipe gave %llu bytes", (unsigned long long)got);
}

static void row_speed(size_t which, struct samples *ours, struct samples *theirs)
{
    double mb = (double)cases[which].mb * 1.048576;
    double our = mb * 1000 / samples_at(ours, 50), their = mb * 1000 / samples_at(theirs, 50);
    char our_text[96], against[96], result[48], wanted[32] = "";
    struct row r = {cases[which].what, our_text, against, result, wanted, VERDICT_NONE};

    snprintf(our_text, sizeof(our_text), "%.0f MB/s (worst of %zu: %.0f)", our, ours->n,
             mb * 1000 / samples_at(ours, 100));
    snprintf(against, sizeof(against), "a pipe on the host: %.0f MB/s", their);
    snprintf(result, sizeof(result), "%.2f of the pipe", our / their);
    if (cases[which].target > 0) {
        snprintf(wanted, sizeof(wanted), ">= %.0f MB/s", cases[which].target);
        r.verdict = our >= cases[which].target ? VERDICT_MET : VERDICT_MISSED;
    }
    row_print(&r);
}

static void measure(struct client *c, const char *id, size_t which)
{
    const char *command = cases[which].command;
    char json[160], path[128];
    uint64_t want = (uint64_t)cases[which].mb << 20;
    struct samples ours = {0}, theirs = {0};

    snprintf(json, sizeof(json), "{\"command\":\"%s\"}", command);
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
    for (size_t i = 0; i < bench_count("BENCH_STREAMS", ROUNDS); i++) {
        double start = now_ms();

        if (client_stream(c, path, cases[which].accept, json) < want)
            die("%s: the answer is too short", command);
        samples_add(&ours, now_ms() - start);
        start = now_ms();
        floor_pipe(command, want);
        samples_add(&theirs, now_ms() - start);
    }
    row_speed(which, &ours, &theirs);
    samples_free(&ours);
    samples_free(&theirs);
}

int main(void)
{
    struct client c;
    char id[CLIENT_ID_MAX];

    client_open(&c);
    sandbox_create(&c, id);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        measure(&c, id, i);
    sandbox_delete(&c, id);
    client_close(&c);
    return 0;
}
