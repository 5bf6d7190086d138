/* firewall.c - see firewall.h. */
#include "keeper/network/firewall.h"

#include <nftables/libnftables.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/network.h"
#include "keeper/network/special.h"

#define TEXT_MAX (256u << 10)
#define CROWD_MAX 8192u /* more than there are id ranges */

static const char *const special[] = {
#define X(network, ...) network,
    SPECIAL_NETWORKS(X)
#undef X
};

/* The chains, and the rules in them. $T is the table, $V stands for the interfaces of
 * this daemon's sandboxes and $C for those of any daemon's; $N, $M, $A and $G are
 * filled in by put_part().
 *
 *  - fragments: before the kernel would put them together (-400), or a tenant could
 *    fill the memory the host has for that. What is filtered is always whole.
 *  - early: before connection tracking, so that what is dropped costs nothing. The
 *    sender's address must be the one routed to where the packet came from.
 *  - names: the one way to a private address. Our name servers exist only here.
 *  - input: the host is reached by nothing but a DNS question it is to answer.
 *  - forward: into a sandbox go answers only, of those it may ask (and errors about
 *    what it sent, which have no port to be judged by); out of it what `out` lets pass. The
 *    last rules keep interfaces that forward because of us from routing for others.
 *  - output: the host itself starts nothing with a sandbox either. Nor does it say that a packet
 *    used up its hops or has no route: that shows an address of the host. Only of one that is too
 *    large for the next link must a sender know (code 4).
 *  - out looks at every packet, also of open connections: a flow that is forbidden
 *    while it runs ends at once, one that stays allowed notices nothing.
 *  - local are the networks of the host's interfaces, of which the machines beside it are part.
 *  - count comes last: what is refused anyway uses nothing up. */
/* clang-format off */
static const struct {
    const char *chain, *hook;
    const char *rules[9]; /* NULL ends */
} chains[] = {
    {"fragments", "type filter hook prerouting priority -450", {
        "iifname $V ip frag-off & 0x3fff != 0 drop"}},
    {"early", "type filter hook prerouting priority raw", {
        "iifname != $V return",
        "meta nfproto != ipv4 drop",
        "fib saddr . iif oif missing drop"}},
    {"count", NULL, {
        "ct state new add @crowd { ip saddr ct count over $N } drop",
        "accept"}},
    {"refuse", NULL, {
        "meta l4proto tcp reject with tcp reset",
        "drop"}},
    {"names", "type nat hook prerouting priority dstnat", {
        "iifname $V meta l4proto { tcp, udp } th dport 53 $M"}},
    {"input", "type filter hook input priority filter", {
        "iifname != $V return",
        "ct state invalid drop",
        "iifname vmap @sandboxes",
        "ct status dnat ct original ip daddr $D meta l4proto { tcp, udp } th dport 53 jump count",
        "drop"}},
    {"out", NULL, {
        "ct state invalid drop",
        "oifname $C drop",
        "iifname vmap @sandboxes",
        "ct status dnat ct original ip daddr $D meta l4proto { tcp, udp } th dport 53 jump count",
        "$A",
        "ip daddr { $R } jump refuse",
        "ip daddr @local jump refuse",
        "jump count"}},
    {"forward", "type filter hook forward priority filter", {
        "oifname $V ct state related accept",
        "oifname $V ct state != established drop",
        "meta l4proto != tcp oifname vmap @sandboxes",
        "oifname $V accept",
        "iifname $V jump out",
        "$G"}},
    {"output", "type filter hook output priority filter", {
        "oifname $V ct state != { established, related } drop",
        "oifname $V ct status dnat accept",
        "oifname $V icmp type != destination-unreachable drop",
        "oifname $V icmp code != 4 drop"}},
    {"hide", "type nat hook postrouting priority srcnat", {
        "iifname $V masquerade"}},
};
/* clang-format on */

/* ---- nftables ---- */

int firewall_open(struct nft_ctx **ret, struct err *e)
{
    struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);

    if (nft == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    nft_ctx_buffer_output(nft);
    nft_ctx_buffer_error(nft);
    if (nft_run_cmd_from_buffer(nft, "list tables inet") != 0) {
        nft_ctx_free(nft);
        return err_set(e, ERR_UNSUPPORTED, "nftables does not work here");
    }
    *ret = nft;
    return 0;
}

void firewall_close(struct nft_ctx *nft)
{
    if (nft != NULL)
        nft_ctx_free(nft);
}

/* A library that has failed is replaced: its socket may hold the rest of an answer, which
 * it would take for that of the next command. */
static int run(struct keeper *k, struct buf *text, struct err *e)
{
    struct nft_ctx *fresh;
    const char *why;
    struct err ignored;

    if (text->failed)
        return err_set(e, ERR_INTERNAL, "the rules are longer than %u bytes", TEXT_MAX);
    if (nft_run_cmd_from_buffer(k->network.nft, buf_cstr(text)) == 0)
        return 0;
    why = nft_ctx_get_error_buffer(k->network.nft);
    err_set(e, ERR_INTERNAL, "nftables: %.*s", (int)strcspn(why, "\n"), why);
    if (firewall_open(&fresh, &ignored) == 0) {
        firewall_close(k->network.nft);
        k->network.nft = fresh;
    }
    return -1;
}

