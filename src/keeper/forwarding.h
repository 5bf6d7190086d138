/* forwarding.h - the host passes packets on for sandboxes, and for nobody else.
 *
 * An interface on which answers come in must forward. Where it did not before, we
 * switch it on, remember that for the whole host (several daemons may need it) and
 * switch it off again when the last of them leaves. Meanwhile the firewall lets
 * such an interface forward to sandboxes only: a host that was no router does not
 * become one. */
#ifndef KEEPER_FORWARDING_H
#define KEEPER_FORWARDING_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define FORWARDING_DEVS 32u
#define FORWARDING_TAGS 64u
#define FORWARDING_TAG 16u

struct forwarding {
    char devs[FORWARDING_DEVS][IFNAMSIZ]; /* that forward because of us */
    size_t ndevs;
};

/* What can be known without the memory, which may be lost (`rm -rf /run/cove`): which tables
 * of daemons the firewall has, and which interfaces they keep from forwarding for others. That
 * is written for what was off before, and for nothing else. */
struct forwarding_tables {
    bool ours;
    char others[FORWARDING_TAGS][FORWARDING_TAG]; /* tags of other daemons */
    size_t nothers;
    struct forwarding guarded;
};

/* Remembers; idempotent. `f` comes with the interfaces that are needed and leaves
 * with all that are to be on because of a daemon of this host... */
int forwarding_take(struct forwarding *f, const struct forwarding_tables *t, const char *tag,
                    struct err *e);
/* ...which this switches on, once the firewall keeps them from forwarding more. */
int forwarding_start(const struct forwarding *f, struct err *e);
/* True if this daemon has taken it, now or before it was killed. */
bool forwarding_has(const char *tag);
/* Before the firewall's table goes: what does not forward needs none. */
void forwarding_give_back(const struct forwarding_tables *t, const char *tag);
void forwarding_add(struct forwarding *f, const char *dev);
/* A sysctl of one interface: /proc/sys/net/FAMILY/conf/DEV/NAME. */
int forwarding_set(const char *family, const char *dev, const char *name, const char *value);

#endif
