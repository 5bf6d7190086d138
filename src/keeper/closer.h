/* closer.h - a thread that closes fds whose close() is slow.
 *
 * Closing a detached mount waits for a grace period of RCU; closing the last reference to an
 * overlay syncs the filesystem below it. Neither may block the keeper's loop. Closing in batches
 * makes the syncs cheap: if nothing is written in between, only the first has anything to do. */
#ifndef KEEPER_CLOSER_H
#define KEEPER_CLOSER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

struct keeper;

int closer_open(struct keeper *k, struct err *e);
/* Closes the fd later (-1 is fine). *done, if given, becomes 1 when it is closed, and must stay
 * valid until then. Without it, a detached mount is closed together with others. */
void closer_close(int fd, atomic_int *done);
/* True while a batch is being closed. Work that can wait should not write to the disks then: each
 * write makes the next overlay of the batch sync again. */
bool closer_is_closing(void);
/* Waits until all fds taken so far are closed. */
void closer_wait(void);

#endif
