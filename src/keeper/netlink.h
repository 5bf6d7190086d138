/* netlink.h - links and routes of the host, over rtnetlink.
 *
 * A sandbox's network is a veth: eth0 inside, the other end on the host, named
 * after the daemon and the id range. Neither end speaks ARP and both have the same
 * hardware address: whatever either sends is addressed to the other, nothing has
 * to be asked, and so nobody can answer falsely. */
#ifndef KEEPER_NETLINK_H
#define KEEPER_NETLINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cidr.h"
#include "base/err.h"

struct mnl_socket;

int netlink_open(struct mnl_socket **ret, struct err *e);
void netlink_close(struct mnl_socket *nl); /* NULL is fine */

/* The pair, both ends down; eth0 in the network namespace of `pid`. */
int netlink_veth(struct mnl_socket *nl, const char *name, pid_t pid, uint32_t mtu, struct err *e);
/* Takes 20 ms, under a lock that all share. */
int netlink_delete(struct mnl_socket *nl, const char *name, struct err *e);
int netlink_set_up(struct mnl_socket *nl, const char *name, struct err *e);
/* Everything for `addr` goes there. */
int netlink_route(struct mnl_socket *nl, uint32_t addr, const char *name, struct err *e);

struct netlink_route { /* IPv4, main table, unicast */
    struct cidr to;
    char dev[IFNAMSIZ];
};
struct netlink_count {
    const char *name; /* of the host's end */
    uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets;
};
/* The argument of `each` is borrowed for the call. */
int netlink_routes(struct mnl_socket *nl, void (*each)(void *arg, const struct netlink_route *r),
                   void *arg, struct err *e);
int netlink_counts(struct mnl_socket *nl, void (*each)(void *arg, const struct netlink_count *c),
                   void *arg, struct err *e);
/* Packets that came in by one link. */
int netlink_received(struct mnl_socket *nl, const char *name, uint64_t *ret);

#endif
