/* bare.h - a sandbox's kernel objects made and unmade, and nothing else.
 *
 * The floor of what a life costs on this machine: the same namespaces, control groups
 * and mounts, and `true` executed in them once, by a program that keeps no record,
 * enforces no limit, answers nobody and forgets everything. */
#ifndef BENCH_LIB_BARE_H
#define BENCH_LIB_BARE_H

#include <stddef.h>

/* Lives per second with `workers` processes at it; `root` is what lies below. 0 when it
 * cannot be done here. */
double bare_rate(const char *root, size_t total, size_t workers);

#endif
