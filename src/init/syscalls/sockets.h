/* sockets.h - a limit for the sockets whose buffers no cgroup counts.
 *
 * Buffers of TCP, UDP and unix sockets count to the sandbox's memory. Those of netlink, packet
 * and raw sockets do not, and have some megabytes each where the host allows large buffers:
 * without a limit a sandbox could take all memory of the host. So the filter hands socket() of
 * those kinds to init (statfs.c), which counts how many there are.
 *
 * The kernel makes the socket after the answer: threads that ask at the same moment can exceed
 * the limit by their number. */
#ifndef INIT_SYSCALLS_SOCKETS_H
#define INIT_SYSCALLS_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#define SOCKETS_UNCOUNTED_MAX 256u /* of one sandbox; then ENOBUFS */

/* True: one more is allowed. */
bool sockets_have_room(void);
/* How many of such kinds a text like /proc/net/protocols lists. */
size_t sockets_count(char *text);

#endif
