/* ports.c - HTTP to a server inside a sandbox through the port proxy, beside an nginx that proxies to
 * the same server on the host. Eight connections by turns; the server is an nginx both times. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define CONNECTIONS 8
#define ROUNDS 5
#define ROUND_MS 1000
#define TARGET 0.8 /* of nginx */

struct side {
    const char *url_name; /* variable that names the server */
    char extra[160];      /* headers that lead to the sandbox; "" */
};

struct runner {
    const struct side *side;
    const char *path;
    double end;
    uint64_t requests, bytes;
};

static void *run(void *arg)
{
    struct runner *r = arg;
    struct client c;

    client_open_as(&c, r->side->url_name, "COVE_API_KEY");
    c.extra = r->side->extra;
    while (now_ms() < r->end) {
        r->bytes += client_fetch(&c, r->path);
        r->requests++;
    }
    client_close(&c);
    return NULL;
}

/* Requests and bytes in a second. */
static void round_of(const struct side *side, const char *path, double *rps, double *bps)
{
    struct runner all[CONNECTIONS];
    pthread_t threads[CONNECTIONS];
    double start = now_ms(), requests = 0, bytes = 0, took;

    for (size_t i = 0; i < CONNECTIONS; i++) {
        all[i] = (struct runner){.side = side, .path = path, .end = start + ROUND_MS};
        if (pthread_create(&threads[i], NULL, run, &all[i]) != 0)
            die("pthread_create");
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        pthread_join(threads[i], NULL);
        requests += (double)all[i].requests;
        bytes += (double)all[i].bytes;
    }
    took = (now_ms() - start) / 1000;
    *rps = requests / took;
    *bps = bytes / took;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *what, const struct side *cove, const struct side *nginx,
                    const char *path, bool in_bytes)
{
    double ours[ROUNDS], theirs[ROUNDS], other, ratio;
    char ours_text[BENCH_TEXT_MAX], theirs_text[BENCH_TEXT_MAX], result[32], target[32];
    struct row r = {what, ours_text, theirs_text, result, target, VERDICT_NONE};
    const char *unit = in_bytes ? "MB/s" : "requests/s";
    double scale = in_bytes ? 1e6 : 1;

    for (size_t i = 0; i < ROUNDS; i++) {
        round_of(cove, path, in_bytes ? &other : &ours[i], in_bytes ? &ours[i] : &other);
        round_of(nginx, path, in_bytes ? &other : &theirs[i], in_bytes ? &theirs[i] : &other);
    }
    qsort(ours, ROUNDS, sizeof(*ours), by_value);
    qsort(theirs, ROUNDS, sizeof(*theirs), by_value);
    ratio = ours[ROUNDS / 2] / theirs[ROUNDS / 2];
    snprintf(ours_text, sizeof(ours_text), "%.0f %s", ours[ROUNDS / 2] / scale, unit);
    snprintf(theirs_text, sizeof(theirs_text), "nginx as proxy: %.0f %s",
             theirs[ROUNDS / 2] / scale, unit);
    snprintf(result, sizeof(result), "%.2f x", ratio);
    snprintf(target, sizeof(target), ">= %.1f x", TARGET);
    r.verdict = ratio >= TARGET ? VERDICT_MET : VERDICT_MISSED;
    row_print(&r);
}

int main(void)
{
    struct side cove = {.url_name = "COVE_URL"}, nginx = {.url_name = "BENCH_NGINX_URL"};
    const char *conf = getenv("BENCH_NGINX_CONF");
    char id[CLIENT_ID_MAX], path[160], json[4096];
    struct client c;

    if (conf == NULL || getenv("BENCH_NGINX_URL") == NULL) {
        note_print("Ports were not measured: nginx is not installed.");
        return 0;
    }
    client_open(&c);
    sandbox_create(&c, id);
    snprintf(json, sizeof(json),
             "{\"command\":\"mkdir -p /tmp/root && head -c 1048576 /dev/zero >/tmp/root/big && "
             "printf '%%s' \\\"$CONF\\\" >/tmp/nginx.conf && exec nginx -c /tmp/nginx.conf\","
             "\"env\":{\"CONF\":\"%s\"}}",
             conf);
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/processes", id);
    client_call(&c, "POST", path, json, 201);
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
    sandbox_exec(&c, id,
                 "{\"command\":\"for i in $(seq 100); do curl -s -o /dev/null localhost:8000/ && "
                 "exit 0; sleep 0.1; done; exit 1\"}");
    snprintf(cove.extra, sizeof(cove.extra), "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 8000\r\n",
             id);
    measure("HTTP to a port inside, small answers, 8 connections", &cove, &nginx, "/", false);
    measure("the same, answers of 1 MiB", &cove, &nginx, "/big", true);
    sandbox_delete(&c, id);
    client_close(&c);
    return 0;
}
