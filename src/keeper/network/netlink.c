/* netlink.c - see netlink.h. */
#include "keeper/network/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tbf.h"

#define MESSAGE_MAX 1024u /* bytes of a request */
#define ROOM_FIRST (32u << 10)
#define ROOM_MAX (1u << 20)
#define TRIES 4u /* for a list that changes while it is sent */
#define LATE_S 5 /* the kernel answers before a send returns: later nothing will come */

/* Locally administered; the same at both ends of every veth. */
static const uint8_t hardware[6] = {0x02, 'c', 'o', 'v', 'e', 1};

struct netlink {
    int bus;
    struct mnl_socket *s; /* NULL: the last one was closed and none could be opened */
    uint32_t seq;
    char *room;
    size_t size;
};

/* ---- a request and its answer ---- */

static int open_socket(struct netlink *nl)
{
    const struct timeval late = {.tv_sec = LATE_S};

    if (nl->s != NULL)
        return 0;
    nl->s = mnl_socket_open2(nl->bus, SOCK_CLOEXEC);
    if (nl->s == NULL)
        return -1;
    if (mnl_socket_bind(nl->s, 0, MNL_SOCKET_AUTOPID) == 0 &&
        setsockopt(mnl_socket_get_fd(nl->s), SOL_SOCKET, SO_RCVTIMEO, &late, sizeof(late)) == 0)
        return 0;
    mnl_socket_close(take_ptr(&nl->s));
    return -1;
}

/* The socket has the rest of an answer in it, and perhaps an unfinished list: the kernel would
 * refuse the next one (EBUSY). */
static int fail_and_replace(struct netlink *nl, int error)
{
    mnl_socket_close(take_ptr(&nl->s));
    open_socket(nl); /* or in the next call */
    errno = error;
    return -1;
}

int netlink_open(struct netlink **ret, int bus, struct err *e)
{
    struct netlink *nl = calloc(1, sizeof(*nl));

    if (nl != NULL)
        nl->room = malloc(ROOM_FIRST);
    if (nl == NULL || nl->room == NULL) {
        netlink_close(nl);
        return err_set(e, ERR_INTERNAL, "out of memory");
    }
    nl->bus = bus;
    nl->size = ROOM_FIRST;
    if (open_socket(nl) < 0) {
        err_sys(e, "open a netlink socket");
        netlink_close(nl);
        return -1;
    }
    *ret = nl;
    return 0;
}

void netlink_close(struct netlink *nl)
{
    if (nl == NULL)
        return;
    if (nl->s != NULL)
        mnl_socket_close(nl->s);
    free(nl->room);
    free(nl);
}

/* The errno of the message that ends an answer: NLMSG_ERROR always has one, NLMSG_DONE of older
 * kernels has none. */
static int verdict(const struct nlmsghdr *h)
{
    int32_t error = 0;

    if (mnl_nlmsg_get_payload_len(h) >= sizeof(error))
        memcpy(&error, mnl_nlmsg_get_payload(h), sizeof(error));
    else if (h->nlmsg_type == NLMSG_ERROR)
        return EBADMSG;
    return error < 0 ? -error : error;
}

static void take_one(struct netlink_answer *a, const struct nlmsghdr *h)
{
    int error = 0;

    if ((h->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
        a->interrupted = true;
    if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE) {
        a->over = true;
        error = verdict(h);
    } else if (h->nlmsg_type == NLMSG_OVERRUN) {
        error = ENOBUFS;
    } else if (h->nlmsg_type >= NLMSG_MIN_TYPE && a->each != NULL && a->error == 0 &&
               a->each(a->arg, h) < 0) {
        error = errno;
    }
    if (a->error == 0)
        a->error = error;
}

void netlink_take(struct netlink_answer *a, const void *data, size_t len)
{
    const struct nlmsghdr *h = data;
    int left = (int)len;

    for (; !a->over && mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left))
        if (h->nlmsg_seq == a->seq && h->nlmsg_pid == a->port)
            take_one(a, h);
    if (!a->over && left > 0 && a->error == 0)
        a->error = EBADMSG; /* half a message */
}

/* Bytes of the next datagram from the kernel; -1 sets errno, EMSGSIZE if it was too large. Messages
 * of other processes are dropped. */
static ssize_t receive(struct netlink *nl)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        struct iovec iov = {nl->room, nl->size};
        struct msghdr m = {
            .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1};
        ssize_t n = recvmsg(mnl_socket_get_fd(nl->s), &m, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            errno = ETIMEDOUT;
        if (n < 0)
            return -1;
        if (from.nl_pid != 0)
            continue;
        if ((m.msg_flags & MSG_TRUNC) == 0)
            return n;
        errno = EMSGSIZE;
        return -1;
    }
}