/* ---- the tables of the host ---- */

#define GUARD_REST "oifname != \"" NETWORK_PREFIX "*\" drop"

/* What it prints, valid until the next command; NULL if it fails. Asking for the output is
 * what empties the buffer. */
static const char *list(struct keeper *k, const char *what)
{
    struct nft_ctx *nft = k->network.nft;
    bool done;

    nft_ctx_get_output_buffer(nft);
    done = nft_run_cmd_from_buffer(nft, what) == 0;
    nft_ctx_get_error_buffer(nft);
    return done ? nft_ctx_get_output_buffer(nft) : NULL;
}

/* The rules of $G, as nftables prints them. A table without that chain guards nothing. */
static void look_at(struct keeper *k, const char *tag, struct forwarding *guarded)
{
    char command[64], dev[IFNAMSIZ], rest[64];
    const char *line;

    str_fmt(command, sizeof(command), "list chain inet cove_%.8s forward", tag);
    for (line = list(k, command); line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, " iifname \"%15[^\"\n]\" %63[^\n]", dev, rest) == 2 &&
            strcmp(rest, GUARD_REST) == 0)
            forwarding_add(guarded, dev);
    }
}

int firewall_look(struct keeper *k, struct forwarding_tables *ret, struct err *e)
{
    const char *line = list(k, "list tables inet");
    char tag[TAG_LEN + 1];

    *ret = (struct forwarding_tables){0};
    if (line == NULL)
        return err_set(e, ERR_INTERNAL, "nftables does not list its tables");
    for (; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "table inet cove_%8[a-z0-9]", tag) != 1 || !id_is_valid(tag, TAG_LEN))
            continue;
        if (strcmp(tag, k->tag) == 0)
            ret->ours = true;
        else if (ret->nothers < FORWARDING_TAGS)
            str_fmt(ret->others[ret->nothers++], FORWARDING_TAG, "%s", tag);
    }
    if (ret->ours)
        look_at(k, k->tag, &ret->guarded);
    for (size_t i = 0; i < ret->nothers; i++)
        look_at(k, ret->others[i], &ret->guarded);
    return 0;
}

/* ---- the parts of the rules ---- */

static void put_names(struct buf *out, const struct network *n)
{
    char from[CIDR_TEXT_MAX], to[CIDR_TEXT_MAX];

    if (n->nresolvers == 0) {
        buf_adds(out, "drop");
        return;
    }
    buf_adds(out, "dnat ip to ip daddr map { ");
    for (uint32_t i = 0; i < NETWORK_RESOLVERS; i++) {
        cidr_format_addr(BOOT_GATEWAY + i, from);
        cidr_format_addr(n->resolvers[i % n->nresolvers], to);
        buf_addf(out, "%s%s : %s", i > 0 ? ", " : "", from, to);
    }
    buf_adds(out, " }");
}

static void put_servers(struct buf *out)
{
    char text[CIDR_TEXT_MAX];

    for (uint32_t i = 0; i < NETWORK_RESOLVERS; i++) {
        cidr_format_addr(BOOT_GATEWAY + i, text);
        buf_addf(out, "%s%s", i > 0 ? ", " : "{ ", text);
    }
    buf_adds(out, " }");
}

/* ADDRESS [and ports], as a match on those two. */
static void put_match(struct buf *out, const char *address, const char *port, const struct cidr *c)
{
    struct cidr bare = {.addr = c->addr, .prefix = c->prefix};
    char text[CIDR_TEXT_MAX];

    cidr_format(&bare, text);
    buf_addf(out, "%s %s", address, text);
    if (c->first != 0)
        buf_addf(out, " meta l4proto { tcp, udp } %s %u-%u", port, c->first, c->last);
}

static void put_special(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        buf_addf(out, "%s%s", i > 0 ? ", " : "", special[i]);
}

/* The set of the host's own networks, as it is now. */
static void put_local(struct buf *out, const struct keeper *k)
{
    char text[CIDR_TEXT_MAX];

    buf_addf(out, "add set inet cove_%s local { type ipv4_addr; flags interval; auto-merge; }\n",
             k->tag);
    buf_addf(out, "flush set inet cove_%s local\n", k->tag);
    for (size_t i = 0; i < k->network.nlocal; i++) {
        cidr_format(&k->network.local[i], text);
        buf_addf(out, "add element inet cove_%s local { %s }\n", k->tag, text);
    }
}

static void put_text(struct buf *out, const struct keeper *k, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            buf_addc(out, *text);
            continue;
        }
        switch (*++text) {
        case 'V':
            buf_addf(out, "\"" NETWORK_PREFIX "%s*\"", k->tag);
            break;
        case 'C':
            buf_adds(out, "\"" NETWORK_PREFIX "*\"");
            break;
        case 'N':
            buf_addf(out, "%llu", (unsigned long long)k->config.connections);
            break;
        case 'M':
            put_names(out, &k->network);
            break;
        case 'D':
            put_servers(out);
            break;
        case 'R':
            put_special(out);
            break;
        }
    }
}

