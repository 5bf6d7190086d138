/* network.h - the network stage.
 *
 * `egress` is a veth to the host, with a firewall and NAT. A sandbox's address follows from its id
 * range, which is leased for the whole host, so no two sandboxes have the same. Interfaces and
 * routes are not deleted one by one: they go when the kernel removes the namespace, which it does
 * in batches. */
#ifndef KEEPER_NETWORK_H
#define KEEPER_NETWORK_H

#include "keeper/host.h"

#define NETWORK_PREFIX "cv"

/* Reads the settings and the host. If the host cannot give egress, sandboxes get `none` and the
 * reason is logged; it is an error only if the setting demands egress. */
int network_open(struct keeper *k, struct err *e);
/* Removes our firewall table and our forwarding from the host. */
void network_close(struct keeper *k);
/* The daemon could not start: removes what it has made itself, and keeps an earlier daemon's table,
 * which sandboxes may still need. */
void network_undo(struct keeper *k);

/* The bits of record.network for a client's choice ("": the default). */
int network_choose(const struct keeper *k, const char *asked, uint32_t *ret, struct err *e);
const char *network_mode(uint32_t bits);

/* Replaces the rules of a running sandbox. */
int network_set_rules(struct sandbox *sb, const struct wire_bytes *rules, struct err *e);
/* Keeps the rules of a sandbox that will run: network_up() gives them to the firewall. */
int network_keep_rules(struct sandbox *sb, const struct wire_bytes *rules, struct err *e);

uint32_t network_address(const struct sandbox *sb); /* 0: none */
void network_name(const struct sandbox *sb, char out[IFNAMSIZ]);
int network_counts(struct keeper *k, void (*each)(void *arg, const struct keeper_count *c),
                   void *arg, struct err *e);

/* For doctor: each writes a sentence to `text` and returns whether this host offers it. */
bool network_check_nft(char *text, size_t room);
bool network_check_limits(char *text, size_t room);
bool network_check_uplink(char *text, size_t room);
bool network_check_names(char *text, size_t room);

#endif
