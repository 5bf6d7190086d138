/* local.c - see local.h. */
#include "keeper/network/local.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/log.h"
#include "keeper/network/firewall.h"
#include "keeper/network/netlink.h"

#define NEWS_MAX (32u << 10)

struct view {
    struct cidr nets[NETWORK_LOCAL_MAX];
    size_t n;
    bool full;
};

/* Networks that are there already are left out: a host with many addresses has few networks. */
static void see(void *arg, const struct netlink_route *r)
{
    struct view *v = arg;

    if (r == NULL) {
        *v = (struct view){0};
        return;
    }
    for (size_t i = 0; i < v->n; i++)
        if (v->nets[i].prefix <= r->to.prefix && cidr_overlaps(&v->nets[i], &r->to))
            return;
    if (r->to.prefix == 0)
        return; /* everything is no network of a link */
    v->full |= v->n == NETWORK_LOCAL_MAX;
    if (v->n < NETWORK_LOCAL_MAX)
        v->nets[v->n++] = r->to;
}

int local_look(struct keeper *k, struct err *e)
{
    struct network *n = &k->network;
    static struct view v; /* large */

    v = (struct view){0};
    if (netlink_addresses(n->nl, see, &v, e) < 0)
        return -1;
    if (v.full)
        return err_set(e, ERR_UNSUPPORTED,
                       "the host has addresses in more than %u networks, which sandboxes must not "
                       "reach and the firewall has no room for",
                       NETWORK_LOCAL_MAX);
    memcpy(n->local, v.nets, sizeof(v.nets));
    n->nlocal = v.n;
    return 0;
}

/* Lost reports (ENOBUFS) may have been about any address. */
static void news(struct loop_io *io, uint32_t events)
{
    struct keeper *k = CONTAINER_OF(io, struct keeper, network.local_io);
    static _Alignas(16) char room[NEWS_MAX];
    struct err e;

    (void)events;
    while (mnl_socket_recvfrom(k->network.local_watch, room, sizeof(room)) >= 0 ||
           errno == ENOBUFS || errno == ENOSPC)
        ;
    if (local_look(k, &e) < 0 || firewall_write_local(k, &e) < 0)
        log_error("network: the host's addresses changed, and sandboxes may reach its new "
                  "networks: %s",
                  e.msg);
}

int local_watch(struct keeper *k, struct err *e)
{
    struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (s == NULL)
        return err_sys(e, "open a netlink socket");
    k->network.local_watch = s;
    if (mnl_socket_bind(s, RTMGRP_IPV4_IFADDR, MNL_SOCKET_AUTOPID) < 0)
        return err_sys(e, "subscribe to changes of the host's addresses");
    return loop_io_start(k->loop, &k->network.local_io, mnl_socket_get_fd(s), EPOLLIN, news, e);
}

void local_unwatch(struct keeper *k)
{
    loop_io_stop(k->loop, &k->network.local_io);
    if (k->network.local_watch != NULL)
        mnl_socket_close(take_ptr(&k->network.local_watch));
}
