/* rules.c - see rules.h. */
#include "wire/rules.h"

#include <string.h>

/* One rule in the list of bytes. */
struct packed {
    uint32_t addr;
    uint16_t first, last;
    uint8_t prefix, deny;
    uint16_t zero;
};
_Static_assert(sizeof(struct packed) == WIRE_RULE, "a rule has no padding");

static struct packed packed_at(const struct wire_bytes *list, size_t i)
{
    struct packed p;

    memcpy(&p, list->p + i * WIRE_RULE, sizeof(p));
    return p;
}

int rules_add(struct buf *list, const struct wire_rule *r)
{
    struct packed p = {.addr = r->to.addr,
                       .first = r->to.first,
                       .last = r->to.last,
                       .prefix = r->to.prefix,
                       .deny = r->deny};

    return buf_add(list, &p, sizeof(p));
}

size_t rules_count(const struct wire_bytes *list)
{
    return list->len / WIRE_RULE;
}

struct wire_rule rules_get(const struct wire_bytes *list, size_t i)
{
    struct packed p = packed_at(list, i);

    return (struct wire_rule){.to = {p.addr, p.first, p.last, p.prefix}, .deny = p.deny != 0};
}

int rules_check(const struct wire_bytes *list, struct err *e)
{
    if (list->len % WIRE_RULE != 0 || list->len > WIRE_RULES_BYTES)
        return err_set(e, ERR_INVALID, "%u bytes are no list of at most %u rules", list->len,
                       WIRE_RULES_MAX);
    for (size_t i = 0; i < rules_count(list); i++) {
        struct packed p = packed_at(list, i);
        struct wire_rule r = rules_get(list, i);

        if (!cidr_is_valid(&r.to) || p.deny > 1 || p.zero != 0)
            return err_set(e, ERR_INVALID, "rule %zu is not a rule", i);
    }
    return 0;
}
