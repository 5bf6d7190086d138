/* workspace.c - a command through a warm workspace beside one in its sandbox, bringing back a workspace
 * from its archive beside tar and zstd on the host, and what a thousand idle workspaces cost.
 *
 * BENCH_SIZES="0 64" sets other sizes in megabytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 300
#define WARM_UP 20
#define RESTORES 5
#define SIZES "0 64 1024"
#define IDLE 1000
#define EXEC_TARGET 1.2

#define W "/v1/workspaces/bench"

static void field(struct client *c, const char *name, char *out, size_t room)
{
    char needle[64], *at;

    snprintf(needle, sizeof(needle), "\"%s\":\"", name);
    at = strstr(c->body, needle);
    if (at == NULL)
        die("no %s in %.200s", name, c->body);
    at += strlen(needle);
    snprintf(out, room, "%.*s", (int)strcspn(at, "\""), at);
}

static void run(struct client *c, const char *json)
{
    client_call(c, "POST", W "/exec", json, 200);
    if (strstr(c->body, "\"exit_code\":0") == NULL)
        die("exec: %.300s", c->body);
}

static void until(struct client *c, const char *state)
{
    char is[32];

    do {
        usleep(20000);
        client_call(c, "GET", W, NULL, 200);
        field(c, "state", is, sizeof(is));
    } while (strcmp(is, state) != 0);
}

/* ---- a warm one ---- */

static void warm(struct client *c)
{
    struct samples ours = {0}, theirs = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);
    char id[CLIENT_ID_MAX];

    client_call(c, "PUT", W, "{}", 200 + 1);
    run(c, EXEC_TRUE);
    client_call(c, "GET", W, NULL, 200);
    field(c, "sandbox", id, sizeof(id));
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double start = now_ms(), took, other;

        run(c, EXEC_TRUE);
        took = now_ms() - start;
        start = now_ms();
        sandbox_exec(c, id, EXEC_TRUE);
        other = now_ms() - start;
        if (i < WARM_UP)
            continue;
        samples_add(&ours, took);
        samples_add(&theirs, other);
    }
    row_ratio("command in a warm workspace", &ours, "the same in its sandbox", &theirs,
              EXEC_TARGET);
    samples_free(&ours);
    samples_free(&theirs);
    client_call(c, "DELETE", W, NULL, 204);
}

/* ---- from the archive ---- */

static double host_ms(unsigned mb)
{
    char script[512];
    const char *argv[] = {"sh", "-ec", script, NULL};

    snprintf(script, sizeof(script),
             "d=$(mktemp -d); trap 'rm -rf $d' EXIT; mkdir $d/to; cd $d; "
             "[ -e /tmp/cove-bench-%u.zst ] || { head -c %uM /dev/urandom >f; tar c f | zstd -q "
             ">/tmp/cove-bench-%u.zst; }",
             mb, mb, mb);
    floor_ms(argv);
    snprintf(script, sizeof(script),
             "d=$(mktemp -d); zstd -dc /tmp/cove-bench-%u.zst | tar x -C $d; rm -rf $d", mb);
    return floor_ms(argv);
}

static void restore(struct client *c, unsigned mb)
{
    struct samples ours = {0}, theirs = {0};
    char json[256], what[96], path[64];

    client_call(c, "PUT", W, "{\"grace_ms\":1,\"archive_ms\":1,\"limits\":{\"disk\":4294967296}}",
                201);
    snprintf(json, sizeof(json), "{\"command\":\"head -c %uM /dev/urandom >/workspace/f\"}", mb);
    run(c, json);
    for (int i = 0; i < RESTORES; i++) {
        double start;

        until(c, "cold");
        start = now_ms();
        run(c, EXEC_TRUE);
        samples_add(&ours, now_ms() - start);
        samples_add(&theirs, host_ms(mb));
    }
    snprintf(what, sizeof(what), "first command in a cold workspace with %u MB", mb);
    row_ratio(what, &ours, "zstd -d | tar x on the host", &theirs, 0);
    samples_free(&ours);
    samples_free(&theirs);
    snprintf(path, sizeof(path), "/tmp/cove-bench-%u.zst", mb);
    unlink(path);
    client_call(c, "DELETE", W, NULL, 204);
}

/* ---- many idle ones ---- */

static void idle(struct client *c)
{
    double before = metric(c, "cove_front_resident_bytes"), after;
    char path[64];

    for (int i = 0; i < IDLE; i++) {
        snprintf(path, sizeof(path), "/v1/workspaces/idle%d", i);
        client_call(c, "PUT", path, "{}", 201);
    }
    after = metric(c, "cove_front_resident_bytes");
    note_print("%d idle workspaces: %.0f KiB of memory of the server, %.0f sandboxes.", IDLE,
               (after - before) / 1024, metric(c, "cove_sandboxes{state=\"running\"}"));
    for (int i = 0; i < IDLE; i++) {
        snprintf(path, sizeof(path), "/v1/workspaces/idle%d", i);
        client_call(c, "DELETE", path, NULL, 204);
    }
}

int main(void)
{
    char sizes[64], *at = sizes;
    struct client c;

    snprintf(sizes, sizeof(sizes), "%s",
             getenv("BENCH_SIZES") != NULL ? getenv("BENCH_SIZES") : SIZES);
    client_open(&c);
    warm(&c);
    for (char *word; (word = strsep(&at, " ")) != NULL;)
        restore(&c, (unsigned)strtoul(word, NULL, 10));
    idle(&c);
    client_close(&c);
    return 0;
}
