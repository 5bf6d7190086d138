/* ops.h - the messages from and to the front. */
#ifndef KEEPER_OPS_H
#define KEEPER_OPS_H

#include "keeper/host.h"

/* Takes our end of the socket pair with a new front. */
int link_open(struct keeper *k, int fd, struct err *e);
void link_close(struct keeper *k);
bool link_is_ready(const struct keeper *k); /* the front serves requests */

/* Messages are dropped while there is no front, or for a request of a front that is gone: a new
 * front asks for the list. */
void link_ok(struct keeper *k, uint32_t seq);
void link_send(struct keeper *k, uint16_t type, uint32_t seq, const void *msg);
void link_fail(struct keeper *k, uint32_t seq, const struct err *e);
void link_sandbox(struct keeper *k, uint32_t seq, const struct sandbox *sb);
void link_stats(struct keeper *k, uint32_t seq);

#endif
