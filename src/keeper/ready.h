/* ready.h - what `cove serve` tells the person who typed it. */
#ifndef KEEPER_READY_H
#define KEEPER_READY_H

#include "keeper/host.h"

/* One line with `ready` and the URL, then what to type next; also writes
 * /run/cove/default, so that root's CLI needs no settings. */
void ready_say(struct keeper *k);
/* Takes /run/cove/default back, if it names this daemon. */
void ready_unsay(struct keeper *k);

#endif
