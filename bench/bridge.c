/* bridge.c - the Cloudflare bridge: what an agent's client does all day, each next to
 * the same work on the host. */
#include <string.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 400
#define WARM_UP 20
#define EXIT_0 strlen("event: exit\ndata: {\"exit_code\":0}\n\n")

/* An exec of the bridge is a stream; that its exit was 0 shows in its length. */
static void bridge_exec(struct client *c, const char *path, const char *json)
{
    uint64_t n = client_stream(c, path, "text/event-stream", json);

    if (n != EXIT_0)
        die("%s: %llu bytes of events", json, (unsigned long long)n);
}

static const struct {
    const char *what, *json;
    const char *argv[4];
    double target;
} cases[] = {
    {"bridge: exec [\"true\"]", "{\"argv\":[\"true\"]}", {"true"}, 2.0},
    {"bridge: exec sh -lc true, as the Agents SDK does",
     "{\"argv\":[\"/bin/sh\",\"-lc\",\"true\"]}",
     {"/bin/sh", "-lc", "true"},
     0},
};

static void measure(struct client *c, const char *path, size_t which)
{
    struct samples ours = {0}, theirs = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);

    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double start = now_ms(), took, floor;

        bridge_exec(c, path, cases[which].json);
        took = now_ms() - start;
        floor = floor_ms(cases[which].argv);
        if (i >= WARM_UP) {
            samples_add(&ours, took);
            samples_add(&theirs, floor);
        }
    }
    row_ratio(cases[which].what, &ours, "posix_spawn", &theirs, cases[which].target);
    samples_free(&ours);
    samples_free(&theirs);
}

int main(void)
{
    struct client c;

    client_open(&c);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        measure(&c, "/v1/sandbox/bench/exec", i);
    client_call(&c, "DELETE", "/v1/sandbox/bench", NULL, 204);
    client_close(&c);
    return 0;
}
