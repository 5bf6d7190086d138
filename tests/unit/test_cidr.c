#include "unit.h"

#include "base/cidr.h"

/* What is read is written the same way again. */
static void same(const char *text)
{
    struct cidr c;
    char out[CIDR_TEXT_MAX];

    CHECK_INT(cidr_parse(text, &c), 0);
    CHECK(cidr_is_valid(&c));
    cidr_format(&c, out);
    CHECK_STR(out, text);
}

TEST(networks_and_ports_are_read_and_written)
{
    same("192.0.2.7");
    same("0.0.0.0/0");
    same("10.0.0.0/8:443");
    same("255.255.255.255:1-65535");
    same("192.0.2.128/25:80-443");
}

TEST(the_parts_are_where_they_belong)
{
    struct cidr c;

    CHECK_INT(cidr_parse("10.1.2.0/24:80-90", &c), 0);
    CHECK_INT(c.addr, 0x0a010200);
    CHECK_INT(c.prefix, 24);
    CHECK_INT(c.first, 80);
    CHECK_INT(c.last, 90);
    CHECK_INT(cidr_parse("10.1.2.3/32", &c), 0);
    CHECK_INT(c.first, 0);
}

TEST(whatever_is_not_exactly_that_is_refused)
{
    static const char *const bad[] = {
        "",           "1.2.3",          "1.2.3.4.5",  "1.2.3.256",     "01.2.3.4",    "1.2.3.4/",
        "1.2.3.4/33", "1.2.3.4/024",    "1.2.3.4/24", "1.2.3.4:",      "1.2.3.4:0",   "1.2.3.4:2-1",
        "1.2.3.4:1-", "1.2.3.4:65536",  " 1.2.3.4",   "1.2.3.4 ",      "1.2.3.4\n",   "+1.2.3.4",
        "1.2.3.4:-1", "1.2.3.4;drop",   "::1",        "1.2.3.4:80:81", "a.b.c.d",     "1..2.3",
        "0x1.2.3.4",  "4294967296.0.0", "1.2.3.4/0",  "99999999999.1", "1.2.3.4:80/8"};
    struct cidr c;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (cidr_parse(bad[i], &c) == 0)
            fail_msg("'%s' was taken", bad[i]);
}

TEST(networks_overlap_when_one_holds_the_other)
{
    struct cidr a, b, c, all;

    CHECK_INT(cidr_parse("10.200.0.0/16", &a), 0);
    CHECK_INT(cidr_parse("10.200.7.0/24", &b), 0);
    CHECK_INT(cidr_parse("10.201.0.0/16", &c), 0);
    CHECK_INT(cidr_parse("0.0.0.0/0", &all), 0);
    CHECK(cidr_overlaps(&a, &b) && cidr_overlaps(&b, &a));
    CHECK(!cidr_overlaps(&a, &c) && !cidr_overlaps(&b, &c));
    CHECK(cidr_overlaps(&all, &c));
}
