/* snapshot.c - snapshots, sandboxes made from them, forks and pauses, by the number of bytes
 * written and by their number; and a plot.
 *
 * BENCH_SIZES="0 64" sets other sizes in megabytes; BENCH_PLOT is the path of the plot. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 15
#define SIZES "0 64 1024 5120"
#define SIZES_MAX 8
#define FORKS_MAX 3
#define TARGET_MS 10.0

static const unsigned counts[FORKS_MAX] = {1, 4, 16};

struct result {
    unsigned mb;
    double snapshot, create, fork[FORKS_MAX], pause, resume;
};

static char *field(struct client *c, const char *name, char out[CLIENT_ID_MAX])
{
    char needle[64], *at;

    snprintf(needle, sizeof(needle), "\"%s\":\"", name);
    at = strstr(c->body, needle);
    if (at == NULL)
        die("no %s in %.200s", name, c->body);
    snprintf(out, CLIENT_ID_MAX, "%.*s", (int)strcspn(at + strlen(needle), "\""),
             at + strlen(needle));
    return out;
}

static void write_mb(struct client *c, const char *id, unsigned mb)
{
    char json[256];

    snprintf(json, sizeof(json),
             "{\"command\":\"dd if=/dev/zero of=/workspace/bulk bs=1M count=%u conv=fsync "
             "status=none\"}",
             mb);
    if (mb > 0)
        sandbox_exec(c, id, json);
}

/* New contents each time, as between two snapshots of a sandbox in use. */
static void work(struct client *c, const char *id)
{
    sandbox_exec(c, id, "{\"command\":\"date +%N >> /workspace/log\"}");
}

static void delete_all(struct client *c, char ids[][CLIENT_ID_MAX], unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sandbox_delete(c, ids[i]);
}

/* The ids of the sandboxes of a fork, in its answer. */
static unsigned forked_ids(const char *body, char ids[][CLIENT_ID_MAX], unsigned most)
{
    unsigned n = 0;

    for (const char *at = body; n < most && (at = strstr(at, "\"sandbox\":{\"id\":\"")) != NULL;
         n++) {
        at += strlen("\"sandbox\":{\"id\":\"");
        snprintf(ids[n], CLIENT_ID_MAX, "%.*s", (int)strcspn(at, "\""), at);
    }
    return n;
}

static double fork_once(struct client *c, const char *id, unsigned count)
{
    static char ids[64][CLIENT_ID_MAX];
    char path[160], json[64];
    double start, took;
    unsigned n;

    work(c, id);
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/fork", id);
    snprintf(json, sizeof(json), "{\"count\":%u}", count);
    start = now_ms();
    client_call(c, "POST", path, json, 201);
    took = now_ms() - start;
    n = forked_ids(c->body, ids, 64);
    if (n != count)
        die("%u forks instead of %u", n, count);
    delete_all(c, ids, n);
    return took;
}

static void snapshot_once(struct client *c, const char *id, struct samples *snapshots,
                          struct samples *creates)
{
    char path[160], json[160], snap[CLIENT_ID_MAX], made[CLIENT_ID_MAX];
    double start;

    work(c, id);
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/snapshots", id);
    start = now_ms();
    client_call(c, "POST", path, "{}", 201);
    samples_add(snapshots, now_ms() - start);
    snprintf(json, sizeof(json), "{\"snapshot\":\"%s\"}", field(c, "id", snap));
    start = now_ms();
    client_call(c, "POST", "/v1/sandboxes", json, 201);
    samples_add(creates, now_ms() - start);
    sandbox_delete(c, field(c, "id", made));
    snprintf(path, sizeof(path), "/v1/snapshots/%s", snap);
    client_call(c, "DELETE", path, NULL, 204);
}

static double call_once(struct client *c, const char *id, const char *what)
{
    char path[160];
    double start;

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/%s", id, what);
    start = now_ms();
    client_call(c, "POST", path, NULL, 200);
    return now_ms() - start;
}

static void report(const char *what, unsigned mb, struct samples *s, bool claimed)
{
    char name[96], ours[BENCH_TEXT_MAX], result[32];
    double ms = samples_at(s, 50);

    snprintf(name, sizeof(name), "%s, %u MB written", what, mb);
    snprintf(result, sizeof(result), ms < 1 ? "%.2f ms" : "%.1f ms", ms);
    row_print(&(struct row){name, samples_text(s, ours), "", result, claimed ? "<= 10 ms" : "",
                            !claimed          ? VERDICT_NONE
                            : ms <= TARGET_MS ? VERDICT_MET
                                              : VERDICT_MISSED});
}

