/* files.c - files over HTTP: small ones next to the same system calls done here, large
 * ones next to nginx, a long list next to find. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 400
#define WARM_UP 20
#define SMALL 1024
#define LARGE (1ull << 30)
#define LARGE_ROUNDS 3
#define ENTRIES 10000
#define LIST_ROUNDS 10
#define DOWNLOAD_TARGET 0.8 /* of nginx */

static char files[128]; /* "/v1/sandboxes/ID/files" */

static const char *at(const char *what, const char *path)
{
    static char text[256];

    snprintf(text, sizeof(text), "%s%s?path=%s", files, what, path);
    return text;
}

/* ---- 1 KiB ---- */

static void host_write(const char *path, const char *bytes)
{
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, bytes, SMALL) != SMALL || ftruncate(fd, SMALL) < 0)
        die("%s: %s", path, strerror(errno));
}

static void host_read(const char *path)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char into[SMALL];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || read(fd, into, SMALL) != SMALL)
        die("%s: %s", path, strerror(errno));
}

static void small_files(struct client *c)
{
    struct samples put = {0}, get = {0}, here_put = {0}, here_get = {0}, health = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);
    char path[] = "/tmp/cove-bench-file-XXXXXX", bytes[SMALL];
    int fd = mkstemp(path);

    memset(bytes, 'x', sizeof(bytes));
    close(fd);
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double t[6];

        t[0] = now_ms();
        client_upload(c, at("", "/workspace/small"), SMALL, 200);
        t[1] = now_ms();
        client_fetch(c, at("", "/workspace/small"));
        t[2] = now_ms();
        host_write(path, bytes);
        t[3] = now_ms();
        host_read(path);
        t[4] = now_ms();
        client_call(c, "GET", "/health", NULL, 200);
        t[5] = now_ms();
        if (i < WARM_UP)
            continue;
        samples_add(&put, t[1] - t[0]);
        samples_add(&get, t[2] - t[1]);
        samples_add(&here_put, t[3] - t[2]);
        samples_add(&here_get, t[4] - t[3]);
        samples_add(&health, t[5] - t[4]);
    }
    unlink(path);
    row_ratio("read 1 KiB", &get, "open, fstat, read here", &here_get, 0);
    row_ratio("read 1 KiB", &get, "GET /health, the least a request costs", &health, 0);
    row_ratio("write 1 KiB", &put, "open, write, ftruncate here", &here_put, 0);
    row_ratio("write 1 KiB", &put, "GET /health, the least a request costs", &health, 0);
    samples_free(&put), samples_free(&get), samples_free(&here_put), samples_free(&here_get);
    samples_free(&health);
}

/* ---- 1 GiB ---- */

static long front_rss_kb(void)
{
    const char *keeper = getenv("BENCH_KEEPER_PID");
    char command[160], line[64] = "";
    FILE *f;

    if (keeper == NULL)
        return 0;
    snprintf(command, sizeof(command),
             "awk '/^VmRSS/ {print $2}' /proc/$(pgrep -P %s -x cove-front)/status", keeper);
    f = popen(command, "r");
    if (f == NULL || fgets(line, sizeof(line), f) == NULL)
        line[0] = '\0';
    if (f != NULL)
        pclose(f);
    return atol(line);
}

static double mb_per_s(struct samples *s)
{
    return (double)LARGE / 1e6 / (samples_at(s, 50) / 1000);
}

static void row_speed(const char *what, struct samples *ours, struct samples *theirs, double target)
{
    char our[64], their[64] = "nginx is not installed", result[32] = "", want[32] = "";
    struct row r = {.what = what, .ours = our, .against = their, .result = result, .target = want};

    snprintf(our, sizeof(our), "%.0f MB/s", mb_per_s(ours));
    if (theirs->n > 0) {
        double ratio = mb_per_s(ours) / mb_per_s(theirs);

        snprintf(their, sizeof(their), "nginx: %.0f MB/s", mb_per_s(theirs));
        snprintf(result, sizeof(result), "%.2f x", ratio);
        if (target > 0) {
            snprintf(want, sizeof(want), ">= %.1f x", target);
            r.verdict = ratio >= target ? VERDICT_MET : VERDICT_MISSED;
        }
    }
    row_print(&r);
}

static void large_files(struct client *c)
{
    struct samples up = {0}, down = {0}, their_up = {0}, their_down = {0};
    bool beside = getenv("BENCH_NGINX_URL") != NULL;
    struct client n;
    long before = front_rss_kb(), after;

    if (beside)
        client_open_as(&n, "BENCH_NGINX_URL", "COVE_API_KEY");
    for (size_t i = 0; i < bench_count("BENCH_LARGE_ROUNDS", LARGE_ROUNDS); i++) {
        double t = now_ms();

        client_upload(c, at("", "/workspace/large"), LARGE, 200);
        samples_add(&up, now_ms() - t);
        t = now_ms();
        if (client_fetch(c, at("", "/workspace/large")) != LARGE)
            die("the file is not what was sent");
        samples_add(&down, now_ms() - t);
        if (!beside)
            continue;
        t = now_ms();
        client_upload(&n, "/large", LARGE, i == 0 ? 201 : 204);
        samples_add(&their_up, now_ms() - t);
        t = now_ms();
        client_fetch(&n, "/large");
        samples_add(&their_down, now_ms() - t);
    }
    after = front_rss_kb();
    row_speed("download 1 GiB", &down, &their_down, DOWNLOAD_TARGET);
    row_speed("upload 1 GiB", &up, &their_up, 0);
    note_print("The front's memory before and after those files: %ld and %ld KiB.", before, after);
    if (beside)
        client_close(&n);
    samples_free(&up), samples_free(&down), samples_free(&their_up), samples_free(&their_down);
}

/* ---- a list ---- */

static void long_list(struct client *c, const char *id)
{
    static const char make[] =
        "{\"command\":\"mkdir many && cd many && seq -f f%%05g %d | xargs touch\"}";
    static const char find[] = "{\"command\":\"find many -mindepth 1 -printf "
                               "'%%p %%y %%s %%m %%u %%g %%T@ %%i %%n %%l\\\\n' > /dev/null\"}";
    struct samples ours = {0}, theirs = {0};
    char json[512];

    snprintf(json, sizeof(json), make, ENTRIES);
    sandbox_exec(c, id, json);
    snprintf(json, sizeof(json), find);
    for (size_t i = 0; i < LIST_ROUNDS; i++) {
        double t = now_ms();

        client_fetch(c, at("/list", "/workspace/many&limit=20000"));
        samples_add(&ours, now_ms() - t);
        t = now_ms();
        sandbox_exec(c, id, json);
        samples_add(&theirs, now_ms() - t);
    }
    row_ratio("list 10,000 entries", &ours, "find -printf in the sandbox", &theirs, 0);
    samples_free(&ours), samples_free(&theirs);
}

int main(void)
{
    struct client c;
    char id[CLIENT_ID_MAX];

    client_open(&c);
    sandbox_create(&c, id);
    snprintf(files, sizeof(files), "/v1/sandboxes/%s/files", id);
    small_files(&c);
    large_files(&c);
    long_list(&c, id);
    sandbox_delete(&c, id);
    client_close(&c);
    return 0;
}