static void begin_rule(struct buf *out, const struct keeper *k, const char *chain)
{
    buf_addf(out, "add rule inet cove_%s %s ", k->tag, chain);
}

static void put_rule(struct buf *out, const struct keeper *k, const char *chain, const char *rule)
{
    if (strcmp(rule, "$A") == 0) {
        for (size_t i = 0; i < k->network.nallowed; i++) {
            begin_rule(out, k, chain);
            put_match(out, "ip daddr", "th dport", &k->network.allowed[i]);
            buf_adds(out, " jump count\n");
        }
    } else if (strcmp(rule, "$G") == 0) {
        for (size_t i = 0; i < k->network.forwarding.ndevs; i++) {
            begin_rule(out, k, chain);
            buf_addf(out, "iifname \"%s\" " GUARD_REST "\n", k->network.forwarding.devs[i]);
        }
    } else {
        begin_rule(out, k, chain);
        put_text(out, k, rule);
        buf_addc(out, '\n');
    }
}

static void put_chain(struct buf *out, const struct keeper *k, const char *name, const char *hook)
{
    buf_addf(out, "add chain inet cove_%s %s", k->tag, name);
    if (hook != NULL)
        buf_addf(out, " { %s; policy accept; }", hook);
    buf_addf(out, "\nflush chain inet cove_%s %s\n", k->tag, name);
}

static void put_table(struct buf *out, const struct keeper *k)
{
    buf_addf(out, "add table inet cove_%s\n", k->tag);
    buf_addf(out, "add set inet cove_%s crowd { type ipv4_addr; size %u; flags dynamic; }\n",
             k->tag, CROWD_MAX);
    buf_addf(out, "add map inet cove_%s sandboxes { type ifname : verdict; }\n", k->tag);
    put_local(out, k);
    for (size_t i = 0; i < ARRAY_LEN(chains); i++)
        put_chain(out, k, chains[i].chain, chains[i].hook);
    for (size_t i = 0; i < ARRAY_LEN(chains); i++)
        for (size_t j = 0; j < ARRAY_LEN(chains[i].rules) && chains[i].rules[j] != NULL; j++)
            put_rule(out, k, chains[i].chain, chains[i].rules[j]);
}

/* A table that another version of us left may not take our chains: then it is
 * replaced, still in one transaction, and the front gives sandboxes their own
 * rules again as it starts. */
int firewall_write(struct keeper *k, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);

    put_table(&text, k);
    if (run(k, &text, e) == 0)
        return 0;
    buf_clear(&text);
    buf_addf(&text, "add table inet cove_%s\ndelete table inet cove_%s\n", k->tag, k->tag);
    put_table(&text, k);
    return run(k, &text, e);
}

int firewall_write_local(struct keeper *k, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);

    put_local(&text, k);
    return run(k, &text, e);
}

void firewall_remove(struct keeper *k)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    struct err e;

    buf_addf(&text, "add table inet cove_%s\ndelete table inet cove_%s\n", k->tag, k->tag);
    if (run(k, &text, &e) < 0)
        log_warn("%s", e.msg);
}

/* ---- one sandbox ---- */

/* An allow is looked for first, then a deny; what nothing speaks of is allowed. Address and
 * port are the ones that were asked for: so a name server is denied by ours, and an answer
 * is judged as its question. */
void firewall_text(struct buf *out, const char *chain, const struct wire_bytes *rules)
{
    for (int deny = 0; deny <= 1; deny++)
        for (size_t i = 0; i < rules_count(rules); i++) {
            struct wire_rule r = rules_get(rules, i);

            if (r.deny != (deny == 1))
                continue;
            buf_addf(out, "add rule inet %s ", chain);
            put_match(out, "ct original ip daddr", "ct original proto-dst", &r.to);
            buf_adds(out, r.deny ? " jump refuse\n" : " return\n");
        }
}

static void name_chain(const struct sandbox *sb, char out[64])
{
    str_fmt(out, 64, "cove_%s sandbox_%u", sb->k->tag, sb->rec.range);
}

static void put_element(struct buf *out, const struct sandbox *sb, const char *verb)
{
    char name[IFNAMSIZ];

    network_name(sb, name);
    buf_addf(out, "%s element inet cove_%s sandboxes { \"%s\" : jump sandbox_%u }\n", verb,
             sb->k->tag, name, sb->rec.range);
}

int firewall_rule(struct sandbox *sb, const struct wire_bytes *rules, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    char chain[64];

    name_chain(sb, chain);
    buf_addf(&text, "add chain inet %s\nflush chain inet %s\n", chain, chain);
    firewall_text(&text, chain, rules);
    put_element(&text, sb, "add");
    return run(sb->k, &text, e);
}

int firewall_unrule(struct sandbox *sb, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    char chain[64];

    name_chain(sb, chain);
    buf_addf(&text, "add chain inet %s\n", chain);
    put_element(&text, sb, "add"); /* deleting a missing element would fail */
    put_element(&text, sb, "delete");
    buf_addf(&text, "flush chain inet %s\ndelete chain inet %s\n", chain, chain);
    return run(sb->k, &text, e);
}
