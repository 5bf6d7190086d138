/* resolvers.h - the name servers of the host. */
#ifndef KEEPER_NETWORK_RESOLVERS_H
#define KEEPER_NETWORK_RESOLVERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Parses "192.0.2.1,192.0.2.2" into at most `max` addresses; returns their number. */
int resolvers_parse(const char *text, uint32_t *ret, size_t max, struct err *e);
/* The `nameserver` lines of a resolv.conf that another machine can reach. */
size_t resolvers_read(const char *path, uint32_t *ret, size_t max);
/* The servers of the host; if it uses a resolver on its loopback, the servers of that. */
size_t resolvers_find(uint32_t *ret, size_t max);

#endif
