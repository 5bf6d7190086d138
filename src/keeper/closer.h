/* closer.h - a thread that closes what is slow to close.
 *
 * Letting go of a detached mount waits for a grace period of RCU; letting go of
 * the last reference to an overlay syncs the filesystem below it. Neither may
 * hold up the keeper's loop. Batches also make the syncs cheap: with nothing new
 * written in between, only the first of them has anything to do. */
#ifndef KEEPER_CLOSER_H
#define KEEPER_CLOSER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

struct keeper;

int closer_open(struct keeper *k, struct err *e);
/* Takes the fd over (-1 is fine). *done, if given, becomes 1 when it is closed; it
 * must stay there until then. Without it, a detached mount is let go of together with others. */
void closer_take(int fd, atomic_int *done);
/* True while a batch is being closed. Whatever can wait should leave the disks alone
 * then: each write to them makes the next overlay of the batch sync again. */
bool closer_is_closing(void);
/* Waits until everything taken so far is closed. */
void closer_wait(void);

#endif
