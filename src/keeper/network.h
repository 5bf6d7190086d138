/* network.h - the network stage: what it needs of the host, and a sandbox's part.
 *
 * `egress` is a veth to the host, where the firewall decides and NAT hides it. A
 * sandbox's address is a function of its id range, which is leased for the whole
 * host, so two never have the same. Nothing is deleted one by one: interface and
 * route go when the kernel takes down the namespace, which it does in batches, unless
 * something keeps it from that. */
#ifndef KEEPER_NETWORK_H
#define KEEPER_NETWORK_H

#include "keeper/host.h"

#define NETWORK_PREFIX "cv"

/* Reads the settings and the host. A host that cannot give egress is no failure,
 * unless the settings insist on it: then sandboxes get `none`, and why is logged. */
int network_open(struct keeper *k, struct err *e);
/* Removes what is ours from the host: table and forwarding, if they are. */
void network_close(struct keeper *k);

/* The bits of record.network for what a client asked for ("": the default). */
int network_choose(const struct keeper *k, const char *asked, uint32_t *ret, struct err *e);
const char *network_mode(uint32_t bits);

/* The rules of a sandbox that runs, now. */
int network_rule(struct sandbox *sb, const struct wire_bytes *rules, struct err *e);
/* The rules of one that will: network_up() gives them to the firewall. */
int network_keep_rules(struct sandbox *sb, const struct wire_bytes *rules, struct err *e);

uint32_t network_address(const struct sandbox *sb); /* 0: none */
void network_name(const struct sandbox *sb, char out[IFNAMSIZ]);
int network_counts(struct keeper *k, void (*each)(void *arg, const struct keeper_count *c),
                   void *arg, struct err *e);

/* For doctor: what this host offers. Each fills `text` and says whether it is well. */
bool network_see_nft(char *text, size_t room);
bool network_see_limits(char *text, size_t room);
bool network_see_uplink(char *text, size_t room);
bool network_see_names(char *text, size_t room);

#endif
