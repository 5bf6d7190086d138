/* cidr.c - see cidr.h. */
#include "base/cidr.h"

#include <string.h>

#include "base/str.h"

/* Digits up to `max`, no leading zero; moves *s past them. */
static int number(const char **s, uint32_t max, uint32_t *ret)
{
    const char *p = *s;
    uint32_t v = 0;

    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
        return -1;
    for (; *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint32_t)(*p - '0');
        if (v > max)
            return -1;
    }
    *s = p;
    *ret = v;
    return 0;
}

static int address(const char **s, uint32_t *ret)
{
    uint32_t addr = 0, byte;

    for (int i = 0; i < 4; i++) {
        if (i > 0 && *(*s)++ != '.')
            return -1;
        if (number(s, 255, &byte) < 0)
            return -1;
        addr = addr << 8 | byte;
    }
    *ret = addr;
    return 0;
}

static int ports(const char **s, struct cidr *c)
{
    uint32_t first, last;

    if (number(s, 65535, &first) < 0)
        return -1;
    last = first;
    if (**s == '-') {
        (*s)++;
        if (number(s, 65535, &last) < 0)
            return -1;
    }
    c->first = (uint16_t)first;
    c->last = (uint16_t)last;
    return first == 0 ? -1 : 0;
}

uint32_t cidr_mask(uint8_t prefix)
{
    return prefix == 0 ? 0 : ~(uint32_t)0 << (32 - prefix);
}

bool cidr_is_valid(const struct cidr *c)
{
    if (c->prefix > 32 || (c->addr & ~cidr_mask(c->prefix)) != 0)
        return false;
    return (c->first == 0 && c->last == 0) || (c->first > 0 && c->first <= c->last);
}

int cidr_parse(const char *s, struct cidr *ret)
{
    struct cidr c = {.prefix = 32};
    uint32_t prefix;

    if (address(&s, &c.addr) < 0)
        return -1;
    if (*s == '/') {
        s++;
        if (number(&s, 32, &prefix) < 0)
            return -1;
        c.prefix = (uint8_t)prefix;
    }
    if (*s == ':') {
        s++;
        if (ports(&s, &c) < 0)
            return -1;
    }
    if (*s != '\0' || !cidr_is_valid(&c))
        return -1;
    *ret = c;
    return 0;
}

int cidr_parse_addr(const char *s, uint32_t *ret)
{
    uint32_t addr;

    if (address(&s, &addr) < 0 || *s != '\0')
        return -1;
    *ret = addr;
    return 0;
}

void cidr_format_addr(uint32_t addr, char out[CIDR_TEXT_MAX])
{
    str_fmt(out, CIDR_TEXT_MAX, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255,
            addr & 255);
}

void cidr_format(const struct cidr *c, char out[CIDR_TEXT_MAX])
{
    size_t n;

    cidr_format_addr(c->addr, out);
    n = strlen(out);
    if (c->prefix < 32)
        str_fmt(out + n, CIDR_TEXT_MAX - n, "/%u", c->prefix);
    n = strlen(out);
    if (c->first != 0)
        str_fmt(out + n, CIDR_TEXT_MAX - n, c->first == c->last ? ":%u" : ":%u-%u", c->first,
                c->last);
}

bool cidr_overlaps(const struct cidr *a, const struct cidr *b)
{
    uint32_t mask = cidr_mask(a->prefix < b->prefix ? a->prefix : b->prefix);

    return (a->addr & mask) == (b->addr & mask);
}
