/* bench.h - shared by all programs here: samples, rows of the table, and the floor.
 *
 * A number alone says more about the machine than about Cove, so each is measured in
 * turn with the same work done by the kernel or another tool, in one run: both are
 * slowed down alike. Anything unexpected ends the program: a benchmark of failures
 * measures nothing. */
#ifndef BENCH_LIB_BENCH_H
#define BENCH_LIB_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_TEXT_MAX 160

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

double now_ms(void);

/* BENCH_name from the environment, or `otherwise`. */
size_t bench_count(const char *name, size_t otherwise);

/* ---- samples, in ms ---- */

struct samples {
    double *ms; /* belongs to the samples */
    size_t n, cap;
};

void samples_add(struct samples *s, double ms);
void samples_free(struct samples *s);
/* The percentile; sorts the samples. */
double samples_at(struct samples *s, double percent);
/* "0.81 ms (p90 1.02, p99 1.40)" */
const char *samples_text(struct samples *s, char out[BENCH_TEXT_MAX]);

/* ---- the table ---- */

enum verdict {
    VERDICT_NONE, /* for comparison only; no target */
    VERDICT_MET,
    VERDICT_MISSED,
};

struct row {
    const char *what;    /* "run /bin/true" */
    const char *ours;    /* "0.81 ms (p90 ...)" */
    const char *against; /* "posix_spawn: 0.54 ms (p90 ...)", or "" */
    const char *result;  /* "1.50 x" */
    const char *target;  /* "<= 1.5 x", or "" */
    enum verdict verdict;
};

/* One line on stdout, for run.sh. */
void row_print(const struct row *r);
/* The usual row: our median over theirs, at most `target` (0: no target). */
void row_ratio(const char *what, struct samples *ours, const char *peer, struct samples *theirs,
               double target);
/* A sentence under the table. */
void note_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- the floor ---- */

/* posix_spawn and waitpid with stdio on /dev/null; its exit code, or -1 when it
 * could not be started. argv[0] is searched in PATH. */
int floor_run(const char *const *argv);
double floor_ms(const char *const *argv); /* the same, timed; dies unless it exits with 0 */

#endif
