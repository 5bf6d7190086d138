/* ready.h - what `cove serve` prints when it is ready. */
#ifndef KEEPER_HOST_READY_H
#define KEEPER_HOST_READY_H

#include "keeper/host.h"

/* Prints one line with `ready` and the URL, then commands to try; also writes /run/cove/default, so
 * that root's CLI needs no settings. */
void ready_say(struct keeper *k);
/* Removes /run/cove/default if it names this daemon. */
void ready_unsay(struct keeper *k);

#endif
