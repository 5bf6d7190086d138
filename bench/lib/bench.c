/* bench.c - see bench.h. */
#include "bench/lib/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

extern char **environ;

void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

double now_ms(void)
{
    return (double)clock_mono_ns() / 1e6;
}

size_t bench_count(const char *name, size_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? strtoul(text, NULL, 10) : otherwise;
}

void samples_add(struct samples *s, double ms)
{
    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 256 : s->cap * 2;
        s->ms = realloc(s->ms, s->cap * sizeof(*s->ms));
        if (s->ms == NULL)
            die("out of memory");
    }
    s->ms[s->n++] = ms;
}

void samples_free(struct samples *s)
{
    free(s->ms);
    *s = (struct samples){0};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double samples_at(struct samples *s, double percent)
{
    size_t i;

    if (s->n == 0)
        die("no samples");
    qsort(s->ms, s->n, sizeof(*s->ms), by_value);
    i = (size_t)((double)(s->n - 1) * percent / 100.0 + 0.5);
    return s->ms[i];
}

const char *samples_text(struct samples *s, char out[BENCH_TEXT_MAX])
{
    snprintf(out, BENCH_TEXT_MAX, "%.2f ms (p90 %.2f, p99 %.2f)", samples_at(s, 50),
             samples_at(s, 90), samples_at(s, 99));
    return out;
}

void row_print(const struct row *r)
{
    static const char *const words[] = {
        [VERDICT_NONE] = "", [VERDICT_MET] = "yes", [VERDICT_MISSED] = "no"};

    printf("row\t%s\t%s\t%s\t%s\t%s\t%s\n", r->what, r->ours, r->against, r->result, r->target,
           words[r->verdict]);
    fflush(stdout);
}

void row_ratio(const char *what, struct samples *ours, const char *peer, struct samples *theirs,
               double target)
{
    char our_text[BENCH_TEXT_MAX], their_text[BENCH_TEXT_MAX], against[2 * BENCH_TEXT_MAX];
    char result[32], wanted[32] = "";
    double ratio = samples_at(ours, 50) / samples_at(theirs, 50);
    struct row r = {what, samples_text(ours, our_text), against, result, wanted, VERDICT_NONE};

    snprintf(against, sizeof(against), "%s: %s", peer, samples_text(theirs, their_text));
    snprintf(result, sizeof(result), "%.2f x", ratio);
    if (target > 0) {
        snprintf(wanted, sizeof(wanted), "<= %.1f x", target);
        r.verdict = ratio <= target ? VERDICT_MET : VERDICT_MISSED;
    }
    row_print(&r);
}

void note_print(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("note\t", stdout);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    fflush(stdout);
}

int floor_run(const char *const *argv)
{
    posix_spawn_file_actions_t files;
    int status, failed;
    pid_t pid;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, 0, 2);
    failed = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

double floor_ms(const char *const *argv)
{
    double start = now_ms();
    int code = floor_run(argv);

    if (code != 0)
        die("%s: exit code %d", argv[0], code);
    return now_ms() - start;
}
