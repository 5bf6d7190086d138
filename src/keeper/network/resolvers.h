/* resolvers.h - whom the host asks for names. */
#ifndef KEEPER_NETWORK_RESOLVERS_H
#define KEEPER_NETWORK_RESOLVERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* "192.0.2.1,192.0.2.2" into at most `max` addresses; returns how many. */
int resolvers_parse(const char *text, uint32_t *ret, size_t max, struct err *e);
/* The `nameserver` lines of a resolv.conf: addresses another machine can ask. */
size_t resolvers_read(const char *path, uint32_t *ret, size_t max);
/* The host's own; behind a resolver on its loopback those that it uses. */
size_t resolvers_find(uint32_t *ret, size_t max);

#endif
