/* neighbour.c - one key at its worst, and what another key notices of it.
 *
 * For each kind of noise: the p99 of another key's exec, create and file read while it lasts, against
 * the same before it began. The limits of the noisy key are those of the settings. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 200
#define CREATES 100
#define LOUD "BENCH_LOUD_KEY"
#define NOISY_CLIENTS 4
#define READ_BYTES (64u << 10)
#define NOISE_BYTES (32u << 20)
#define BODY_BYTES (3u << 20)
#define FACTOR_MAX 2.0

/* ---- noise: each runs in a process of its own, on a connection of its own, until it is killed ---- */

static void burn(struct client *c, const char *id)
{
    for (;;)
        sandbox_exec(c, id,
                     "{\"command\":\"for i in 1 2 3 4; do timeout 5 sh -c 'while :; do :; done' & "
                     "done; wait; true\"}");
}

static void write_disk(struct client *c, const char *id)
{
    for (;;)
        sandbox_exec(c, id,
                     "{\"command\":\"dd if=/dev/zero of=/workspace/noise bs=1M count=64 "
                     "conv=fsync 2>/dev/null\"}");
}

static void stream(struct client *c, const char *id)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
    for (;;)
        client_stream(c, path, "application/octet-stream",
                      "{\"command\":\"head -c 500000000 /dev/zero\"}");
}

static void move_files(struct client *c, const char *id)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/files?path=/workspace/noise-%d", id, getpid());
    for (;;) {
        client_upload(c, path, NOISE_BYTES, 200);
        client_fetch(c, path);
    }
}

static void create_all(struct client *c, const char *ignored)
{
    char id[CLIENT_ID_MAX];

    (void)ignored;
    for (;;) {
        sandbox_create(c, id);
        sandbox_delete(c, id);
    }
}

static void send_bodies(struct client *c, const char *id)
{
    static char body[BODY_BYTES + 64];
    size_t n = (size_t)sprintf(body, "{\"argv\":[\"/bin/true\"],\"stdin\":\"");

    memset(body + n, 'x', BODY_BYTES);
    strcpy(body + n + BODY_BYTES, "\"}");
    for (;;)
        sandbox_exec(c, id, body);
}

/* clang-format off */
static const struct noise {
    const char *name;
    void (*make)(struct client *c, const char *id);
    double target; /* 0: reported only */
} noises[] = {
    {"processors", burn, FACTOR_MAX},
    {"disk", write_disk, 0}, /* flushes of one file system are in one queue */
    {"output", stream, FACTOR_MAX},
    {"files", move_files, FACTOR_MAX},
    {"creates", create_all, FACTOR_MAX},
    {"large bodies", send_bodies, FACTOR_MAX},
};
/* clang-format on */

/* Clients are on machines of their own. Here they share the processors with the server, and are not to
 * be measured with it: the quiet one runs before all others, the noisy ones after them. */
#define QUIET_NICE (-15)
#define NOISY_NICE 19

static void set_priority(int value)
{
    if (setpriority(PRIO_PROCESS, 0, value) < 0)
        die("setpriority %d", value);
}

static void begin(const struct noise *what, const char *id, pid_t pids[NOISY_CLIENTS])
{
    for (int i = 0; i < NOISY_CLIENTS; i++) {
        struct client c;

        pids[i] = fork();
        if (pids[i] < 0)
            die("fork");
        if (pids[i] > 0)
            continue;
        set_priority(NOISY_NICE);
        client_open_as(&c, "COVE_URL", LOUD);
        what->make(&c, id);
        _exit(1);
    }
}

static void end(const pid_t pids[NOISY_CLIENTS])
{
    int status;

    for (int i = 0; i < NOISY_CLIENTS; i++) {
        if (waitpid(pids[i], &status, WNOHANG) != 0)
            die("a noisy client ended by itself: the noise was not what it should be");
        kill(pids[i], SIGKILL);
        waitpid(pids[i], &status, 0);
    }
}

