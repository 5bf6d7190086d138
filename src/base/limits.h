/* limits.h - the limits of one sandbox: a row per limit.
 *
 * The row gives the member of every struct that holds limits, the setting with its default and
 * bounds, the fields on the wire to the keeper and in its records, the column of the database, the field
 * of the API and the flag of the CLI.
 *
 * EXTEND  A new limit: a row at the end here, its column in a new migration of
 *         front/store/store.c, and the code that enforces it (keeper/stages/cgroup.c has most). */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdint.h>

#define LIMIT_DISK_MIN (16ull << 20)
#define LIMIT_DISK_MAX (1ull << 50)

/* M is called with A and B before each row. */
/* clang-format off */
#define LIMITS(M, A, B) \
    /*      member     name      type    default  smallest     largest     the setting's words; the API's words; the flag's value and words; default of the ceiling, and its words */ \
    M(A, B, cpu_milli, "cpu",    NUMBER, "2000",  10,          1024000,    "default CPU limit of a sandbox, in thousandths of a core", "Thousandths of a core.",          CORES, "CPU limit, such as 0.5 or 2", "0", "largest CPU limit of a sandbox, in thousandths of a core; 0: the cores of the host, and at least the setting `cpu`") \
    M(A, B, memory,    "memory", SIZE,   "1G",    16ull << 20, 1ull << 45, "default memory limit of a sandbox",                        "Bytes of memory.",                SIZE,  "memory limit, such as 512M or 2G", "0", "largest memory limit of a sandbox; 0: the memory of the host, and at least the setting `memory`") \
    M(A, B, pids,      "pids",   NUMBER, "1024",  8,           4194304,    "default limit of processes and threads of a sandbox",      "Processes and threads.",          N,     "limit of processes and threads", "32768", "largest limit of processes and threads of a sandbox; 0: none") \
    M(A, B, disk,      "disk",   SIZE,   "10G",   LIMIT_DISK_MIN, LIMIT_DISK_MAX, "default limit of what a sandbox may write to its disk",    "Bytes it may write to its disk.", SIZE,  "limit of bytes written to its disk, such as 2G", "1024G", "largest disk limit of a sandbox; 0: none") \
    M(A, B, nofile,    "nofile", NUMBER, "4096",  64,          1048576,    "default limit of open files of each process in a sandbox", "Open files of each process.",     N,     "limit of open files per process", "1048576", "largest limit of open files of each process in a sandbox; 0: none") \
    M(A, B, bandwidth, "bandwidth", SIZE, "0",    0,           1ull << 40, "default limit of a sandbox's network, in bytes per second and direction; 0: none", "Bytes per second that it may send to the outside, and receive from there; 0: the setting `bandwidth`.", SIZE, "limit of bytes per second sent to the outside, and received, such as 10M", "0", "largest network limit of a sandbox, in bytes per second and direction, which one without a limit gets; 0: none") \
    M(A, B, disk_io,   "disk-io", SIZE,  "0",     0,           1ull << 40, "default limit of a sandbox's disk, in bytes per second read and likewise written, where the host has cgroup v2's io controller (see `cove doctor`); 0: none", "Bytes per second that it may read from its disk, and write to it; 0: the setting `disk-io`.", SIZE, "limit of bytes per second read from its disk, and written, such as 50M", "0", "largest disk I/O limit of a sandbox, in bytes per second, which one without a limit gets; 0: none")
/* clang-format on */

#define LIMIT_MEMBER(A, B, member, ...) uint64_t member;
struct limits {
    LIMITS(LIMIT_MEMBER, _, _)
};

/* From one struct with all of them as members to another. */
#define LIMIT_COPY(to, from, member, ...) (to)->member = (from)->member;
#define LIMITS_COPY(to, from)                                                                      \
    do {                                                                                           \
        LIMITS(LIMIT_COPY, to, from)                                                               \
    } while (0)

/* Those that are 0 become what `from` says. */
#define LIMIT_DEFAULT(to, from, member, ...)                                                       \
    if ((to)->member == 0)                                                                         \
        (to)->member = (from)->member;
#define LIMITS_DEFAULT(to, from)                                                                   \
    do {                                                                                           \
        LIMITS(LIMIT_DEFAULT, to, from)                                                            \
    } while (0)

#endif
