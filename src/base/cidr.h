/* cidr.h - "10.1.2.0/24:5432-5440": an IPv4 network and a range of ports.
 *
 * Parsing is strict: no names, no leading zeros, no bits set after the prefix, ports in
 * order. So a rule matches exactly the text that was given. */
#ifndef BASE_CIDR_H
#define BASE_CIDR_H

#include <stdbool.h>
#include <stdint.h>

#define CIDR_TEXT_MAX 40u

struct cidr {
    uint32_t addr;        /* host byte order; bits after the prefix are zero */
    uint16_t first, last; /* ports; 0, 0: all ports, and protocols without ports */
    uint8_t prefix;
};

/* A.B.C.D[/PREFIX][:PORT[-PORT]]; -1 for anything else. */
int cidr_parse(const char *s, struct cidr *ret);
/* One address and nothing else. */
int cidr_parse_addr(const char *s, uint32_t *ret);
/* True if cidr_parse() could have returned it. */
bool cidr_is_valid(const struct cidr *c);
/* As cidr_parse() reads it; /32 is left out. */
void cidr_format(const struct cidr *c, char out[CIDR_TEXT_MAX]);
void cidr_format_addr(uint32_t addr, char out[CIDR_TEXT_MAX]);
/* Compares the addresses; ignores the ports. */
bool cidr_overlaps(const struct cidr *a, const struct cidr *b);
uint32_t cidr_mask(uint8_t prefix);

#endif
