/* front.h - starts the front, and starts it again when it ends. */
#ifndef KEEPER_HOST_FRONT_H
#define KEEPER_HOST_FRONT_H

#include "keeper/host.h"

/* Waits until the front of a killed keeper has ended; kills it after a while. */
int front_wait_old(struct keeper *k, struct err *e);
int front_start(struct keeper *k, struct err *e);
void front_ready(struct keeper *k); /* it serves: `cove serve` prints that once */
void front_ended(struct keeper *k); /* its socket is closed: starts another */
void front_stop(struct keeper *k);  /* asks it to finish its requests and end */
bool front_is_up(const struct keeper *k);
bool front_is_stopping(const struct keeper *k);
/* The front ended before it ever served, so `cove serve` must fail too. 0, or -1 with the known
 * reason. */
int front_check(const struct keeper *k, struct err *e);

#endif
