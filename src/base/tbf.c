/* tbf.c - see tbf.h. */
#include "base/tbf.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define BURST_LEAST (16u << 10) /* ten packets */
#define BURST_MOST (4u << 20)
#define QUEUE_LEAST (64u << 10)
#define QUEUE_MOST (8u << 20)

static uint32_t between(uint64_t n, uint32_t least, uint32_t most)
{
    return n < least ? least : n > most ? most : (uint32_t)n;
}

uint32_t tbf_burst(uint64_t rate)
{
    return between(rate / 20, BURST_LEAST, BURST_MOST); /* 50 ms */
}

uint32_t tbf_queue(uint64_t rate)
{
    return between(rate / 10, QUEUE_LEAST, QUEUE_MOST); /* 100 ms */
}

static struct nlattr *put(struct nlmsghdr *h, uint16_t type, const void *p, size_t n)
{
    struct nlattr *a = (struct nlattr *)(void *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

    memset(a, 0, NLA_HDRLEN + NLA_ALIGN(n));
    a->nla_type = type;
    a->nla_len = (uint16_t)(NLA_HDRLEN + n);
    if (n > 0)
        memcpy((char *)a + NLA_HDRLEN, p, n);
    h->nlmsg_len = (uint32_t)(NLMSG_ALIGN(h->nlmsg_len) + NLA_ALIGN(a->nla_len));
    return a;
}

/* With a link layer given the kernel needs no table of times from us. */
struct nlmsghdr *tbf_message(void *room, unsigned ifindex, uint64_t rate)
{
    struct tc_tbf_qopt q = {.rate = {.linklayer = TC_LINKLAYER_ETHERNET,
                                     .rate = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate},
                            .limit = tbf_queue(rate)};
    uint32_t burst = tbf_burst(rate);
    struct nlmsghdr *h = room;
    struct tcmsg *t = NLMSG_DATA(h);
    struct nlattr *options;

    memset(room, 0, NLMSG_LENGTH(sizeof(*t)));
    h->nlmsg_len = NLMSG_LENGTH(sizeof(*t));
    h->nlmsg_type = RTM_NEWQDISC;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE;
    t->tcm_ifindex = (int)ifindex;
    t->tcm_parent = TC_H_ROOT;
    put(h, TCA_KIND, "tbf", sizeof("tbf"));
    options = put(h, TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
    put(h, TCA_TBF_PARMS, &q, sizeof(q));
    put(h, TCA_TBF_BURST, &burst, sizeof(burst));
    if (rate > UINT32_MAX)
        put(h, TCA_TBF_RATE64, &rate, sizeof(rate));
    options->nla_len = (uint16_t)((char *)h + h->nlmsg_len - (char *)options);
    return h;
}
