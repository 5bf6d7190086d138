#include "unit.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "base/tbf.h"

/* The attribute of this type in [at, end). */
static const struct nlattr *find(const char *at, const char *end, uint16_t type)
{
    while (at < end) {
        const struct nlattr *a = (const void *)at;

        CHECK(a->nla_len >= NLA_HDRLEN && at + a->nla_len <= end);
        if ((a->nla_type & NLA_TYPE_MASK) == type)
            return a;
        at += NLA_ALIGN(a->nla_len);
    }
    return NULL;
}

static const void *value(const struct nlattr *a)
{
    CHECK(a != NULL);
    return (const char *)a + NLA_HDRLEN;
}

TEST(the_message_says_how_much_on_which_interface)
{
    static const uint64_t rates[] = {1, 1 << 20, UINT32_MAX, 1ull << 40};

    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        _Alignas(16) char room[TBF_MESSAGE_MAX];
        const struct nlmsghdr *h = tbf_message(room, 7, rates[i]);
        const struct tcmsg *t = NLMSG_DATA(h);
        const char *end = room + h->nlmsg_len;
        const struct nlattr *o, *rate64;
        const struct tc_tbf_qopt *q;

        CHECK(h->nlmsg_len <= sizeof(room));
        CHECK_INT(h->nlmsg_type, RTM_NEWQDISC);
        CHECK_INT(t->tcm_ifindex, 7);
        CHECK_INT(t->tcm_parent, TC_H_ROOT);
        CHECK_STR(value(find((const char *)(t + 1), end, TCA_KIND)), "tbf");
        o = find((const char *)(t + 1), end, TCA_OPTIONS);
        CHECK(o != NULL && (const char *)o + o->nla_len == end);
        q = value(find(value(o), end, TCA_TBF_PARMS));
        CHECK_INT(q->rate.rate, rates[i] > UINT32_MAX ? UINT32_MAX : rates[i]);
        CHECK_INT(q->limit, tbf_queue(rates[i]));
        rate64 = find(value(o), end, TCA_TBF_RATE64);
        CHECK((rate64 != NULL) == (rates[i] > UINT32_MAX));
        CHECK(rate64 == NULL || memcmp(value(rate64), &rates[i], 8) == 0);
    }
}

TEST(a_slow_bucket_takes_whole_packets_and_a_fast_one_is_bounded)
{
    CHECK(tbf_burst(1) > 10 * 1500);
    CHECK(tbf_queue(1) > tbf_burst(1));
    CHECK(tbf_burst(1ull << 40) <= 4u << 20);
    CHECK(tbf_queue(1ull << 40) <= 8u << 20);
}
