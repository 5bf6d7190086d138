/* conntrack.c - see conntrack.h. */
#include "keeper/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/network.h"
#include "keeper/network/netlink.h"
#include "loop/job.h"

#define MESSAGE_MAX 1024u /* bytes of a request */
#define FAILS_MAX                                                                                  \
    8u /* consecutive failures; then ranges are freed anyway: a kernel may lack the list */

/* ---- in the thread ---- */

struct walk {
    const struct conntrack *c;
    struct netlink *all, *one; /* reads the list; deletes entries meanwhile */
};

static struct nlmsghdr *begin(char room[MESSAGE_MAX], unsigned type, unsigned flags)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);
    struct nfgenmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

    h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type);
    h->nlmsg_flags = (uint16_t)flags;
    m->nfgen_family = AF_INET;
    return h;
}

static const struct nlattr *part(const struct nlattr *of, uint16_t type)
{
    const struct nlattr *a;

    if (of == NULL)
        return NULL;
    mnl_attr_for_each_nested(a, of)
    {
        if (mnl_attr_get_type(a) == type)
            return a;
    }
    return NULL;
}

/* A list that is sent again shows entries that are deleted already, or are deleted now. */
static int see(void *arg, const struct nlmsghdr *h)
{
    const struct nlattr *a, *from, *tuple = NULL, *zone = NULL;
    uint32_t range;
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *end = begin(room, IPCTNL_MSG_CT_DELETE, 0);
    struct walk *w = arg;

    if (h == NULL)
        return 0;
    mnl_attr_for_each(a, h, sizeof(struct nfgenmsg))
    {
        if (mnl_attr_get_type(a) == CTA_TUPLE_ORIG)
            tuple = a;
        if (mnl_attr_get_type(a) == CTA_ZONE)
            zone = a;
    }
    from = part(part(tuple, CTA_TUPLE_IP), CTA_IP_V4_SRC);
    range = from != NULL ? ntohl(mnl_attr_get_u32(from)) - w->c->first : NETWORK_RANGES;
    if (range >= NETWORK_RANGES || !w->c->walked[range])
        return 0;
    mnl_attr_put(end, CTA_TUPLE_ORIG | NLA_F_NESTED, mnl_attr_get_payload_len(tuple),
                 mnl_attr_get_payload(tuple));
    if (zone != NULL)
        mnl_attr_put(end, CTA_ZONE, mnl_attr_get_payload_len(zone), mnl_attr_get_payload(zone));
    return netlink_talk(w->one, end, NULL, NULL) < 0 && errno != ENOENT ? -1 : 0;
}

static void walk(struct job *j)
{
    struct conntrack *c = CONTAINER_OF(j, struct conntrack, job);
    struct walk w = {.c = c};
    _Alignas(16) char room[MESSAGE_MAX];
    struct err e;

    c->failed = true;
    if (netlink_open(&w.all, NETLINK_NETFILTER, &e) < 0 ||
        netlink_open(&w.one, NETLINK_NETFILTER, &e) < 0)
        log_warn("forget the connections of deleted sandboxes: %s", e.msg);
    else if (netlink_talk(w.all, begin(room, IPCTNL_MSG_CT_GET, NLM_F_DUMP), see, &w) < 0)
        log_warn("forget the connections of deleted sandboxes: %s", strerror(errno));
    else
        c->failed = false;
    netlink_close(w.all);
    netlink_close(w.one);
}

/* ---- on the loop ---- */

static void walk_soon(struct conntrack *c);

static struct keeper *keeper_of(struct conntrack *c)
{
    return CONTAINER_OF(c, struct keeper, network.conntrack);
}

static void walked(struct job *j)
{
    struct conntrack *c = CONTAINER_OF(j, struct conntrack, job);

    /* After a failed walk the connections would belong to the next sandbox: walk again. */
    c->fails = c->failed ? c->fails + 1 : 0;
    if (c->fails > 0 && c->fails < FAILS_MAX)
        for (size_t i = 0; i < NETWORK_RANGES; i++)
            c->waiting[i] |= c->walked[i];
    else
        c->ended = c->begun;
    c->walking = false;
    if (memchr(c->waiting, true, sizeof(c->waiting)) != NULL)
        walk_soon(c);
}

static void begin_walk(struct loop_timer *t)
{
    struct conntrack *c = CONTAINER_OF(t, struct conntrack, again);

    loop_timer_stop(keeper_of(c)->loop, t);
    c->first = keeper_of(c)->network.subnet + 1;
    memcpy(c->walked, c->waiting, sizeof(c->walked));
    memset(c->waiting, 0, sizeof(c->waiting));
    c->job.lane = JOB_DISK;
    c->begun++;
    c->walking = true;
    c->begun_ms = clock_mono_ms();
    job_start(keeper_of(c)->loop, &c->job, walk, walked);
}

static void walk_soon(struct conntrack *c)
{
    uint64_t due = c->begun_ms + CONNTRACK_EVERY_MS, now = clock_mono_ms();

    if (c->begun == 0 || now >= due ||
        loop_timer_set(keeper_of(c)->loop, &c->again, due - now, begin_walk) < 0)
        begin_walk(&c->again);
}

int conntrack_forget(struct sandbox *sb)
{
    struct conntrack *c = &sb->k->network.conntrack;

    if (sb->walk == 0) {
        sb->walk = c->begun + 1;
        c->waiting[sb->rec.range] = true;
        if (!c->walking && c->again.slot == 0)
            walk_soon(c);
    }
    if (sb->walk > c->ended)
        return 1;
    sb->walk = 0;
    return 0;
}
