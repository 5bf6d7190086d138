/* host.h - which names a request may call this server by.
 *
 * A page of any site can make a browser send requests to an address of the operator's network, by a
 * name of its own that resolves to it (DNS rebinding). The browser then takes the answers for that
 * site's, and lets the page read them. Only the Host header tells such a request from ours. */
#ifndef FRONT_PROXY_HOST_H
#define FRONT_PROXY_HOST_H

#include <stdbool.h>

#define PROXY_NAME_MAX 256 /* bytes with the NUL; longer is no name */

/* Without its port, and without the brackets of an IPv6 address; "" if it is longer than a name. */
void host_name(const char *host, char out[PROXY_NAME_MAX]);

/* An address, a name of loopback, or one of `domain` and `more` or below one of them. `domain` may
 * have a port, which does not count; `more` are names, comma-separated; "*": any name. A request
 * without a Host (HTTP/1.0) is no browser's, and is ours. */
bool host_is_ours(const char *host, const char *domain, const char *more);

#endif
