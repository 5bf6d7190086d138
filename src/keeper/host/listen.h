/* listen.h - the listening socket of the API. */
#ifndef KEEPER_HOST_LISTEN_H
#define KEEPER_HOST_LISTEN_H

#include "keeper/host.h"

/* Fills listen_fd and url. Waits a moment for a port that the front of a killed keeper still has.
 */
int listen_open(struct keeper *k, struct err *e);

#endif
