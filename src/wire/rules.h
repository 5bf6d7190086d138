/* rules.h - the network rules of a sandbox: allowed and denied networks, as numbers.
 *
 * A list is WIRE_RULE bytes per rule, in the order it was given; the same bytes go
 * over the wire and into the front's row. Nothing textual crosses the wall: the
 * keeper checks every number and writes the firewall's text itself. */
#ifndef WIRE_RULES_H
#define WIRE_RULES_H

#include "base/cidr.h"
#include "wire/wire.h"

#define WIRE_RULE 12u
#define WIRE_RULES_MAX 256u /* allowed and denied together, one sandbox */
#define WIRE_RULES_BYTES (WIRE_RULE * WIRE_RULES_MAX)

struct wire_rule {
    struct cidr to;
    bool deny;
};

int rules_add(struct buf *list, const struct wire_rule *r);
size_t rules_count(const struct wire_bytes *list);
/* The i-th, i < rules_count(). */
struct wire_rule rules_get(const struct wire_bytes *list, size_t i);
/* ERR_INVALID unless every rule is one that rules_add() could have written. */
int rules_check(const struct wire_bytes *list, struct err *e);

#endif
