#include "unit.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/str.h"
#include "keeper/network/netlink.h"

#define SEQ 7u
#define PORT 4711u

/* A datagram that the kernel could send. */
struct datagram {
    _Alignas(16) char bytes[1024];
    size_t len;
};

static void add(struct datagram *d, uint16_t type, uint16_t flags, uint32_t seq, uint32_t port,
                const void *payload, size_t len)
{
    struct nlmsghdr h = {(uint32_t)(sizeof(h) + len), type, flags, seq, port};

    memcpy(d->bytes + d->len, &h, sizeof(h));
    if (len > 0)
        memcpy(d->bytes + d->len + sizeof(h), payload, len);
    d->len += (sizeof(h) + len + 3u) & ~3u;
}

static void add_link(struct datagram *d, uint16_t flags, uint32_t seq)
{
    static const char body[16];

    add(d, RTM_NEWLINK, flags, seq, PORT, body, sizeof(body));
}

static void add_end(struct datagram *d, uint16_t type, uint32_t seq, int32_t error)
{
    add(d, type, 0, seq, PORT, &error, sizeof(error));
}

static int see(void *arg, const struct nlmsghdr *h)
{
    CHECK(h != NULL);
    ++*(int *)arg;
    return 0;
}

static int refuse(void *arg, const struct nlmsghdr *h)
{
    (void)h;
    ++*(int *)arg;
    errno = ENOMEM;
    return -1;
}

static struct netlink_answer expect(netlink_each *each, int *seen)
{
    *seen = 0;
    return (struct netlink_answer){.seq = SEQ, .port = PORT, .each = each, .arg = seen};
}

static void take(struct netlink_answer *a, const struct datagram *d)
{
    netlink_take(a, d->bytes, d->len);
}

TEST(a_list_ends_with_its_last_message)
{
    struct datagram first = {0}, last = {0};
    int seen;
    struct netlink_answer a = expect(see, &seen);

    add_link(&first, NLM_F_MULTI, SEQ);
    add_link(&first, NLM_F_MULTI, SEQ);
    take(&a, &first);
    CHECK(!a.over);
    add_link(&last, NLM_F_MULTI, SEQ);
    add_end(&last, NLMSG_DONE, SEQ, 0);
    add_link(&last, NLM_F_MULTI, SEQ); /* nothing follows the end */
    take(&a, &last);
    CHECK(a.over);
    CHECK_INT(a.error, 0);
    CHECK(!a.interrupted);
    CHECK_INT(seen, 3);
}

TEST(the_rest_of_another_answer_is_skipped)
{
    struct datagram d = {0};
    int seen;
    struct netlink_answer a = expect(see, &seen);

    add_link(&d, NLM_F_MULTI | NLM_F_DUMP_INTR, SEQ - 1);
    add_end(&d, NLMSG_DONE, SEQ - 1, 0);
    add_end(&d, NLMSG_ERROR, SEQ - 1, -EEXIST);
    add(&d, RTM_NEWLINK, 0, 0, 0, "", 0);          /* an unsolicited event */
    add(&d, RTM_NEWLINK, 0, SEQ, PORT + 1, "", 0); /* for another socket */
    take(&a, &d);
    CHECK(!a.over);
    CHECK_INT(a.error, 0);
    CHECK(!a.interrupted);
    CHECK_INT(seen, 0);
    d.len = 0;
    add_end(&d, NLMSG_ERROR, SEQ, 0);
    take(&a, &d);
    CHECK(a.over);
    CHECK_INT(a.error, 0);
}

TEST(an_error_is_reported_with_its_errno)
{
    struct datagram d = {0};
    int seen;
    struct netlink_answer a = expect(NULL, &seen);

    add_end(&d, NLMSG_ERROR, SEQ, -EEXIST);
    take(&a, &d);
    CHECK(a.over);
    CHECK_INT(a.error, EEXIST);
}

TEST(an_error_at_the_end_fails_the_list)
{
    struct datagram d = {0};
    int seen;
    struct netlink_answer a = expect(see, &seen);

    add_link(&d, NLM_F_MULTI, SEQ);
    add_end(&d, NLMSG_DONE, SEQ, -EMSGSIZE);
    take(&a, &d);
    CHECK(a.over);
    CHECK_INT(a.error, EMSGSIZE);
}

TEST(an_interrupted_list_is_read_to_its_end)
{
    struct datagram d = {0};
    int seen;
    struct netlink_answer a = expect(see, &seen);

    add_link(&d, NLM_F_MULTI | NLM_F_DUMP_INTR, SEQ);
    add_link(&d, NLM_F_MULTI, SEQ);
    take(&a, &d);
    CHECK(a.interrupted);
    CHECK(!a.over);
    CHECK_INT(seen, 2);
    d.len = 0;
    add_end(&d, NLMSG_DONE, SEQ, 0);
    take(&a, &d);
    CHECK(a.over);
    CHECK_INT(a.error, 0);
}

TEST(a_callback_that_fails_is_not_called_again_and_the_end_is_still_read)
{
    struct datagram d = {0};
    int seen;
    struct netlink_answer a = expect(refuse, &seen);

    add_link(&d, NLM_F_MULTI, SEQ);
    add_link(&d, NLM_F_MULTI, SEQ);
    take(&a, &d);
    CHECK(!a.over);
    CHECK_INT(seen, 1);
    d.len = 0;
    add_end(&d, NLMSG_DONE, SEQ, 0);
    take(&a, &d);
    CHECK(a.over);
    CHECK_INT(a.error, ENOMEM);
}

TEST(incomplete_and_lost_messages_are_errors)
{
    struct datagram d = {0};
    int seen;
    struct netlink_answer a = expect(see, &seen);

    add_link(&d, NLM_F_MULTI, SEQ);
    d.len -= 4;
    take(&a, &d);
    CHECK_INT(a.error, EBADMSG);
    CHECK_INT(seen, 0);
    a = expect(see, &seen);
    d.len = 0;
    add(&d, NLMSG_OVERRUN, 0, SEQ, PORT, "", 0);
    add_end(&d, NLMSG_DONE, SEQ, 0);
    take(&a, &d);
    CHECK_INT(a.error, ENOBUFS);
    a = expect(see, &seen);
    d.len = 0;
    add(&d, NLMSG_ERROR, 0, SEQ, PORT, "", 0); /* without a number in it */
    take(&a, &d);
    CHECK(a.over);
    CHECK_INT(a.error, EBADMSG);
}

/* Against the kernel, which lets anybody look at links. */
TEST(a_failed_call_does_not_affect_the_next)
{
    struct netlink *nl = NULL;
    struct netlink_count c;
    struct err e;

    CHECK_INT(netlink_open(&nl, NETLINK_ROUTE, &e), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(netlink_count(nl, "no-such-link", &c), -1);
        CHECK_INT(errno, ENODEV);
        CHECK_INT(netlink_count(nl, "lo", &c), 0);
        CHECK_STR(c.name, "lo");
    }
    netlink_close(nl);
}
