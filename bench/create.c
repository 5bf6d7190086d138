/* create.c - a sandbox made, used once and deleted: the latency of the answers, next to the
 * time that other tools need for one `true`; and lives per second, including teardown. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bare.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 100
#define WARM_UP 3
#define TOTAL 2000
#define TOTAL_TARGET 500.0 /* per second */
#define WORKERS_MAX 16
#define EMPTY_MS 30000 /* wait at most so long for the teardown queue to empty */
#define QUIET_US 60000 /* our teardown and refilled pool must not run in a peer's turn */

/* Our template read-only, own namespaces, no limits: the least work for crun and runc.
 * %s: the template's root. */
#define BUNDLE                                                                                     \
    "{\"ociVersion\":\"1.0.0\",\"root\":{\"path\":\"%s\",\"readonly\":true},"                      \
    "\"process\":{\"args\":[\"/bin/true\"],\"cwd\":\"/\",\"user\":{\"uid\":0,\"gid\":0},"          \
    "\"env\":[\"PATH=/usr/bin:/bin\"],\"noNewPrivileges\":true},"                                  \
    "\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"               \
    "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","                           \
    "\"options\":[\"nosuid\",\"mode=755\"]}],"                                                     \
    "\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},"       \
    "{\"type\":\"uts\"},{\"type\":\"network\"}]}}"

static char bundle_dir[] = "/tmp/cove-bench.XXXXXX";

static struct peer {
    const char *name;
    const char *argv[16];
    double target; /* of our median over theirs; 0: no target */
    bool runs;
    struct samples took;
} peers[] = {
    {"bwrap",
     {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
      "/bin/true"},
     1.0},
    {"unshare",
     {"unshare", "--map-root-user", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts",
      "--mount-proc", "/bin/true"},
     0},
    {"crun", {"crun", "run", "--bundle", bundle_dir, "cove-bench-crun"}, 0},
    {"runc", {"runc", "run", "--bundle", bundle_dir, "cove-bench-runc"}, 0},
};

static const char *root_below(void)
{
    const char *root = getenv("BENCH_ROOTFS");

    return root != NULL ? root : "/";
}

static void write_bundle(void)
{
    char path[64];
    FILE *f;

    if (mkdtemp(bundle_dir) == NULL)
        die("mkdtemp: %s", strerror(errno));
    snprintf(path, sizeof(path), "%s/config.json", bundle_dir);
    f = fopen(path, "we");
    if (f == NULL || fprintf(f, BUNDLE, root_below()) < 0 || fclose(f) != 0)
        die("%s: %s", path, strerror(errno));
}

/* crun refuses a host with both v1 and v2 hierarchies; we and our children see only v1. */
static void hide_v2(void)
{
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        umount2("/sys/fs/cgroup/unified", MNT_DETACH);
}

static void remove_bundle(void)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/config.json", bundle_dir);
    unlink(path);
    rmdir(bundle_dir);
}

static void find_peers(void)
{
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        int code = floor_run(peers[i].argv);

        peers[i].runs = code == 0;
        if (code != 0)
            note_print("%s does not run `true` on this machine (%s); left out.", peers[i].name,
                       code < 0 ? "it is not installed" : "it fails");
    }
}

static double life_ms(struct client *c)
{
    char id[CLIENT_ID_MAX];
    double start = now_ms();

    sandbox_create(c, id);
    sandbox_exec(c, id, EXEC_TRUE);
    sandbox_delete(c, id);
    return now_ms() - start;
}

static void measure_latency(struct client *c)
{
    struct samples ours = {0};
    size_t rounds = bench_count("BENCH_CREATE_ROUNDS", ROUNDS);

    for (size_t round = 0; round < rounds + WARM_UP; round++) {
        double took = life_ms(c);

        if (round >= WARM_UP)
            samples_add(&ours, took);
        usleep(QUIET_US);
        for (size_t i = 0; i < ARRAY_LEN(peers); i++)
            if (peers[i].runs) {
                took = floor_ms(peers[i].argv);
                if (round >= WARM_UP)
                    samples_add(&peers[i].took, took);
            }
    }
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        if (!peers[i].runs)
            continue;
        row_ratio("create, run true, answer delete", &ours, peers[i].name, &peers[i].took,
                  peers[i].target);
        samples_free(&peers[i].took);
    }
    samples_free(&ours);
}

static void *worker(void *arg)
{
    size_t n = *(const size_t *)arg;
    struct client c;

    client_open(&c);
    for (size_t i = 0; i < n; i++)
        life_ms(&c);
    client_close(&c);
    return NULL;
}

static void await_empty(struct client *c)
{
    double end = now_ms() + EMPTY_MS;

    while (metric(c, "cove_teardown_queue") > 0) {
        if (now_ms() > end)
            die("after %d ms there are still sandboxes to tear down", EMPTY_MS);
        usleep(1000);
    }
}

static void measure_rate(struct client *c, size_t workers, double bare)
{
    pthread_t threads[WORKERS_MAX];
    size_t total = bench_count("BENCH_TOTAL", TOTAL), each = total / workers;
    char what[96], ours[96], floor[96], result[48];
    double start, answered, emptied, rate;
    struct row r = {what, ours, floor, result, ">= 500 /s", VERDICT_MISSED};

    await_empty(c);
    start = now_ms();
    for (size_t i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, worker, &each) != 0)
            die("no thread");
    for (size_t i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    answered = now_ms() - start;
    await_empty(c);
    emptied = now_ms() - start;
    rate = (double)(each * workers) * 1000 / emptied;
    snprintf(what, sizeof(what), "create, run true, delete: %zu of them, %zu at a time",
             each * workers, workers);
    snprintf(ours, sizeof(ours), "answered in %.2f s, all torn down after %.2f s", answered / 1000,
             emptied / 1000);
    snprintf(floor, sizeof(floor), "the kernel objects alone, by a bare program: %.0f /s", bare);
    snprintf(result, sizeof(result), "%.0f /s, %.2f x", rate, bare > 0 ? rate / bare : 0);
    r.verdict = rate >= TOTAL_TARGET ? VERDICT_MET : VERDICT_MISSED;
    row_print(&r);
}

int main(void)
{
    size_t total = bench_count("BENCH_TOTAL", TOTAL);
    double bare_one = bare_rate(root_below(), total, 1),
           bare_four = bare_rate(root_below(), total, 4);
    struct client c;

    hide_v2();
    write_bundle();
    atexit(remove_bundle);
    find_peers();
    client_open(&c);
    measure_latency(&c);
    measure_rate(&c, 1, bare_one);
    measure_rate(&c, 4, bare_four);
    client_close(&c);
    return 0;
}
