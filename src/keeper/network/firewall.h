/* firewall.h - one nftables table per daemon: what sandboxes may send where.
 *
 * Every rule stands on the host's side and goes by the interface a packet came in
 * on, which no tenant can choose. The text handed to nftables is built here, from
 * numbers and from our own tag and nothing else. The table is ours alone: whatever
 * else the host filters stays as it is and applies too. */
#ifndef KEEPER_NETWORK_FIREWALL_H
#define KEEPER_NETWORK_FIREWALL_H

#include "keeper/host.h"

struct nft_ctx;

/* Opens the library and says whether the kernel answers it. */
int firewall_open(struct nft_ctx **ret, struct err *e);
void firewall_close(struct nft_ctx *nft); /* NULL is fine */

/* Writes all that does not depend on a single sandbox, in one transaction: the
 * sandboxes of an earlier daemon keep their connections and their own rules. */
int firewall_write(struct keeper *k, struct err *e);
/* Removes the table; fine if there is none. */
void firewall_remove(struct keeper *k);

/* Which tables of daemons are there, and what they guard. */
int firewall_look(struct keeper *k, struct forwarding_tables *ret, struct err *e);

/* firewall_watch.c: writes it again whenever somebody else removes it. */
int firewall_watch(struct keeper *k, struct err *e);
void firewall_unwatch(struct keeper *k);
/* At once, for who cannot wait for that. False: it is there. */
bool firewall_restore(struct keeper *k);

/* What this sandbox may reach is `rules` from now on, all at once. */
int firewall_rule(struct sandbox *sb, const struct wire_bytes *rules, struct err *e);
/* The same, if it has no rules (any more). */
int firewall_unrule(struct sandbox *sb, struct err *e);

/* The text of a sandbox's chain, for the test of it. */
void firewall_text(struct buf *out, const char *chain, const struct wire_bytes *rules);

#endif
