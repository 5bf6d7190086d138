/* netlink.h - links and routes of the host, over rtnetlink; and how to ask the kernel
 * anything over netlink.
 *
 * A question and its whole answer are one call. Whatever goes wrong in one call, the next
 * does not see it: messages that answer another question are skipped, an answer is read
 * to its end also after an error, and where that end is lost the socket is replaced.
 *
 * A sandbox's network is a veth: eth0 inside, the other end on the host, named
 * after the daemon and the id range. Neither end speaks ARP and both have the same
 * hardware address: whatever either sends is addressed to the other, nothing has
 * to be asked, and so nobody can answer falsely. */
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

/* Called for each message of an answer; the message is borrowed. NULL: the list is sent once
 * more, forget what came so far. Must not use the same `nl`. -1 with errno: the call fails. */
typedef int netlink_each(void *arg, const struct nlmsghdr *h);

/* Sends `h`, which has its length, type and flags (NLM_F_DUMP, or NLM_F_ACK is added), and
 * reads the answer. A list that changed while it was sent (NLM_F_DUMP_INTR) is asked for
 * again, a few times; then -1 with EINTR, after `each` has seen a list that may lack
 * something. -1 sets errno. */
int netlink_talk(struct netlink *nl, struct nlmsghdr *h, netlink_each *each, void *arg);

/* What is known of an answer that is being read; for netlink_talk() and its test. */
struct netlink_answer {
    uint32_t seq, port; /* of the question */
    netlink_each *each; /* may be NULL */
    void *arg;
    bool over;        /* its end was read */
    bool interrupted; /* the kernel says that it may lack something */
    int error;        /* errno; the rest is read and skipped */
};
/* Takes one datagram. */
void netlink_take(struct netlink_answer *a, const void *data, size_t len);

/* The pair, both ends down; eth0 in the network namespace of `pid`. */
int netlink_veth(struct netlink *nl, const char *name, pid_t pid, uint32_t mtu, struct err *e);
/* Takes 20 ms, under a lock that all share. */
int netlink_delete(struct netlink *nl, const char *name, struct err *e);
int netlink_set_up(struct netlink *nl, const char *name, struct err *e);
/* What it sends is limited (base/tbf.h). */
int netlink_limit(struct netlink *nl, const char *name, uint64_t rate, struct err *e);
/* Everything for `addr` goes there. */
int netlink_route(struct netlink *nl, uint32_t addr, const char *name, struct err *e);

struct netlink_route { /* IPv4, main table, unicast */
    struct cidr to;
    char dev[IFNAMSIZ];
};
struct netlink_count {
    char name[IFNAMSIZ]; /* of the host's end */
    uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets;
};
/* The argument of `each` is borrowed for the call; NULL as for netlink_each. Routes that
 * change all the time are told as far as they were seen. Counters then fail with EINTR. */
int netlink_routes(struct netlink *nl, void (*each)(void *arg, const struct netlink_route *r),
                   void *arg, struct err *e);
int netlink_counts(struct netlink *nl, void (*each)(void *arg, const struct netlink_count *c),
                   void *arg, struct err *e);
/* Of one link; -1 sets errno, ENODEV if there is none. */
int netlink_count(struct netlink *nl, const char *name, struct netlink_count *ret);

#endif