static void measure_rest(struct client *c, const char *id, struct result *r, size_t rounds)
{
    struct samples pauses = {0}, resumes = {0};

    for (size_t i = 0; i < rounds; i++) {
        samples_add(&pauses, call_once(c, id, "pause"));
        samples_add(&resumes, call_once(c, id, "resume"));
    }
    report("pause", r->mb, &pauses, false);
    report("resume", r->mb, &resumes, false);
    r->pause = samples_at(&pauses, 50);
    r->resume = samples_at(&resumes, 50);
    samples_free(&pauses);
    samples_free(&resumes);
}

static void measure(struct client *c, struct result *r)
{
    struct samples snapshots = {0}, creates = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);
    char id[CLIENT_ID_MAX];

    sandbox_create(c, id);
    write_mb(c, id, r->mb);
    for (size_t i = 0; i < rounds; i++)
        snapshot_once(c, id, &snapshots, &creates);
    report("snapshot of a running sandbox", r->mb, &snapshots, true);
    report("a sandbox from it", r->mb, &creates, false);
    r->snapshot = samples_at(&snapshots, 50);
    r->create = samples_at(&creates, 50);
    for (int k = 0; k < FORKS_MAX; k++) {
        struct samples forks = {0};
        char what[32];

        for (size_t i = 0; i < (rounds + 2) / 3; i++)
            samples_add(&forks, fork_once(c, id, counts[k]));
        snprintf(what, sizeof(what), "fork into %u", counts[k]);
        report(what, r->mb, &forks, false);
        r->fork[k] = samples_at(&forks, 50);
        samples_free(&forks);
    }
    measure_rest(c, id, r, rounds);
    sandbox_delete(c, id);
    samples_free(&snapshots);
    samples_free(&creates);
}

/* ---- the plot ---- */

#define WIDTH 640
#define HEIGHT 360
#define LEFT 60
#define BOTTOM 40
#define SERIES (4 + FORKS_MAX)

static double value_of(const struct result *r, int series)
{
    const double all[SERIES] = {r->fork[2],  r->fork[1], r->fork[0], r->create,
                                r->snapshot, r->resume,  r->pause};

    return all[series];
}

static double x_of(size_t i, size_t n)
{
    return LEFT + (WIDTH - LEFT - 150.0) * (n > 1 ? (double)i / (double)(n - 1) : 0.5);
}

/* A logarithmic scale: a pause and sixteen forks are in one plot. */
#define Y_LEAST 0.01
#define Y_DECADES 4

static double y_of(double ms)
{
    double up = log10(ms > Y_LEAST ? ms / Y_LEAST : 1) / Y_DECADES;

    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20.0) * (up < 1 ? up : 1);
}

static void plot(const char *path, const struct result *r, size_t n)
{
    static const char *const names[SERIES] = {"fork into 16",   "fork into 4", "fork into 1",
                                              "create from it", "snapshot",    "resume",
                                              "pause"};
    static const char *const colours[SERIES] = {"#6c757d", "#b5179e", "#e07a5f", "#3a86ff",
                                                "#0b6e4f", "#fb8500", "#000000"};
    FILE *f = fopen(path, "we");

    if (f == NULL)
        die("write %s", path);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT);
    for (int g = 0; g <= Y_DECADES; g++) {
        double ms = Y_LEAST * pow(10, g), y = y_of(ms);

        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" "
                "y=\"%.1f\" text-anchor=\"end\">%g ms</text>\n",
                LEFT, WIDTH - 150, y, y, LEFT - 6, y + 4, ms);
    }
    for (size_t i = 0; i < n; i++)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u MB</text>\n", x_of(i, n),
                HEIGHT - BOTTOM + 20, r[i].mb);
    for (int s = 0; s < SERIES; s++) {
        fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                colours[s]);
        for (size_t i = 0; i < n; i++)
            fprintf(f, "%.1f,%.1f ", x_of(i, n), y_of(value_of(&r[i], s)));
        fprintf(f, "\"/><text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", WIDTH - 140, 40 + 20 * s,
                colours[s], names[s]);
    }
    fputs("</svg>\n", f);
    fclose(f);
}

int main(void)
{
    const char *sizes = getenv("BENCH_SIZES"), *picture = getenv("BENCH_PLOT");
    struct result results[SIZES_MAX];
    size_t n = 0;
    struct client c;
    char *end;

    client_open(&c);
    for (const char *at = sizes != NULL ? sizes : SIZES; n < SIZES_MAX && *at != '\0'; at = end) {
        results[n] = (struct result){.mb = (unsigned)strtoul(at, &end, 10)};
        if (end == at)
            die("BENCH_SIZES: '%s' is no number", at);
        measure(&c, &results[n++]);
    }
    if (picture != NULL)
        plot(picture, results, n);
    client_close(&c);
    return 0;
}
