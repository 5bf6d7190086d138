/* local.h - the networks of the host's own interfaces, which sandboxes do not reach.
 *
 * The machines beside a host trust it more than they trust the internet, also where their addresses
 * are public. Addresses come and go while we run: the kernel reports each change. */
#ifndef KEEPER_NETWORK_LOCAL_H
#define KEEPER_NETWORK_LOCAL_H

#include "keeper/host.h"

/* Reads them into k->network; the firewall is not written. */
int local_look(struct keeper *k, struct err *e);
/* From now on a change is in the firewall as soon as the kernel reports it. */
int local_watch(struct keeper *k, struct err *e);
void local_unwatch(struct keeper *k);

#endif
