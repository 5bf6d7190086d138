/* io.h - shares and limits of the disk, where cgroup v2 has the io controller.
 *
 * Weights: when the disk is busy, a sandbox with twice the CPU limit gets twice as much of it; the
 * kernel heeds them with the cost model (io.cost) or with the scheduler bfq. Limits (the limit
 * disk_io): bytes per second read and likewise written, on the device that holds all disks.
 *
 * v1's blkio is not used: it does not see what is written through the page cache. */
#ifndef KEEPER_IO_H
#define KEEPER_IO_H

#include "keeper/host.h"

#define IO_LINE_MAX 96u

/* After the disks. Without the controller nothing is limited, and k->cgroups says so; a default
 * limit that cannot be had is refused. */
int io_open(struct keeper *k, struct err *e);
/* ERR_UNSUPPORTED if this cannot be had here. 0 always can. */
int io_check(const struct keeper *k, uint64_t disk_io, struct err *e);
int io_limit(struct sandbox *sb, struct err *e);

/* The weight that goes with a CPU limit: 100 for the default of two cores. */
unsigned io_weight(uint64_t cpu_milli);
/* What is written to io.max; 0: no limit. */
void io_line(char out[IO_LINE_MAX], unsigned major, unsigned minor, uint64_t rate);

#endif
