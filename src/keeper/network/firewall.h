/* firewall.h - one nftables table per daemon: where sandboxes may send packets.
 *
 * All rules are on the host and match the interface of the sandbox, which no tenant can choose. The
 * text for nftables is built here from numbers and our tag only. The table is separate: other
 * filters of the host stay and apply too. */
#ifndef KEEPER_NETWORK_FIREWALL_H
#define KEEPER_NETWORK_FIREWALL_H

#include "keeper/host.h"

struct nft_ctx;

/* Opens the library and checks that the kernel answers. */
int firewall_open(struct nft_ctx **ret, struct err *e);
void firewall_close(struct nft_ctx *nft); /* NULL is fine */

/* Writes all rules that do not depend on one sandbox, in one transaction: sandboxes of an earlier
 * daemon keep their connections and their own rules. */
int firewall_write(struct keeper *k, struct err *e);
/* Only the set of the host's own networks. */
int firewall_write_local(struct keeper *k, struct err *e);
/* Removes the table; no error if there is none. */
void firewall_remove(struct keeper *k);

/* The tables of all daemons, and the interfaces they guard. */
int firewall_look(struct keeper *k, struct forwarding_tables *ret, struct err *e);

/* firewall_watch.c: writes the table again when another program removes it. */
int firewall_watch(struct keeper *k, struct err *e);
void firewall_unwatch(struct keeper *k);
/* The same at once. False: it was there. */
bool firewall_restore(struct keeper *k);

/* Replaces the rules of a sandbox, in one transaction. */
int firewall_rule(struct sandbox *sb, const struct wire_bytes *rules, struct err *e);
/* Removes its rules. */
int firewall_unrule(struct sandbox *sb, struct err *e);

/* The text of a sandbox's chain, for its test. */
void firewall_text(struct buf *out, const char *chain, const struct wire_bytes *rules);

#endif
