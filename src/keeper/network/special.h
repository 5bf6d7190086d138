/* special.h - IPv4 networks that no sandbox reaches unless the operator opens them: IANA's registry of
 * special-purpose addresses, multicast, and what clouds keep for themselves. A tenant has no business
 * with any of them.
 *
 * Not here, since the firewall has them as a set: the networks of the host's own interfaces.
 *
 * EXTEND  Another network: its row, and an address of it in PRIVATE of tests/lib/internet.mjs. Rows
 *         must not overlap (nftables refuses the set). */
#ifndef KEEPER_NETWORK_SPECIAL_H
#define KEEPER_NETWORK_SPECIAL_H

/* clang-format off */
#define SPECIAL_NETWORKS(X) \
    /* network           defined by   what it is */ \
    X("0.0.0.0/8",       "RFC 791",   "this network") \
    X("10.0.0.0/8",      "RFC 1918",  "private") \
    X("100.64.0.0/10",   "RFC 6598",  "shared by a provider's customers; metadata of some clouds") \
    X("127.0.0.0/8",     "RFC 1122",  "loopback") \
    X("168.63.129.16",   "Azure",     "the platform's own server, seen by each of its machines") \
    X("169.254.0.0/16",  "RFC 3927",  "link-local; metadata of most clouds") \
    X("172.16.0.0/12",   "RFC 1918",  "private") \
    X("192.0.0.0/24",    "RFC 6890",  "protocol assignments (RFC 7335, 7600, 7723, 8155, 8880)") \
    X("192.0.2.0/24",    "RFC 5737",  "documentation, TEST-NET-1") \
    X("192.31.196.0/24", "RFC 7535",  "AS112, for reverse lookups of private addresses") \
    X("192.52.193.0/24", "RFC 7450",  "automatic multicast tunneling") \
    X("192.88.99.0/24",  "RFC 7526",  "6to4 relays, deprecated") \
    X("192.168.0.0/16",  "RFC 1918",  "private") \
    X("192.175.48.0/24", "RFC 7534",  "AS112, direct delegation") \
    X("198.18.0.0/15",   "RFC 2544",  "benchmarks") \
    X("198.51.100.0/24", "RFC 5737",  "documentation, TEST-NET-2") \
    X("203.0.113.0/24",  "RFC 5737",  "documentation, TEST-NET-3") \
    X("224.0.0.0/4",     "RFC 5771",  "multicast") \
    X("240.0.0.0/4",     "RFC 1112",  "reserved; with 255.255.255.255, limited broadcast (RFC 919)")
/* clang-format on */

#endif
