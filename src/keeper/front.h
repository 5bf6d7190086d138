/* front.h - starting the front, and starting it again. */
#ifndef KEEPER_FRONT_H
#define KEEPER_FRONT_H

#include "keeper/host.h"

/* Until the front of a keeper that was killed has ended; it is helped after a while. */
int front_wait_old(struct keeper *k, struct err *e);
int front_start(struct keeper *k, struct err *e);
void front_ready(struct keeper *k); /* it serves: `cove serve` says so, once */
void front_ended(struct keeper *k); /* its socket is closed: start another */
void front_stop(struct keeper *k);  /* asks it to finish what it is doing and end */
bool front_is_up(const struct keeper *k);
/* It gave up before it ever served: so must `cove serve`, which nobody has seen
 * ready. 0, or -1 with what is known of the reason. */
int front_check(const struct keeper *k, struct err *e);

#endif
