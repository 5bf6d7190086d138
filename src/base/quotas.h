/* quotas.h - the quotas of one API key: a row per quota.
 *
 * The row gives the setting with its default and bounds, the name in the database, the API and
 * `cove key --quota`, and what is shown of it. A key has the value of the setting unless it was given
 * one of its own. 0 is no limit.
 *
 * EXTEND  A new quota: a row at the end here, and the code that counts it (front/quota/quota.h). */
#ifndef BASE_QUOTAS_H
#define BASE_QUOTAS_H

#include <stdint.h>

/* M is called with A and B before each row. */
/* clang-format off */
#define QUOTAS(M, A, B) \
    /*      member       name           type    default    largest     what is counted */ \
    M(A, B, sandboxes,   "sandboxes",   NUMBER, "200",     100000,     "sandboxes, in any state") \
    M(A, B, memory,      "memory",      SIZE,   "200G",    1ull << 50, "sum of the memory limits of sandboxes that run or are paused") \
    M(A, B, cpu,         "cpu",         NUMBER, "400000",  1ull << 40, "sum of the CPU limits of running sandboxes, in thousandths of a core") \
    M(A, B, disk,        "disk",        SIZE,   "2048G",   1ull << 55, "sum of the disk limits of sandboxes and of the bytes of snapshots") \
    M(A, B, snapshots,   "snapshots",   NUMBER, "200",     100000,     "snapshots") \
    M(A, B, templates,   "templates",   NUMBER, "50",      100000,     "templates that the key added") \
    M(A, B, archives,    "archives",    SIZE,   "2048G",   1ull << 55, "bytes of archives in their store, each counted in full") \
    M(A, B, buffers,     "buffers",     SIZE,   "256M",    1ull << 40, "bytes of memory of the server that requests hold: bodies, and output that is collected for an answer") \
    M(A, B, requests,    "requests",    NUMBER, "1000",    1000000,    "requests in one second") \
    M(A, B, connections, "connections", NUMBER, "1024",    100000,     "HTTP connections on which the key was presented last") \
    M(A, B, streams,     "streams",     NUMBER, "512",     100000,     "requests under way that stream: output, events, progress, terminals") \
    M(A, B, ports,       "ports",       NUMBER, "1024",    100000,     "requests and WebSockets under way to ports of sandboxes of the key") \
    M(A, B, events,      "events",      SIZE,   "1M",      1ull << 30, "bytes of events that are kept for clients that reconnect; the oldest are dropped") \
    M(A, B, logs,        "logs",        SIZE,   "64M",     1ull << 40, "bytes of log entries that are kept of its sandboxes; the oldest of the one with the most are deleted") \
    M(A, B, workspaces,  "workspaces",  NUMBER, "1000",    1000000,    "workspaces, in any state")
/* clang-format on */

#define QUOTA_ENUM(A, B, member, ...) QUOTA_##member,
enum quota { QUOTAS(QUOTA_ENUM, _, _) QUOTA_COUNT };

/* A value per quota: limits, or what is used. */
struct quotas {
    uint64_t of[QUOTA_COUNT];
};

#endif
