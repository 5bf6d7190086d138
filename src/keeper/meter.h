/* meter.h - what sandboxes use: processor, memory, disk, network, processes.
 *
 * Read from cgroups and quotas by a worker, all sandboxes in one go: some tens of
 * microseconds each, and none of them the loop's. */
#ifndef KEEPER_METER_H
#define KEEPER_METER_H

#include "keeper/host.h"

/* A point for each sandbox that runs, then the end; one such sample at a time. With an
 * id that is not "": of that sandbox only, if it runs. */
int meter_sample(struct keeper *k, uint32_t seq, const char *id, struct err *e);

#endif
