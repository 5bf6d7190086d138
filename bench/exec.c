/* exec.c - a command in a sandbox over HTTP, and the same command on the host. */
#include <stdio.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 400
#define WARM_UP 20

static const struct {
    const char *what, *json;
    const char *argv[4];
    double target;
} cases[] = {
    {"run /bin/true", EXEC_TRUE, {"/bin/true"}, 1.5},
    {"run bash -c true", "{\"argv\":[\"bash\",\"-c\",\"true\"]}", {"bash", "-c", "true"}, 1.4},
};

static void measure(struct client *c, const char *id, size_t which)
{
    struct samples ours = {0}, theirs = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);

    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double start = now_ms(), took;

        sandbox_exec(c, id, cases[which].json);
        took = now_ms() - start;
        if (i < WARM_UP) {
            floor_ms(cases[which].argv);
            continue;
        }
        samples_add(&ours, took);
        samples_add(&theirs, floor_ms(cases[which].argv));
    }
    row_ratio(cases[which].what, &ours, "posix_spawn", &theirs, cases[which].target);
    samples_free(&ours);
    samples_free(&theirs);
}

int main(void)
{
    struct client c;
    char id[CLIENT_ID_MAX];

    client_open(&c);
    sandbox_create(&c, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        measure(&c, id, i);
    sandbox_delete(&c, id);
    client_close(&c);
    return 0;
}
