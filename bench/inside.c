/* inside.c - what programs notice of the sandbox: the same work on the host and inside, by turns.
 *
 * BENCH_WORK is the program inside-work. The host's file system is that of BENCH_HOST_DIR
 * (/var/tmp). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 5
#define FLOOR_LINE 64

static const struct {
    const char *row, *what;
    double target; /* 0: reported only */
} rows[] = {
    {"faults", "touch 128 MB of memory", 1.2},
    {"pipes", "50,000 round trips through a pipe", 1.2},
    {"exec", "start 300 programs", 1.3},
    {"files", "make 4,000 files of 3 KB", 0},
    {"stat", "100,000 stat", 0},
    {"unlink", "4,000 unlink", 0},
    {"big", "write 256 MB, then fsync", 0},
    {"fdatasync", "200 writes of 4 KB, each with fdatasync", 0},
};

static const char *work(void)
{
    const char *path = getenv("BENCH_WORK");

    if (path == NULL)
        die("BENCH_WORK is not set; bench/run.sh sets it");
    return path;
}

static double on_host(const char *row)
{
    const char *dir = getenv("BENCH_HOST_DIR") != NULL ? getenv("BENCH_HOST_DIR") : "/var/tmp";
    char command[1024], line[FLOOR_LINE] = "";
    FILE *p;

    snprintf(command, sizeof(command), "d=%s/cove-bench-inside; rm -rf $d; %s %s $d; rm -rf $d",
             dir, work(), row);
    p = popen(command, "r");
    if (p == NULL || fgets(line, sizeof(line), p) == NULL || pclose(p) != 0)
        die("%s on the host failed", row);
    return strtod(line, NULL);
}

static double in_sandbox(struct client *c, const char *id, const char *row)
{
    char path[128], json[256], *at;

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
    snprintf(
        json, sizeof(json),
        "{\"command\":\"cd /workspace; rm -rf w; ./inside-work %s w; s=$?; rm -rf w; exit $s\"}",
        row);
    client_call(c, "POST", path, json, 200);
    at = strstr(c->body, "\"stdout\":\"");
    if (at == NULL || strstr(c->body, "\"exit_code\":0") == NULL)
        die("%s in the sandbox: %.300s", row, c->body);
    return strtod(at + strlen("\"stdout\":\""), NULL);
}

/* By curl: our client sends JSON only. */
static void put_program(struct client *c, const char *id)
{
    const char *url = getenv("COVE_URL"), *key = getenv("COVE_API_KEY");
    char script[2048];
    const char *argv[] = {"sh", "-ec", script, NULL};

    snprintf(script, sizeof(script),
             "curl -fsS -o /dev/null -H 'Authorization: Bearer %s' -T %s "
             "'%s/v1/sandboxes/%s/files?path=/workspace/inside-work'",
             key, work(), url, id);
    if (floor_run(argv) != 0)
        die("the program could not be put into the sandbox");
    sandbox_exec(c, id, "{\"command\":\"chmod +x /workspace/inside-work\"}");
}

static void measure(struct client *c, const char *id, size_t which, const char *how)
{
    struct samples ours = {0}, theirs = {0};
    char what[BENCH_TEXT_MAX];

    snprintf(what, sizeof(what), "%s%s", rows[which].what, how);
    for (int i = 0; i < ROUNDS; i++) {
        samples_add(&ours, in_sandbox(c, id, rows[which].row));
        samples_add(&theirs, on_host(rows[which].row));
    }
    row_ratio(what, &ours, "on the host", &theirs, rows[which].target);
    samples_free(&ours);
    samples_free(&theirs);
}

int main(void)
{
    char durable[CLIENT_ID_MAX], relaxed[CLIENT_ID_MAX];
    struct client c;

    client_open(&c);
    sandbox_create_as(&c, "{\"limits\":{\"disk\":2147483648}}", durable);
    sandbox_create_as(&c, "{\"fsync\":\"relaxed\",\"limits\":{\"disk\":2147483648}}", relaxed);
    put_program(&c, durable);
    put_program(&c, relaxed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        measure(&c, durable, i, "");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].row, "big") == 0 || strcmp(rows[i].row, "fdatasync") == 0)
            measure(&c, relaxed, i, ", with fsync relaxed");
    note_print("Inside: files are on an overlay over btrfs in an image on the host's file system, "
               "so a durable "
               "fsync is a log commit of btrfs through a loop device, several writes one after the "
               "other; stat "
               "and unlink pass two file systems.");
    sandbox_delete(&c, durable);
    sandbox_delete(&c, relaxed);
    client_close(&c);
    return 0;
}
