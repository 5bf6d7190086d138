/* bare.h - makes and removes the kernel objects of a sandbox, and nothing else.
 *
 * The lowest possible cost of a sandbox's life on this machine: the same namespaces, control groups
 * and mounts, and `true` executed in them once, by a program that keeps no record,
 * enforces no limit and serves no client. */
#ifndef BENCH_LIB_BARE_H
#define BENCH_LIB_BARE_H

#include <stddef.h>

/* Lives per second with `workers` processes; `root` is the lower directory. 0 if it does
 * not work here. */
double bare_rate(const char *root, size_t total, size_t workers);

#endif