/* ---- what the other key does ---- */

static struct client quiet;
static char own[CLIENT_ID_MAX], read_path[128];

static void exec_true(void)
{
    sandbox_exec(&quiet, own, EXEC_TRUE);
}

static void create(void)
{
    char id[CLIENT_ID_MAX];

    sandbox_create(&quiet, id);
    sandbox_delete(&quiet, id);
}

static void read_file(void)
{
    client_fetch(&quiet, read_path);
}

static const struct {
    const char *name;
    void (*act)(void);
    size_t rounds;
} acts[] = {
    {"exec", exec_true, ROUNDS}, {"create", create, CREATES}, {"file read", read_file, ROUNDS}};

static double p99_of(size_t which)
{
    size_t rounds = bench_count("BENCH_ROUNDS", acts[which].rounds);
    struct samples s = {0};
    double p99;

    for (size_t i = 0; i < rounds; i++) {
        double start = now_ms();

        acts[which].act();
        samples_add(&s, now_ms() - start);
    }
    p99 = samples_at(&s, 99);
    samples_free(&s);
    return p99;
}

static void compare(const struct noise *what, const char *loud_id)
{
    double before[ARRAY_LEN(acts)];
    pid_t pids[NOISY_CLIENTS];

    for (size_t i = 0; i < ARRAY_LEN(acts); i++)
        before[i] = p99_of(i);
    begin(what, loud_id, pids);
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        char name[BENCH_TEXT_MAX], ours[BENCH_TEXT_MAX], theirs[BENCH_TEXT_MAX], factor[32],
            target[32];
        double p99 = p99_of(i), ratio = p99 / before[i];

        snprintf(name, sizeof(name), "%s beside another key's %s, p99", acts[i].name, what->name);
        snprintf(ours, sizeof(ours), "%.2f ms", p99);
        snprintf(theirs, sizeof(theirs), "alone: %.2f ms", before[i]);
        snprintf(factor, sizeof(factor), "%.2f x", ratio);
        snprintf(target, sizeof(target), what->target > 0 ? "<= %.1f x" : "", what->target);
        row_print(&(struct row){name, ours, theirs, factor, target,
                                what->target <= 0       ? VERDICT_NONE
                                : ratio <= what->target ? VERDICT_MET
                                                        : VERDICT_MISSED});
    }
    end(pids);
}

/* The answer is the only one that has the key. */
static void make_loud_key(void)
{
    char key[128] = "", *at;

    client_call(&quiet, "POST", "/v1/keys", "{\"name\":\"loud\"}", 201);
    at = strstr(quiet.body, "\"key\":\"");
    if (at == NULL || sscanf(at + strlen("\"key\":\""), "%127[^\"]", key) != 1)
        die("POST /v1/keys: no key in %s", quiet.body);
    setenv(LOUD, key, 1);
}

int main(void)
{
    struct client loud;
    char id[CLIENT_ID_MAX], path[128];

    set_priority(QUIET_NICE);
    client_open(&quiet);
    make_loud_key();
    client_open_as(&loud, "COVE_URL", LOUD);
    sandbox_create(&quiet, own);
    snprintf(read_path, sizeof(read_path), "/v1/sandboxes/%s/files?path=/workspace/read", own);
    client_upload(&quiet, read_path, READ_BYTES, 200);
    for (size_t i = 0; i < ARRAY_LEN(noises); i++) {
        sandbox_create(&loud, id);
        compare(&noises[i], id);
        snprintf(path, sizeof(path), "/v1/sandboxes/%s", id);
        client_call(&loud, "DELETE", path, NULL, 204);
        daemon_settle(&quiet);
    }
    note_print(
        "Noise: %d clients of one key at a time, with the limits of the settings. The disk is "
        "reported only: flushes of all sandboxes go through one file system.",
        NOISY_CLIENTS);
    sandbox_delete(&quiet, own);
    client_close(&loud);
    client_close(&quiet);
    return 0;
}
