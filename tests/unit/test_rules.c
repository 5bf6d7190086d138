#include "unit.h"

#include "wire/rules.h"

static struct wire_bytes of(const struct buf *b)
{
    return (struct wire_bytes){buf_data(b), (uint32_t)b->len};
}

TEST(rules_come_back_as_they_were_added)
{
    autobuf struct buf b = BUF_INIT(WIRE_RULES_BYTES);
    struct wire_rule in = {.to = {.addr = 0x0a010200, .first = 80, .last = 90, .prefix = 24}}, out;
    struct wire_bytes list;
    struct err e;

    CHECK_INT(rules_add(&b, &in), 0);
    in.deny = true;
    CHECK_INT(rules_add(&b, &in), 0);
    list = of(&b);
    CHECK_INT(rules_check(&list, &e), 0);
    CHECK_INT(rules_count(&list), 2);
    out = rules_get(&list, 1);
    CHECK(out.deny && !rules_get(&list, 0).deny);
    CHECK_INT(out.to.addr, in.to.addr);
    CHECK_INT(out.to.last, 90);
}

TEST(an_empty_list_is_one)
{
    struct wire_bytes none = {0};
    struct err e;

    CHECK_INT(rules_check(&none, &e), 0);
    CHECK_INT(rules_count(&none), 0);
}

/* As an attacker who has taken over the front might send it. */
static void refused(const struct cidr *to, unsigned char deny, unsigned char zero)
{
    autobuf struct buf b = BUF_INIT(WIRE_RULES_BYTES);
    struct wire_bytes list;
    struct err e;

    rules_add(&b, &(struct wire_rule){.to = *to});
    buf_data(&b)[9] = (char)deny;
    buf_data(&b)[10] = (char)zero;
    list = of(&b);
    CHECK_INT(rules_check(&list, &e), -1);
    CHECK_INT(e.kind, ERR_INVALID);
}

TEST(rules_with_impossible_numbers_are_refused)
{
    static const struct cidr good = {.prefix = 8};

    refused(&(struct cidr){.prefix = 33}, 0, 0);
    refused(&(struct cidr){.addr = 1, .prefix = 24}, 0, 0);
    refused(&(struct cidr){.first = 9, .last = 8, .prefix = 0}, 0, 0);
    refused(&(struct cidr){.first = 0, .last = 8, .prefix = 0}, 0, 0);
    refused(&good, 2, 0);
    refused(&good, 0, 1);
}

TEST(a_list_has_a_bound_and_whole_rules)
{
    autobuf struct buf b = BUF_INIT(WIRE_RULES_BYTES);
    struct wire_rule r = {.to = {.prefix = 0}};
    struct wire_bytes list;
    struct err e;

    for (unsigned i = 0; i < WIRE_RULES_MAX; i++)
        CHECK_INT(rules_add(&b, &r), 0);
    CHECK_INT(rules_add(&b, &r), -1);
    list = of(&b);
    list.len = WIRE_RULES_BYTES;
    CHECK_INT(rules_check(&list, &e), 0);
    list.len = WIRE_RULES_BYTES - 1;
    CHECK_INT(rules_check(&list, &e), -1);
}