/* One try. */
static int ask_once(struct netlink *nl, struct nlmsghdr *h, netlink_each *each, void *arg)
{
    struct netlink_answer a = {.each = each, .arg = arg};
    ssize_t n;

    if (open_socket(nl) < 0)
        return -1;
    a.port = mnl_socket_get_portid(nl->s);
    a.seq = h->nlmsg_seq = ++nl->seq;
    do
        n = mnl_socket_sendto(nl->s, h, h->nlmsg_len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_and_replace(nl, errno);
    while (!a.over) {
        n = receive(nl);
        if (n < 0)
            return fail_and_replace(nl, errno);
        netlink_take(&a, nl->room, (size_t)n);
    }
    errno = a.error != 0 ? a.error : EINTR;
    return a.error != 0 || a.interrupted ? -1 : 0;
}

static int more_room(struct netlink *nl)
{
    char *more = nl->size < ROOM_MAX ? realloc(nl->room, nl->size * 2) : NULL;

    if (more == NULL)
        return -1;
    nl->room = more;
    nl->size *= 2;
    return 0;
}

/* Only lists are asked for again: asking changes nothing, and only lists are interrupted or large.
 */
int netlink_talk(struct netlink *nl, struct nlmsghdr *h, netlink_each *each, void *arg)
{
    bool list = (h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    unsigned tries = 1;

    h->nlmsg_flags |= list ? NLM_F_REQUEST : NLM_F_REQUEST | NLM_F_ACK;
    while (ask_once(nl, h, each, arg) < 0) {
        int error = errno;

        if (!list || (error == EMSGSIZE && more_room(nl) < 0) ||
            (error != EMSGSIZE && (error != EINTR || ++tries > TRIES))) {
            errno = error;
            return -1;
        }
        if (each != NULL)
            each(arg, NULL);
    }
    return 0;
}

static struct nlmsghdr *begin(char room[MESSAGE_MAX], uint16_t type, uint16_t flags)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(room);

    h->nlmsg_type = type;
    h->nlmsg_flags = flags;
    return h;
}

static int ask(struct netlink *nl, struct nlmsghdr *h)
{
    return netlink_talk(nl, h, NULL, NULL);
}

/* ---- links and routes ---- */

/* Attributes of either end. A single queue: the default is one per core. */
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

int netlink_veth(struct netlink *nl, const char *name, pid_t pid, uint32_t mtu, struct err *e)
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

int netlink_set_up(struct netlink *nl, const char *name, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_NEWLINK, 0);
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

    m->ifi_flags = m->ifi_change = IFF_UP;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    return ask(nl, h) < 0 ? err_sys(e, "bring up %s", name) : 0;
}

int netlink_limit(struct netlink *nl, const char *name, uint64_t rate, struct err *e)
{
    _Alignas(16) char room[TBF_MESSAGE_MAX];
    struct nlmsghdr *h = tbf_message(room, if_nametoindex(name), rate);

    if (ask(nl, h) == 0)
        return 0;
    if (errno == ENOENT || errno == EOPNOTSUPP)
        return err_set(e, ERR_UNSUPPORTED,
                       "bandwidth: this host's kernel has no token bucket (module sch_tbf)");
    return err_sys(e, "limit what %s sends", name);
}

int netlink_delete(struct netlink *nl, const char *name, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_DELLINK, 0);

    mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    return ask(nl, h) < 0 && errno != ENODEV ? err_sys(e, "delete %s", name) : 0;
}

int netlink_route(struct netlink *nl, uint32_t addr, const char *name, struct err *e)
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
    return ask(nl, h) < 0 ? err_sys(e, "add the route to %s", name) : 0;
}

/* ---- lists ---- */

struct listing {
    void (*route)(void *arg, const struct netlink_route *r);
    void (*count)(void *arg, const struct netlink_count *c);
    void *arg;
};

static int on_route(void *arg, const struct nlmsghdr *h)
{
    const struct rtmsg *m = h == NULL ? NULL : mnl_nlmsg_get_payload(h);
    struct listing *l = arg;
    struct netlink_route r = {0};
    const struct nlattr *a;

    if (h == NULL) {
        l->route(l->arg, NULL);
        return 0;
    }
    if (m->rtm_table != RT_TABLE_MAIN || m->rtm_type != RTN_UNICAST)
        return 0;
    r.to.prefix = m->rtm_dst_len;
    mnl_attr_for_each(a, h, sizeof(*m))
    {
        if (mnl_attr_get_type(a) == RTA_DST)
            r.to.addr = ntohl(mnl_attr_get_u32(a));
        if (mnl_attr_get_type(a) == RTA_OIF)
            if_indextoname(mnl_attr_get_u32(a), r.dev);
    }
    l->route(l->arg, &r);
    return 0;
}

