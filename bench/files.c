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
#define LARGE_READS 3 /* in each of them */
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

/* One of the two servers, and its measurements. */
struct side {
    struct client *c;
    char get[256], put[256];
    struct samples up, down, cold;
};

static double put_ms(struct client *c, const char *path, int status)
{
    double t = now_ms();

    client_upload(c, path, LARGE, status);
    return now_ms() - t;
}

static double get_ms(const struct side *s)
{
    double t = now_ms();

    if (client_fetch(s->c, s->get) != LARGE)
        die("%s is not what was sent", s->get);
    return now_ms() - t;
}

static void forget_here(const char *path)
{
    autofd int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || fdatasync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        die("%s: %s", path, strerror(errno));
}

static void forget_inside(struct client *c, const char *id)
{
    sandbox_exec(c, id,
                 "{\"argv\":[\"dd\",\"of=/workspace/large\",\"oflag=nocache\","
                 "\"conv=notrunc,fdatasync\",\"count=0\"]}");
}

/* Both in turn, also the downloads: they are short, and the core that the reader wakes up on
 * matters more than the server. */
static void measure(struct side *ours, struct side *nginx, const char *id, bool first)
{
    char theirs[256];

    samples_add(&ours->up, put_ms(ours->c, ours->put, 200));
    if (nginx->c != NULL)
        samples_add(&nginx->up, put_ms(nginx->c, nginx->put, first ? 201 : 204));
    for (size_t i = 0; i < LARGE_READS; i++) {
        samples_add(&ours->down, get_ms(ours));
        if (nginx->c != NULL)
            samples_add(&nginx->down, get_ms(nginx));
    }
    forget_inside(ours->c, id);
    samples_add(&ours->cold, get_ms(ours));
    if (nginx->c == NULL)
        return;
    snprintf(theirs, sizeof(theirs), "%s/large", getenv("BENCH_NGINX_ROOT"));
    forget_here(theirs);
    samples_add(&nginx->cold, get_ms(nginx));
}

/* nginx renames the received file into place, as our atomic=1. Writing in place is more work:
 * the file keeps its inode, and its new bytes are not in the page cache yet. */
static void large_files(struct client *c, const char *id)
{
    struct side ours = {.c = c}, nginx = {.get = "/large", .put = "/large"};
    struct samples in_place = {0};
    bool beside = getenv("BENCH_NGINX_URL") != NULL;
    struct client n;
    long before = front_rss_kb();

    snprintf(ours.get, sizeof(ours.get), "%s?path=/workspace/large", files);
    snprintf(ours.put, sizeof(ours.put), "%s?path=/workspace/large&atomic=1", files);
    if (beside) {
        client_open_as(&n, "BENCH_NGINX_URL", "COVE_API_KEY");
        nginx.c = &n;
    }
    for (size_t i = 0; i < bench_count("BENCH_LARGE_ROUNDS", LARGE_ROUNDS); i++) {
        measure(&ours, &nginx, id, i == 0);
        samples_add(&in_place, put_ms(c, ours.get, 200));
    }
    row_speed("download 1 GiB", &ours.down, &nginx.down, DOWNLOAD_TARGET);
    row_speed("download 1 GiB, from the disk", &ours.cold, &nginx.cold, 0);
    row_speed("upload 1 GiB", &ours.up, &nginx.up, 0);
    row_speed("upload 1 GiB, in place", &in_place, &nginx.up, 0);
    note_print("The front's memory before and after those files: %ld and %ld KiB.", before,
               front_rss_kb());
    note_print(
        "1 GiB: in a sandbox with memory for it, since its page cache is part of that. Upload "
        "is with atomic=1, as nginx's PUT is; in place the file stays the same one.");
    if (beside)
        client_close(&n);
    samples_free(&ours.up), samples_free(&ours.down), samples_free(&ours.cold);
    samples_free(&nginx.up), samples_free(&nginx.down), samples_free(&nginx.cold);
    samples_free(&in_place);
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
    sandbox_create_as(&c, "{\"limits\":{\"memory\":4294967296}}", id);
    snprintf(files, sizeof(files), "/v1/sandboxes/%s/files", id);
    small_files(&c);
    large_files(&c, id);
    long_list(&c, id);
    sandbox_delete(&c, id);
    client_close(&c);
    return 0;
}
