/* sockets.h - a bound for the sockets whose memory nobody counts.
 *
 * What lies in a TCP, UDP or unix socket counts to the sandbox's memory. What lies in a
 * netlink, packet or raw one does not, and is some megabytes each where the host allows
 * large buffers: without a bound a sandbox could take all of the host's. So the system call
 * filter hands socket() of those kinds to init, which counts how many there are.
 *
 * The kernel makes the socket after the answer: as many more as there are threads that
 * ask in one moment can come through. */
#ifndef INIT_SOCKETS_H
#define INIT_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#define SOCKETS_UNCOUNTED_MAX 256u /* of one sandbox; then ENOBUFS */

/* There may be one more. */
bool sockets_have_room(void);
/* How many the text of /proc/net/protocols lists of such kinds. */
size_t sockets_count(char *text);

#endif
