/* network.c - the cost of a network: the same life of a sandbox on two daemons, one with `none`
 * and one with `egress`; and a thousand sandboxes with egress. Runs in a network namespace
 * made by run.sh: no packet leaves it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 200
#define WARM_UP 5
#define SANDBOXES 1000
#define EMPTY_MS 60000
#define LATENCY_TARGET 1.5 /* egress over none */

static double life_ms(struct client *c)
{
    char id[CLIENT_ID_MAX];
    double start = now_ms();

    sandbox_create(c, id);
    sandbox_exec(c, id, EXEC_TRUE);
    sandbox_delete(c, id);
    return now_ms() - start;
}

static void await_empty(struct client *c)
{
    double end = now_ms() + EMPTY_MS;

    while (metric(c, "cove_teardown_queue") > 0) {
        if (now_ms() > end)
            die("after %d ms there are still sandboxes to tear down", EMPTY_MS);
        usleep(5000);
    }
}

static void measure_latency(struct client *none, struct client *egress)
{
    struct samples without = {0}, with = {0};
    size_t rounds = bench_count("BENCH_NETWORK_ROUNDS", ROUNDS);

    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double a = life_ms(none), b = life_ms(egress);

        if (i < WARM_UP)
            continue;
        samples_add(&without, a);
        samples_add(&with, b);
    }
    row_ratio("create, run true, answer delete, with egress", &with, "Cove with none", &without,
              LATENCY_TARGET);
    samples_free(&without);
    samples_free(&with);
}

/* Makes all of them one after the other, runs a command in one, deletes all. */
static void measure_many(struct client *c, const char *mode, size_t n)
{
    char(*ids)[CLIENT_ID_MAX] = calloc(n, sizeof(*ids));
    char what[96], ours[128], result[32];
    struct row r = {what, ours, "", result, "", VERDICT_NONE};
    double start = now_ms(), made, run, answered;

    if (ids == NULL)
        die("out of memory");
    for (size_t i = 0; i < n; i++)
        sandbox_create(c, ids[i]);
    made = now_ms() - start;
    start = now_ms();
    for (size_t i = 0; i < n; i += n / 100 + 1)
        sandbox_exec(c, ids[i], EXEC_TRUE);
    run = (now_ms() - start) / (double)((n + n / 100) / (n / 100 + 1));
    start = now_ms();
    for (size_t i = 0; i < n; i++)
        sandbox_delete(c, ids[i]);
    answered = now_ms() - start;
    await_empty(c);
    snprintf(what, sizeof(what), "%zu concurrent sandboxes with %s", n, mode);
    snprintf(ours, sizeof(ours),
             "made at %.0f /s, `true` in %.1f ms, deleted in %.1f s, gone after %.1f s",
             (double)n * 1000 / made, run, answered / 1000, (now_ms() - start) / 1000);
    snprintf(result, sizeof(result), "%.2f ms each", made / (double)n);
    row_print(&r);
    free(ids);
}

int main(void)
{
    size_t n = bench_count("BENCH_SANDBOXES", SANDBOXES);
    struct client none, egress;

    client_open(&none);
    client_open_as(&egress, "BENCH_EGRESS_URL", "BENCH_EGRESS_KEY");
    measure_latency(&none, &egress);
    await_empty(&egress);
    measure_many(&none, "none", n);
    measure_many(&egress, "egress", n);
    client_close(&none);
    client_close(&egress);
    return 0;
}
