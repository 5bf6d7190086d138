/* idle.c - memory of an idle sandbox, memory of a daemon with a thousand of them, and the
 * latency of a command then. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define SANDBOXES 1000
#define EXEC_ROUNDS 200
#define WARM_UP 20
#define IDLE_TARGET 0.5    /* MB */
#define DAEMON_TARGET 30.0 /* MB */
#define SETTLE_MS 20000
#define AVAILABLE_LOOKS 20

/* ---- the kernel's counters, in MB; a missing file is 0 ---- */

static double field_mb(const char *path, const char *name)
{
    autofree char *line = NULL;
    FILE *f = fopen(path, "re");
    size_t room = 0;
    double kb = 0;

    while (f != NULL && getline(&line, &room, f) > 0)
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtod(line + strlen(name), NULL);
    if (f != NULL)
        fclose(f);
    return kb / 1024;
}

/* The maximum within a second: short use by other programs does not count. */
static double available_mb(void)
{
    double most = 0;

    for (int i = 0; i < AVAILABLE_LOOKS; i++) {
        double now = field_mb("/proc/meminfo", "MemAvailable:");

        most = now > most ? now : most;
        usleep(1000000 / AVAILABLE_LOOKS);
    }
    return most;
}

/* Bytes charged to the sandboxes' memory group; run.sh knows where that is. */
static double charged_mb(void)
{
    const char *path = getenv("BENCH_MEMORY_FILE");
    FILE *f = path != NULL ? fopen(path, "re") : NULL;
    double bytes = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%lf", &bytes) != 1)
        bytes = 0;
    fclose(f);
    return bytes / (1u << 20);
}

static bool is_part_of(const char *pid, const char *keeper)
{
    char path[300], text[512], *at;
    FILE *f;
    size_t n;

    if (strcmp(pid, keeper) == 0)
        return true;
    snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    fclose(f);
    at = strrchr(text, ')');
    return strstr(text, "(cove-front)") != NULL && at != NULL && strlen(at) > 4 &&
           strtol(at + 4, NULL, 10) == strtol(keeper, NULL, 10);
}

/* Proportional memory of the keeper and its front; inits count as sandboxes. */
static double daemon_mb(void)
{
    const char *keeper = getenv("BENCH_KEEPER_PID");
    DIR *d = opendir("/proc");
    struct dirent *de;
    double sum = 0;

    while (keeper != NULL && d != NULL && (de = readdir(d)) != NULL) {
        char path[300];

        if (strspn(de->d_name, "0123456789") != strlen(de->d_name))
            continue;
        if (!is_part_of(de->d_name, keeper))
            continue;
        snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", de->d_name);
        sum += field_mb(path, "Pss:");
    }
    if (d != NULL)
        closedir(d);
    return sum;
}

/* ---- the measurements ---- */

/* The pool of ready sandboxes is full again and nothing is being torn down. */
static void settle(struct client *c, double pooled)
{
    double end = now_ms() + SETTLE_MS;

    while (metric(c, "cove_sandboxes_pooled") < pooled || metric(c, "cove_teardown_queue") > 0) {
        if (now_ms() > end)
            die("the pool does not fill");
        usleep(20000);
    }
}

static void measure_exec(struct client *c, const char *id, const char *what)
{
    struct samples ours = {0}, theirs = {0};
    static const char *const argv[] = {"/bin/true", NULL};

    for (size_t i = 0; i < EXEC_ROUNDS + WARM_UP; i++) {
        double start = now_ms(), took;

        sandbox_exec(c, id, EXEC_TRUE);
        took = now_ms() - start;
        if (i < WARM_UP) {
            floor_ms(argv);
            continue;
        }
        samples_add(&ours, took);
        samples_add(&theirs, floor_ms(argv));
    }
    row_ratio(what, &ours, "posix_spawn", &theirs, 1.5);
    samples_free(&ours);
    samples_free(&theirs);
}

static void row_mb(const char *what, double each, const char *ours, double target)
{
    char result[32], wanted[32];
    struct row r = {what, ours, "", result, wanted, each <= target ? VERDICT_MET : VERDICT_MISSED};

    snprintf(result, sizeof(result), "%.2f MB", each);
    snprintf(wanted, sizeof(wanted), "<= %.1f MB", target);
    row_print(&r);
}

struct memory {
    double available, charged;
};

static struct memory look(void)
{
    return (struct memory){available_mb(), charged_mb()};
}

/* The mean of the memory they took and the memory they gave back: changes by other programs
 * are in both with opposite signs. */
static void row_memory(size_t n, const struct memory *before, const struct memory *with,
                       const struct memory *after)
{
    double taken = before->available - with->available;
    double back = after->available - with->available;
    char what[96], ours[128];

    snprintf(what, sizeof(what), "memory per idle sandbox, of %zu", n);
    snprintf(ours, sizeof(ours), "taken %.0f MB, given back %.0f MB; charged to their cgroups %.0f",
             taken, back, with->charged - before->charged);
    row_mb(what, (taken + back) / 2 / (double)(n - 1), ours, IDLE_TARGET);
}

static void measure(struct client *c, char (*ids)[CLIENT_ID_MAX], size_t n, double pooled)
{
    struct memory before = look(), with, after;
    char what[96];

    for (size_t i = 1; i < n; i++)
        sandbox_create(c, ids[i]);
    settle(c, pooled);
    with = look();
    snprintf(what, sizeof(what), "the daemon's memory with %zu sandboxes", n);
    row_mb(what, daemon_mb(), "front and keeper together (Pss)", DAEMON_TARGET);
    snprintf(what, sizeof(what), "run /bin/true, one of %zu sandboxes", n);
    measure_exec(c, ids[n / 2], what);
    for (size_t i = 1; i < n; i++)
        sandbox_delete(c, ids[i]);
    settle(c, pooled);
    sleep(1); /* the kernel frees cgroups and namespaces some time later */
    after = look();
    row_memory(n, &before, &with, &after);
}

int main(void)
{
    size_t n = bench_count("BENCH_SANDBOXES", SANDBOXES);
    char(*ids)[CLIENT_ID_MAX] = calloc(n, sizeof(*ids));
    struct client c;
    double pooled;

    if (ids == NULL || n < 2)
        die("no room for %zu sandboxes", n);
    client_open(&c);
    settle(&c, 0);
    pooled = metric(&c, "cove_sandboxes_pooled");
    sandbox_create(&c, ids[0]);
    measure_exec(&c, ids[0], "run /bin/true, the only sandbox");
    settle(&c, pooled);
    measure(&c, ids, n, pooled);
    sandbox_delete(&c, ids[0]);
    settle(&c, 0);
    client_close(&c);
    free(ids);
    return 0;
}
