/* listen.h - the listening socket of the API. */
#ifndef KEEPER_HOST_LISTEN_H
#define KEEPER_HOST_LISTEN_H

#include "keeper/host.h"

/* Refuses an address that this host does not have, before anything is made. */
int listen_check(const struct keeper *k, struct err *e);
/* Fills listen_fd and url. Waits a moment for a port that the front of a killed keeper still has.
 */
int listen_open(struct keeper *k, struct err *e);

#endif
