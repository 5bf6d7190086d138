/* meter.h - what sandboxes use: processor, memory, disk, network, processes.
 *
 * A thread reads cgroups and quotas of all sandboxes in one go, some tens of microseconds each. */
#ifndef KEEPER_METER_H
#define KEEPER_METER_H

#include "keeper/host.h"

/* Sends a point for each running sandbox, then the end. Without an id one sample runs at a time;
 * with an id it is of that sandbox only. */
int meter_sample(struct keeper *k, uint32_t seq, const char *id, struct err *e);

#endif
