/* firewall_watch.c - writes our table again when another program removes it, and looks when another
 * firewall changes.
 *
 * `nft flush ruleset`, with which a reload of nftables.service begins, removes every table of the
 * host, ours too, while sandboxes run. The kernel reports each removed table; if ours was among
 * them it is written again with everything it had. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <nftables/libnftables.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/beside.h"
#include "keeper/network/firewall.h"

#define NEWS_MAX (32u << 10)

static bool is_there(struct keeper *k)
{
    char text[64];
    bool there;

    str_fmt(text, sizeof(text), "list chain inet cove_%s forward", k->tag);
    there = nft_run_cmd_from_buffer(k->network.nft, text) == 0;
    nft_ctx_get_output_buffer(k->network.nft); /* which empties it */
    nft_ctx_get_error_buffer(k->network.nft);
    return there;
}

bool firewall_restore(struct keeper *k)
{
    struct err e;

    if (is_there(k))
        return false;
    log_warn("the firewall table of Cove was removed; writing it again");
    if (firewall_write(k, &e) < 0)
        log_error("%s", e.msg);
    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);
            struct wire_bytes rules = {sb->rules.mem, sb->rules.len};

            if ((sb->rec.network & NETWORK_RULED) != 0 && rules.len > 0 &&
                firewall_rule(sb, &rules, &e) < 0)
                log_error("sandbox %s: %s", sb->rec.id, e.msg);
        }
    return true;
}

#define NEWS(type) (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_##type)

static bool has_chain_of_others(const struct nlmsghdr *h, uint16_t name)
{
    const struct nlattr *a;

    mnl_attr_for_each(a, h, sizeof(struct nfgenmsg))
    {
        if (mnl_attr_get_type(a) == name && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
            return beside_is_chain(mnl_attr_get_str(a));
    }
    return false;
}

/* What a report means for us. */
struct seen {
    bool table;  /* one was removed: ours? */
    bool others; /* another firewall's chain changed */
};

static void read_news(const char *p, int n, struct seen *ret)
{
    for (const struct nlmsghdr *h = (const void *)p; mnl_nlmsg_ok(h, n); h = mnl_nlmsg_next(h, &n))
        switch (h->nlmsg_type) {
        case NEWS(DELTABLE):
            ret->table = ret->others = true;
            break;
        case NEWS(NEWCHAIN):
        case NEWS(DELCHAIN):
            ret->others |= has_chain_of_others(h, NFTA_CHAIN_NAME);
            break;
        case NEWS(NEWRULE):
        case NEWS(DELRULE):
            ret->others |= has_chain_of_others(h, NFTA_RULE_CHAIN);
            break;
        }
}

/* Lost reports (ENOBUFS) may have been about our table. */
static void news(struct loop_io *io, uint32_t events)
{
    struct keeper *k = CONTAINER_OF(io, struct keeper, network.watch_io);
    static _Alignas(16) char room[NEWS_MAX];
    struct seen seen = {0};
    ssize_t n;

    (void)events;
    while ((n = mnl_socket_recvfrom(k->network.watch, room, sizeof(room))) >= 0 ||
           errno == ENOBUFS || errno == ENOSPC)
        if (n < 0)
            seen.table = seen.others = true;
        else
            read_news(room, (int)n, &seen);
    if (seen.table)
        firewall_restore(k);
    if (seen.others)
        beside_changed(k);
}

int firewall_watch(struct keeper *k, struct err *e)
{
    struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int group = NFNLGRP_NFTABLES;

    if (s == NULL)
        return err_sys(e, "open a netlink socket");
    k->network.watch = s;
    if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
        mnl_socket_setsockopt(s, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
        return err_sys(e, "subscribe to nftables events");
    return loop_io_start(k->loop, &k->network.watch_io, mnl_socket_get_fd(s), EPOLLIN, news, e);
}

void firewall_unwatch(struct keeper *k)
{
    loop_io_stop(k->loop, &k->network.watch_io);
    if (k->network.watch != NULL)
        mnl_socket_close(take_ptr(&k->network.watch));
}
