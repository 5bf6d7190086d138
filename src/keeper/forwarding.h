/* forwarding.h - turns on IP forwarding for sandboxes, and for nothing else on the host.
 *
 * An interface that receives answers for sandboxes must forward. Where forwarding was off, we turn
 * it on, record that for the whole host (several daemons may need it) and turn it off when the last
 * daemon leaves. Meanwhile the firewall lets such an interface forward to sandboxes only: a host
 * that was no router does not become one. */
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
    char devs[FORWARDING_DEVS][IFNAMSIZ]; /* interfaces that forward because of us */
    size_t ndevs;
};

/* What the firewall tells when the record in /run/cove is lost: the tables of daemons, and the
 * interfaces that they keep from forwarding for others, which are exactly those where forwarding
 * was off before. */
struct forwarding_tables {
    bool ours;
    char others[FORWARDING_TAGS][FORWARDING_TAG]; /* tags of other daemons */
    size_t nothers;
    struct forwarding guarded;
};

/* Records that this daemon needs the interfaces in `f`; on return `f` has all interfaces that must
 * forward because of any daemon of this host. Idempotent. */
int forwarding_take(struct forwarding *f, const struct forwarding_tables *t, const char *tag,
                    struct err *e);
/* Turns forwarding on for them. Called when the firewall restricts them. */
int forwarding_start(const struct forwarding *f, struct err *e);
/* True if this daemon has called forwarding_take(), also before it was killed. */
bool forwarding_has(const char *tag);
/* Called before the firewall's table is removed: an interface that does not forward needs none. */
void forwarding_give_back(const struct forwarding_tables *t, const char *tag);
void forwarding_add(struct forwarding *f, const char *dev);
/* A sysctl of one interface: /proc/sys/net/FAMILY/conf/DEV/NAME. */
int forwarding_set(const char *family, const char *dev, const char *name, const char *value);

#endif
