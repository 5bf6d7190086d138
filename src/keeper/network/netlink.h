/* netlink.h - links and routes of the host, over rtnetlink, and requests over netlink in general.
 *
 * A request and its whole answer are one call. An error in one call does not affect the next:
 * messages of other answers are skipped, an answer is read to its end also after an error, and if
 * that end is lost the socket is replaced.
 *
 * A sandbox's network is a veth: eth0 inside, the other end on the host, named after the daemon and
 * the id range. Both ends have ARP off and the same hardware address, so every packet is for the
 * other end, and no ARP answer can be forged. */
#ifndef KEEPER_NETWORK_NETLINK_H
#define KEEPER_NETWORK_NETLINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cidr.h"
#include "base/err.h"

struct netlink;
struct nlmsghdr;

/* `bus` is NETLINK_ROUTE or another one. */
int netlink_open(struct netlink **ret, int bus, struct err *e);
void netlink_close(struct netlink *nl); /* NULL is fine */

/* Called for each message of an answer; the message is borrowed. NULL: the list is sent again,
 * forget the messages so far. Must not use the same `nl`. -1 with errno: the call fails. */
typedef int netlink_each(void *arg, const struct nlmsghdr *h);

/* Sends `h`, with its length, type and flags (NLM_F_DUMP, or NLM_F_ACK is added), and reads the
 * answer. A list that changed while it was sent (NLM_F_DUMP_INTR) is asked for again, a few times;
 * then -1 with EINTR, after `each` has seen a list that may be incomplete. -1 sets errno. */
int netlink_talk(struct netlink *nl, struct nlmsghdr *h, netlink_each *each, void *arg);

/* An answer that is being read; for netlink_talk() and its test. */
struct netlink_answer {
    uint32_t seq, port; /* of the request */
    netlink_each *each; /* may be NULL */
    void *arg;
    bool over;        /* its end was read */
    bool interrupted; /* the list may be incomplete */
    int error;        /* errno; the rest is read and skipped */
};
/* Takes one datagram. */
void netlink_take(struct netlink_answer *a, const void *data, size_t len);

/* Makes the pair, both ends down; eth0 in the network namespace of `pid`. */
int netlink_veth(struct netlink *nl, const char *name, pid_t pid, uint32_t mtu, struct err *e);
/* Takes 20 ms, under a lock of the whole kernel. */
int netlink_delete(struct netlink *nl, const char *name, struct err *e);
int netlink_set_up(struct netlink *nl, const char *name, struct err *e);
/* Limits what the link sends (base/tbf.h). */
int netlink_limit(struct netlink *nl, const char *name, uint64_t rate, struct err *e);
/* Routes `addr` to the link. */
int netlink_route(struct netlink *nl, uint32_t addr, const char *name, struct err *e);

struct netlink_route { /* IPv4, main table, unicast; or the network of an address */
    struct cidr to;
    char dev[IFNAMSIZ];
};
struct netlink_count {
    char name[IFNAMSIZ]; /* of the host's end */
    uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets;
};
/* The argument of `each` is borrowed for the call; NULL as for netlink_each. Routes that keep
 * changing are reported as far as they were seen. Counters then fail with EINTR. */
int netlink_routes(struct netlink *nl, void (*each)(void *arg, const struct netlink_route *r),
                   void *arg, struct err *e);
/* The network of each IPv4 address of the host. */
int netlink_addresses(struct netlink *nl, void (*each)(void *arg, const struct netlink_route *r),
                      void *arg, struct err *e);
int netlink_counts(struct netlink *nl, void (*each)(void *arg, const struct netlink_count *c),
                   void *arg, struct err *e);
/* Of one link; -1 sets errno, ENODEV if there is none. */
int netlink_count(struct netlink *nl, const char *name, struct netlink_count *ret);

#endif