int netlink_routes(struct netlink *nl, void (*each)(void *arg, const struct netlink_route *r),
                   void *arg, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETROUTE, NLM_F_DUMP);
    struct rtmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    struct listing l = {.route = each, .arg = arg};

    m->rtm_family = AF_INET;
    if (netlink_talk(nl, h, on_route, &l) == 0)
        return 0;
    if (errno != EINTR)
        return err_sys(e, "read the host's routes");
    log_warn("network: the host's routes changed during every read; one may have been missed");
    return 0;
}

static int on_address(void *arg, const struct nlmsghdr *h)
{
    const struct ifaddrmsg *m = h == NULL ? NULL : mnl_nlmsg_get_payload(h);
    struct listing *l = arg;
    struct netlink_route r = {0};
    const struct nlattr *a;

    if (h == NULL) {
        l->route(l->arg, NULL);
        return 0;
    }
    r.to.prefix = m->ifa_prefixlen;
    if_indextoname(m->ifa_index, r.dev);
    /* of a point-to-point link it is the other end's: that is what is reached there */
    mnl_attr_for_each(a, h, sizeof(*m))
    {
        if (mnl_attr_get_type(a) == IFA_ADDRESS)
            r.to.addr = ntohl(mnl_attr_get_u32(a)) & cidr_mask(r.to.prefix);
    }
    l->route(l->arg, &r);
    return 0;
}

int netlink_addresses(struct netlink *nl, void (*each)(void *arg, const struct netlink_route *r),
                      void *arg, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETADDR, NLM_F_DUMP);
    struct ifaddrmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    struct listing l = {.route = each, .arg = arg};

    m->ifa_family = AF_INET;
    if (netlink_talk(nl, h, on_address, &l) == 0)
        return 0;
    if (errno != EINTR)
        return err_sys(e, "read the host's addresses");
    log_warn("network: the host's addresses changed during every read; one may have been missed");
    return 0;
}

static bool read_link(const struct nlmsghdr *h, struct netlink_count *c)
{
    const struct nlattr *a;

    mnl_attr_for_each(a, h, sizeof(struct ifinfomsg))
    {
        struct rtnl_link_stats64 s;

        if (mnl_attr_get_type(a) == IFLA_IFNAME)
            str_fmt(c->name, sizeof(c->name), "%.15s", mnl_attr_get_str(a));
        if (mnl_attr_get_type(a) != IFLA_STATS64 ||
            mnl_attr_get_payload_len(a) < 4 * sizeof(uint64_t))
            continue;
        memcpy(&s, mnl_attr_get_payload(a), 4 * sizeof(uint64_t));
        c->rx_packets = s.rx_packets;
        c->tx_packets = s.tx_packets;
        c->rx_bytes = s.rx_bytes;
        c->tx_bytes = s.tx_bytes;
    }
    return c->name[0] != '\0';
}

static int on_link(void *arg, const struct nlmsghdr *h)
{
    struct netlink_count c = {0};
    struct listing *l = arg;

    if (h == NULL)
        l->count(l->arg, NULL);
    else if (read_link(h, &c))
        l->count(l->arg, &c);
    return 0;
}

int netlink_counts(struct netlink *nl, void (*each)(void *arg, const struct netlink_count *c),
                   void *arg, struct err *e)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETLINK, NLM_F_DUMP);
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    struct listing l = {.count = each, .arg = arg};

    m->ifi_family = AF_UNSPEC;
    return netlink_talk(nl, h, on_link, &l) < 0 ? err_sys(e, "read the counters of links") : 0;
}

static int on_one(void *arg, const struct nlmsghdr *h)
{
    read_link(h, arg);
    return 0;
}

int netlink_count(struct netlink *nl, const char *name, struct netlink_count *ret)
{
    _Alignas(16) char room[MESSAGE_MAX];
    struct nlmsghdr *h = begin(room, RTM_GETLINK, 0);
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

    *ret = (struct netlink_count){0};
    m->ifi_family = AF_UNSPEC;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    return netlink_talk(nl, h, on_one, ret);
}
