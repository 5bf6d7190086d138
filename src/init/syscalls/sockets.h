/* sockets.h - limits for what sockets take and no cgroup counts.
 *
 * Buffers of TCP, UDP and unix sockets count to the sandbox's memory. These do not, so the filter
 * hands the calls that make them to init:
 *
 *  - netlink, packet and raw sockets, some megabytes each where the host allows large buffers.
 *    They are counted, and their buffers do not grow beyond the default;
 *  - connections that were not accepted yet, with all that lies in them. Listeners are counted,
 *    and so is how many connections may wait at all of them; the buffer of a connection is that
 *    of its listener, which gets a fixed one. (Connections to a sandbox come from inside it, so a
 *    small window costs nothing.);
 *  - joined multicast groups.
 *
 * Where the kernel makes the call after the answer, threads that ask at the same moment can
 * exceed a limit by their number. */
#ifndef INIT_SYSCALLS_SOCKETS_H
#define INIT_SYSCALLS_SOCKETS_H

#include "init/syscalls/caller.h"

/* Of one sandbox; then ENOBUFS. Less in one with little memory. */
#define SOCKETS_UNCOUNTED_MAX 64u
#define SOCKETS_UNCOUNTED_LEAST 16u
#define SOCKETS_UNCOUNTED_BUFFER (104u << 10) /* the kernel doubles it, which is its default */

#define SOCKETS_LISTENERS_MAX 64u /* of one sandbox, TCP; then ENOBUFS */
/* Connections that may wait to be accepted: at all listeners together, in a sandbox with little
 * memory, and at one. When all are given out, each further listener gets the last number. */
#define SOCKETS_WAITING_MAX 512u
#define SOCKETS_WAITING_LEAST 64u
#define SOCKETS_WAITING_ONE 256u
#define SOCKETS_WAITING_REST 8u
#define SOCKETS_LISTENER_BUFFER (64u << 10) /* doubled likewise */

#define SOCKETS_JOINS_MAX 1024u /* groups, times the sockets that joined each; then ENOBUFS */

int sockets_on_socket(const struct caller *c);
int sockets_on_listen(const struct caller *c);
int sockets_on_option(const struct caller *c);

/* Made before the filter, which would hand it to init. -1: the kernel has none, and listeners are
 * bounded by SOCKETS_WAITING_ONE each, but not counted. */
int sockets_diag_open(void);

/* How many of the uncounted kinds a text like /proc/net/protocols lists. */
size_t sockets_count(char *text);
/* The users of all groups in a text like /proc/net/igmp (column 2 of lines that begin with a
 * tab), igmp6 or anycast6 (column 4). */
size_t sockets_count_joins(char *text);
/* What a listener that asks for `backlog` gets where `given` are given out. */
unsigned sockets_grant(int backlog, unsigned given, uint64_t memory);

#endif
