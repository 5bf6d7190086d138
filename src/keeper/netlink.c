/* netlink.c - see netlink.h. */
#include "keeper/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>
#include <time.h>

#include "base/own.h"

#define MESSAGE_MAX 1024u /* of what we send */
#define ANSWER_MAX (32u << 10)

/* Locally administered; the same at both ends of every veth. */
static const uint8_t hardware[6] = {0x02, 'c', 'o', 'v', 'e', 1};

int netlink_open(struct mnl_socket **ret, struct err *e)
{
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

    if (nl == NULL)
        return err_sys(e, "netlink");
    if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
        mnl_socket_close(nl);
        return err_sys(e, "netlink");
    }
    *ret = nl;
    return 0;
}

void netlink_close(struct mnl_socket *nl)
{
    if (nl != NULL)
        mnl_socket_close(nl);
}

static struct nlmsghdr *begin(char room[MESSAGE_MAX], uint16_t type, uint16_t flags)
{
    static uint32_t seq;
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);

    h->nlmsg_type = type;
    h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    h->nlmsg_seq = ++seq;
    return h;
}

/* Sends, and calls `each` for every message of the answer until its end. */
static int talk(struct mnl_socket *nl, struct nlmsghdr *h, mnl_cb_t each, void *arg)
{
    static _Alignas(16) char room[ANSWER_MAX];
    uint32_t seq = h->nlmsg_seq;
    int r = 1;

    if (mnl_socket_sendto(nl, h, h->nlmsg_len) < 0)
        return -1;
    while (r > MNL_CB_STOP) {
        ssize_t n = mnl_socket_recvfrom(nl, room, sizeof(room));

        if (n < 0)
            return -1;
        r = mnl_cb_run(room, (size_t)n, seq, mnl_socket_get_portid(nl), each, arg);
    }
    return r;
}

static int ask(struct mnl_socket *nl, struct nlmsghdr *h)
{
    h->nlmsg_flags |= NLM_F_ACK;
    return talk(nl, h, NULL, NULL);
}

/* What is said of either end. A single queue: the default is one per core. */
static void put_end(struct nlmsghdr *h, const char *name, uint32_t mtu)
{
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    mnl_attr_put(h, IFLA_ADDRESS, sizeof(hardware), hardware);
    mnl_attr_put_u32(h, IFLA_MTU, mtu);
    mnl_attr_put_u32(h, IFLA_NUM_TX_QUEUES, 1);
    mnl_attr_put_u32(h, IFLA_NUM_RX_QUEUES, 1);
}

static void put_head(struct nlmsghdr *h)
{
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

    m->ifi_flags = m->ifi_change = IFF_NOARP;
}

int netlink_veth(struct mnl_socket *nl, const char *name, pid_t pid, uint32_t mtu, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    struct nlattr *info, *data, *peer;

    put_head(h);
    put_end(h, name, mtu);
    info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
    data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
    put_head(h);
    put_end(h, "eth0", mtu);
    mnl_attr_put_u32(h, IFLA_NET_NS_PID, (uint32_t)pid);
    mnl_attr_nest_end(h, peer);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    return ask(nl, h) < 0 ? err_sys(e, "make the veth %s", name) : 0;
}

int netlink_set_up(struct mnl_socket *nl, const char *name, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_NEWLINK, 0);
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

    m->ifi_flags = m->ifi_change = IFF_UP;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    return ask(nl, h) < 0 ? err_sys(e, "bring up %s", name) : 0;
}

int netlink_delete(struct mnl_socket *nl, const char *name, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_DELLINK, 0);

    mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    return ask(nl, h) < 0 && errno != ENODEV ? err_sys(e, "delete %s", name) : 0;
}

int netlink_route(struct mnl_socket *nl, uint32_t addr, const char *name, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    struct rtmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

    *m = (struct rtmsg){.rtm_family = AF_INET,
                        .rtm_dst_len = 32,
                        .rtm_table = RT_TABLE_MAIN,
                        .rtm_protocol = RTPROT_STATIC,
                        .rtm_scope = RT_SCOPE_LINK,
                        .rtm_type = RTN_UNICAST};
    mnl_attr_put_u32(h, RTA_DST, htonl(addr));
    mnl_attr_put_u32(h, RTA_OIF, if_nametoindex(name));
    return ask(nl, h) < 0 ? err_sys(e, "the route to %s", name) : 0;
}

/* ---- lists ---- */

struct listing {
    void (*route)(void *arg, const struct netlink_route *r);
    void (*count)(void *arg, const struct netlink_count *c);
    void *arg;
};

static int on_route(const struct nlmsghdr *h, void *arg)
{
    const struct rtmsg *m = mnl_nlmsg_get_payload(h);
    struct listing *l = arg;
    struct netlink_route r = {.to.prefix = m->rtm_dst_len};
    const struct nlattr *a;

    if (m->rtm_table != RT_TABLE_MAIN || m->rtm_type != RTN_UNICAST)
        return MNL_CB_OK;
    mnl_attr_for_each(a, h, sizeof(*m))
    {
        if (mnl_attr_get_type(a) == RTA_DST)
            r.to.addr = ntohl(mnl_attr_get_u32(a));
        if (mnl_attr_get_type(a) == RTA_OIF)
            if_indextoname(mnl_attr_get_u32(a), r.dev);
    }
    l->route(l->arg, &r);
    return MNL_CB_OK;
}

int netlink_routes(struct mnl_socket *nl, void (*each)(void *arg, const struct netlink_route *r),
                   void *arg, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETROUTE, NLM_F_DUMP);
    struct rtmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    struct listing l = {.route = each, .arg = arg};

    m->rtm_family = AF_INET;
    return talk(nl, h, on_route, &l) < 0 ? err_sys(e, "read the host's routes") : 0;
}

static int on_link(const struct nlmsghdr *h, void *arg)
{
    struct netlink_count c = {0};
    struct listing *l = arg;
    const struct nlattr *a;

    mnl_attr_for_each(a, h, sizeof(struct ifinfomsg))
    {
        struct rtnl_link_stats64 s;

        if (mnl_attr_get_type(a) == IFLA_IFNAME)
            c.name = mnl_attr_get_str(a);
        if (mnl_attr_get_type(a) != IFLA_STATS64 ||
            mnl_attr_get_payload_len(a) < 4 * sizeof(uint64_t))
            continue;
        memcpy(&s, mnl_attr_get_payload(a), 4 * sizeof(uint64_t));
        c.rx_packets = s.rx_packets;
        c.tx_packets = s.tx_packets;
        c.rx_bytes = s.rx_bytes;
        c.tx_bytes = s.tx_bytes;
    }
    if (c.name != NULL)
        l->count(l->arg, &c);
    return MNL_CB_OK;
}

int netlink_counts(struct mnl_socket *nl, void (*each)(void *arg, const struct netlink_count *c),
                   void *arg, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETLINK, NLM_F_DUMP);
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    struct listing l = {.count = each, .arg = arg};

    m->ifi_family = AF_UNSPEC;
    return talk(nl, h, on_link, &l) < 0 ? err_sys(e, "read the counters of links") : 0;
}

static void take_received(void *arg, const struct netlink_count *c)
{
    *(uint64_t *)arg = c->rx_packets;
}

int netlink_received(struct mnl_socket *nl, const char *name, uint64_t *ret)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETLINK, 0);
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    struct listing l = {.count = take_received, .arg = ret};

    m->ifi_family = AF_UNSPEC;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    h->nlmsg_flags |= NLM_F_ACK;
    return talk(nl, h, on_link, &l);
}
