/* network.c - see network.h. */
#include "keeper/network.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/beside.h"
#include "keeper/network/firewall.h"
#include "keeper/network/local.h"
#include "keeper/network/netlink.h"
#include "keeper/network/resolvers.h"
#include "keeper/stages.h"

#define SUBNET_PREFIX_MAX 20u /* smaller networks do not have an address per id range */
#define LINK_TRIES 34u        /* attempts before it is deleted, some 3 s; see teardown.c */
#define MTU_DEFAULT 1500u
#define MTU_LEAST 1280u
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@"

static const char *const candidates[] = {"10.200.0.0/16", "172.29.0.0/16", "10.88.0.0/16",
                                         "192.168.240.0/20", "10.123.0.0/16"};

const char *network_mode(uint32_t bits)
{
    return (bits & NETWORK_EGRESS) != 0 ? "egress" : "none";
}

void network_name(const struct sandbox *sb, char out[IFNAMSIZ])
{
    str_fmt(out, IFNAMSIZ, NETWORK_PREFIX "%.8s%u", sb->k->tag, sb->rec.range);
}

uint32_t network_address(const struct sandbox *sb)
{
    if ((sb->rec.network & NETWORK_EGRESS) == 0 || sb->rec.range == RANGE_NONE)
        return 0;
    return sb->k->network.subnet + 1 + sb->rec.range;
}

/* ---- the host ---- */

struct host_view {
    struct cidr taken[256]; /* routes of the host */
    size_t ntaken;
    struct forwarding devs;
    uint32_t mtu;
    bool uplink;
};
static const struct host_view nothing_seen = {.mtu = MTU_DEFAULT};

static uint32_t mtu_of(const char *dev)
{
    autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {0};

    str_fmt(r.ifr_name, sizeof(r.ifr_name), "%s", dev);
    if (fd < 0 || ioctl(fd, SIOCGIFMTU, &r) < 0 || r.ifr_mtu < (int)MTU_LEAST)
        return MTU_DEFAULT;
    return r.ifr_mtu < (int)MTU_DEFAULT ? (uint32_t)r.ifr_mtu : MTU_DEFAULT;
}

/* The interface of a sandbox, of this daemon or another. */
static bool is_ours(const char *dev)
{
    return strncmp(dev, NETWORK_PREFIX, strlen(NETWORK_PREFIX)) == 0 && strlen(dev) > TAG_LEN;
}

static void see_route(void *arg, const struct netlink_route *r)
{
    struct host_view *v = arg;

    if (r == NULL) {
        *v = nothing_seen;
        return;
    }
    if (is_ours(r->dev) || strcmp(r->dev, "lo") == 0)
        return;
    if (*r->dev != '\0' && r->dev[strspn(r->dev, NAME_CHARS)] == '\0')
        forwarding_add(&v->devs, r->dev);
    if (r->to.prefix == 0) {
        v->uplink = true;
        v->mtu = mtu_of(r->dev) < v->mtu ? mtu_of(r->dev) : v->mtu;
    } else if (v->ntaken < ARRAY_LEN(v->taken)) {
        v->taken[v->ntaken++] = r->to;
    }
}

static int look(struct netlink *nl, struct host_view *v, struct err *e)
{
    *v = nothing_seen;
    if (netlink_routes(nl, see_route, v, e) < 0)
        return -1;
    return v->uplink ? 0 : err_set(e, ERR_UNSUPPORTED, "the host has no default route");
}

static bool is_free(const struct host_view *v, const struct cidr *c)
{
    for (size_t i = 0; i < v->ntaken; i++)
        if (cidr_overlaps(&v->taken[i], c))
            return false;
    return true;
}

static int choose_subnet(struct keeper *k, const struct host_view *v, struct err *e)
{
    bool automatic = strcmp(k->config.subnet, "auto") == 0;
    struct cidr c;

    for (size_t i = 0; automatic && i < ARRAY_LEN(candidates); i++)
        if (cidr_parse(candidates[i], &c) == 0 && is_free(v, &c)) {
            k->network.subnet = c.addr;
            return 0;
        }
    if (automatic)
        return err_set(e, ERR_UNSUPPORTED, "no private network is free; choose one with --subnet");
    if (cidr_parse(k->config.subnet, &c) < 0 || c.first != 0 || c.prefix > SUBNET_PREFIX_MAX)
        return err_set(e, ERR_INVALID, "subnet: '%.40s' is not a network of /%u or larger",
                       k->config.subnet, SUBNET_PREFIX_MAX);
    if (!is_free(v, &c))
        return err_set(e, ERR_CONFLICT, "subnet: %s overlaps a route of this host",
                       k->config.subnet);
    k->network.subnet = c.addr;
    return 0;
}

/* ---- the settings ---- */

static int parse_range(const char *text, size_t len, struct cidr *ret)
{
    const char *eq = memchr(text, '=', len);
    char one[CIDR_TEXT_MAX + 24] = "";

    if (eq == NULL || eq == text || len - (size_t)(eq + 1 - text) >= sizeof(one))
        return -1;
    memcpy(one, eq + 1, len - (size_t)(eq + 1 - text));
    return cidr_parse(one, ret);
}

static int read_ranges(struct keeper *k, struct err *e)
{
    struct network *n = &k->network;

    for (const char *p = k->config.allow_ranges; *p != '\0';) {
        size_t len = strcspn(p, ",");

        if (n->nallowed == NETWORK_ALLOWED)
            return err_set(e, ERR_INVALID, "allow-ranges: more than %u are named, the maximum",
                           NETWORK_ALLOWED);
        if (parse_range(p, len, &n->allowed[n->nallowed]) < 0)
            return err_set(e, ERR_INVALID, "allow-ranges: '%.*s' is not NAME=CIDR[:PORT[-PORT]]",
                           (int)(len < 60 ? len : 60), p);
        n->nallowed++;
        p += len + (p[len] == ',');
    }
    return 0;
}

/* A mirror or proxy that the operator named by address is reached also where it is private. */
static int read_mirrors(struct keeper *k, struct err *e)
{
    const char *const urls[] = {k->config.apt_mirror, k->config.pip_index, k->config.npm_registry,
                                k->config.package_proxy};
    struct network *n = &k->network;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        for (const char *p = urls[i]; (p = strstr(p, "://")) != NULL;) {
            bool tls = p > urls[i] && p[-1] == 's';
            unsigned a, b, c, d, port = tls ? 443 : 80;
            char text[CIDR_TEXT_MAX + 24];

            p += 3;
            if (sscanf(p, "%3u.%3u.%3u.%3u:%5u", &a, &b, &c, &d, &port) < 4)
                continue;
            if (n->nallowed == NETWORK_ALLOWED)
                return err_set(e, ERR_INVALID, "allow-ranges and mirrors: more than %u",
                               NETWORK_ALLOWED);
            snprintf(text, sizeof(text), "%u.%u.%u.%u/32:%u", a, b, c, d, port);
            if (cidr_parse(text, &n->allowed[n->nallowed]) == 0)
                n->nallowed++;
        }
    return 0;
}

static int read_resolvers(struct keeper *k, struct err *e)
{
    struct network *n = &k->network;
    int given = resolvers_parse(k->config.resolvers, n->resolvers, NETWORK_RESOLVERS, e);

    if (given < 0)
        return -1;
    n->nresolvers = given > 0 ? (size_t)given : resolvers_find(n->resolvers, NETWORK_RESOLVERS);
    if (n->nresolvers == 0)
        log_warn("network: this host has no resolver that sandboxes can reach, so names do not "
                 "resolve inside; set --resolvers");
    return 0;
}

static int check_settings(struct keeper *k, struct err *e)
{
    static const char *const modes[] = {"auto", "egress", "none"};

    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        if (strcmp(k->config.network, modes[i]) == 0)
            return read_ranges(k, e) < 0 || read_mirrors(k, e) < 0 ? -1 : read_resolvers(k, e);
    return err_set(e, ERR_INVALID, "network: '%.40s' is not auto, egress or none",
                   k->config.network);
}

/* ---- start and end of the daemon ---- */

/* Whether the kernel has the token bucket is known by making one: in a network namespace that is
 * gone again with the process that made it. */
static bool can_limit(void)
{
    struct netlink *nl = NULL;
    struct err e;
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(unshare(CLONE_NEWNET) < 0 || netlink_open(&nl, NETLINK_ROUTE, &e) < 0 ||
              netlink_limit(nl, "lo", 1u << 20, &e) < 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int check_bandwidth(struct keeper *k, struct err *e)
{
    k->network.limits = can_limit();
    if (k->config.bandwidth == 0 || k->network.limits)
        return 0;
    return err_set(e, ERR_INVALID,
                   "the setting bandwidth: this kernel has no token bucket (module sch_tbf)");
}

static int open_host(struct keeper *k, struct err *e)
{
    struct network *n = &k->network;
    struct forwarding_tables tables;
    struct host_view v;

    if (netlink_open(&n->nl, NETLINK_ROUTE, e) < 0 || look(n->nl, &v, e) < 0 ||
        choose_subnet(k, &v, e) < 0 || firewall_open(&n->nft, e) < 0 ||
        firewall_look(k, &tables, e) < 0)
        return -1;
    n->mtu = v.mtu;
    n->forwarding = v.devs;
    n->fresh = !tables.ours;
    if (local_look(k, e) < 0)
        return -1;
    /* The firewall first: nothing is forwarded before it is complete. */
    if (forwarding_take(&n->forwarding, &tables, k->tag, e) < 0 || firewall_write(k, e) < 0 ||
        forwarding_start(&n->forwarding, e) < 0 || firewall_watch(k, e) < 0 ||
        local_watch(k, e) < 0 || check_bandwidth(k, e) < 0)
        return -1;
    n->egress = true;
    beside_start(k);
    return 0;
}

/* An earlier daemon left our table or our entry in /run/cove, to be removed now. Either may have
 * been removed. */
static bool has_left(struct keeper *k, struct forwarding_tables *ret)
{
    struct network *n = &k->network;
    struct err e;

    *ret = (struct forwarding_tables){0};
    if ((n->nft == NULL && firewall_open(&n->nft, &e) < 0) || firewall_look(k, ret, &e) < 0)
        *ret = (struct forwarding_tables){0}; /* no nftables, no table */
    return ret->ours || forwarding_has(k->tag);
}

int network_open(struct keeper *k, struct err *e)
{
    struct network *n = &k->network;
    struct forwarding_tables tables;
    char text[CIDR_TEXT_MAX];
    struct err why;

    if (check_settings(k, e) < 0)
        return -1;
    if (strcmp(k->config.network, "none") == 0) {
        str_fmt(n->why_not, sizeof(n->why_not), "the settings say `network = none`");
        if (has_left(k, &tables))
            return 0;
        firewall_close(take_ptr(&n->nft));
        n->powerless = true;
        return privileges_drop_one(CAP_NET_RAW, e) < 0 ? -1 : privileges_drop_one(CAP_NET_ADMIN, e);
    }
    if (open_host(k, &why) == 0) {
        cidr_format_addr(n->subnet, text);
        log_info("network: egress, addresses from %s on", text);
        return 0;
    }
    if (strcmp(k->config.network, "egress") == 0 || why.kind == ERR_INVALID ||
        why.kind == ERR_CONFLICT) {
        *e = why;
        return -1;
    }
    snprintf(n->why_not, sizeof(n->why_not), "%.190s", why.msg);
    log_warn("network: sandboxes get `none`: %s", n->why_not);
    return 0;
}

void network_close(struct keeper *k)
{
    struct network *n = &k->network;
    struct forwarding_tables tables;

    firewall_unwatch(k);
    local_unwatch(k);
    beside_stop(k);
    if (!n->powerless && has_left(k, &tables)) {
        beside_give_back(k);
        forwarding_give_back(&tables, k->tag);
        if (n->nft != NULL)
            firewall_remove(k);
    }
    firewall_close(take_ptr(&n->nft));
    netlink_close(take_ptr(&n->nl));
}

void network_undo(struct keeper *k)
{
    if (k->network.fresh)
        network_close(k);
}

int network_choose(const struct keeper *k, const char *asked, uint32_t *ret, struct err *e)
{
    if (strcmp(asked, "none") == 0 || (*asked == '\0' && !k->network.egress))
        *ret = 0;
    else if (*asked != '\0' && strcmp(asked, "egress") != 0)
        return err_set(e, ERR_INVALID, "network: '%.16s' is not none or egress", asked);
    else if (!k->network.egress)
        return err_set(e, ERR_UNSUPPORTED, "network: this server cannot give egress: %s",
                       k->network.why_not);
    else
        *ret = NETWORK_EGRESS;
    return 0;
}

/* ---- one sandbox ---- */

int network_keep_rules(struct sandbox *sb, const struct wire_bytes *rules, struct err *e)
{
    char *copy = malloc(rules->len + 1u);

    if (copy == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (rules->len > 0)
        memcpy(copy, rules->p, rules->len);
    free(sb->rules.mem);
    sb->rules.mem = copy;
    sb->rules.len = rules->len;
    return 0;
}

/* The record says that there are rules before there are any: the teardown then removes them. */
static int hand_over(struct sandbox *sb, struct err *e)
{
    struct wire_bytes rules = {sb->rules.mem, sb->rules.len};

    if (rules.len == 0) {
        if ((sb->rec.network & NETWORK_RULED) != 0 && firewall_unrule(sb, e) < 0)
            return -1;
        sb->rec.network &= ~NETWORK_RULED;
        return 0;
    }
    if ((sb->rec.network & NETWORK_RULED) == 0) {
        sb->rec.network |= NETWORK_RULED;
        if (record_save(sb, false, e) < 0)
            return -1;
    }
    return firewall_rule(sb, &rules, e);
}

/* If another program emptied the firewall it accepts nothing, and we may not have been told yet. */
static int apply(struct sandbox *sb, struct err *e)
{
    if (hand_over(sb, e) == 0)
        return 0;
    return firewall_restore(sb->k) ? hand_over(sb, e) : -1;
}

int network_set_rules(struct sandbox *sb, const struct wire_bytes *rules, struct err *e)
{
    struct kept_rules before = sb->rules;

    if ((sb->rec.network & NETWORK_EGRESS) == 0)
        return rules->len == 0
                   ? 0
                   : err_set(e, ERR_CONFLICT, "set rules: sandbox %s has no network", sb->rec.id);
    if (!sb->k->network.egress)
        return err_set(e, ERR_UNSUPPORTED, "network: %s", sb->k->network.why_not);
    sb->rules.mem = NULL;
    if (network_keep_rules(sb, rules, e) < 0 || apply(sb, e) < 0) {
        free(sb->rules.mem);
        sb->rules = before; /* they still apply, and a restored firewall gets them */
        return -1;
    }
    free(before.mem);
    return 0;
}

int network_up(struct sandbox *sb, struct err *e)
{
    const struct network *n = &sb->k->network;
    char name[IFNAMSIZ];

    if ((sb->rec.network & NETWORK_EGRESS) == 0)
        return 0; /* loopback only, which init sets up */
    if (!n->egress)
        return err_set(e, ERR_UNSUPPORTED, "this server cannot give egress: %s", n->why_not);
    sb->quiet = false;
    network_name(sb, name);
    if (netlink_veth(n->nl, name, sb->pid, n->mtu, e) < 0)
        return -1;
    /* Before the link is up, so that no IPv6 packet is sent. A kernel without IPv6 is fine. */
    if (forwarding_set("ipv6", name, "disable_ipv6", "1") < 0 && errno != ENOENT)
        return err_sys(e, "turn off IPv6 on %s", name);
    if (forwarding_set("ipv4", name, "forwarding", "1") < 0)
        return err_sys(e, "turn on forwarding of %s", name);
    /* A tenant sees only its own end, which init limits. */
    if (sb->rec.limits.bandwidth != 0 &&
        netlink_limit(n->nl, name, sb->rec.limits.bandwidth, e) < 0)
        return -1;
    if (netlink_set_up(n->nl, name, e) < 0 ||
        netlink_route(n->nl, network_address(sb), name, e) < 0)
        return -1;
    return apply(sb, e);
}

/* The range is free only when the kernel has removed the interface, some milliseconds after the last
 * process inside has ended, and has forgotten its connections. */
int network_down(struct sandbox *sb)
{
    struct network *n = &sb->k->network;
    struct netlink_count c;
    char name[IFNAMSIZ];
    struct err e;

    if ((sb->rec.network & NETWORK_EGRESS) == 0 || sb->rec.range == RANGE_NONE)
        return 0;
    /* Also if this daemon gives no egress: the table of an earlier one is there, and the next
     * sandbox in this range must not inherit rules. */
    if ((sb->rec.network & NETWORK_RULED) != 0) {
        if ((n->nft == NULL && firewall_open(&n->nft, &e) < 0) || firewall_unrule(sb, &e) < 0)
            log_warn("sandbox %s: %s", sb->rec.id, e.msg);
        sb->rec.network &= ~NETWORK_RULED;
    }
    network_name(sb, name);
    if (if_nametoindex(name) == 0)
        return sb->quiet ? 0 : conntrack_forget(sb);
    if (n->nl == NULL && netlink_open(&n->nl, NETLINK_ROUTE, &e) < 0)
        return 1;
    /* No process is left inside to send: a link that was silent so far stays silent. */
    sb->quiet = netlink_count(n->nl, name, &c) == 0 && c.rx_packets == 0;
    /* The kernel removes the link with its namespace, but keeps the namespace for a connection with
     * unsent data while it retries: minutes with a silent peer. */
    if (sb->retries >= LINK_TRIES && netlink_delete(n->nl, name, &e) < 0)
        log_warn("sandbox %s: %s", sb->rec.id, e.msg);
    return 1;
}

/* ---- counters ---- */

struct counting {
    struct keeper *k;
    struct one {
        struct sandbox *sb; /* NULL: not a running sandbox of ours */
        struct netlink_count c;
    } by_range[NETWORK_RANGES];
};

static void count_link(void *arg, const struct netlink_count *c)
{
    struct counting *n = arg;
    size_t skip = strlen(NETWORK_PREFIX) + TAG_LEN;
    uint64_t range;

    if (c == NULL)
        for (size_t i = 0; i < NETWORK_RANGES; i++)
            n->by_range[i].c.name[0] = '\0';
    else if (is_ours(c->name) &&
             strncmp(c->name + strlen(NETWORK_PREFIX), n->k->tag, TAG_LEN) == 0 &&
             str_u64(c->name + skip, NETWORK_RANGES - 1, &range) == 0)
        n->by_range[range].c = *c;
}

/* The host's end receives what the sandbox sent. */
int network_counts(struct keeper *k, void (*each)(void *arg, const struct keeper_count *c),
                   void *arg, struct err *e)
{
    static struct counting n;
    struct sandbox *sb;
    char name[IFNAMSIZ];
    bool whole;

    if (!k->network.egress)
        return 0;
    n = (struct counting){.k = k};
    SANDBOX_EACH(k, sb)
    if (sb->rec.phase == PHASE_GIVEN && sb->rec.range < NETWORK_RANGES)
        n.by_range[sb->rec.range].sb = sb;
    whole = netlink_counts(k->network.nl, count_link, &n, e) == 0;
    if (!whole && errno != EINTR)
        return -1;
    for (size_t i = 0; i < NETWORK_RANGES; i++) {
        struct one *o = &n.by_range[i];

        if (o->sb == NULL)
            continue;
        /* Where links change all the time no list of them is complete. Each alone takes a tenth of
         * a millisecond or less, and is not interrupted. It fails if the link is going down. */
        if (!whole && o->c.name[0] == '\0' && (o->sb->rec.network & NETWORK_EGRESS) != 0) {
            network_name(o->sb, name);
            netlink_count(k->network.nl, name, &o->c);
        }
        if (o->c.name[0] != '\0')
            each(arg, &(struct keeper_count){.id = o->sb->rec.id,
                                             .in_bytes = o->c.tx_bytes,
                                             .in_packets = o->c.tx_packets,
                                             .out_bytes = o->c.rx_bytes,
                                             .out_packets = o->c.rx_packets});
    }
    return 0;
}

/* ---- for doctor ---- */

bool network_check_nft(char *text, size_t room)
{
    struct nft_ctx *nft = NULL;
    struct err e;
    bool works = firewall_open(&nft, &e) == 0;

    snprintf(text, room,
             works ? "nftables works: sandboxes can have a network with a firewall"
                   : "nftables does not work here: network `none` only");
    firewall_close(nft);
    return works;
}

bool network_check_limits(char *text, size_t room)
{
    bool works = can_limit();

    snprintf(text, room,
             works ? "a sandbox's network can be limited (the limit bandwidth)"
                   : "no token bucket (module sch_tbf): the limit bandwidth cannot be had");
    return works;
}

bool network_check_uplink(char *text, size_t room)
{
    struct netlink *nl = NULL;
    struct host_view v = {0};
    struct err e;
    bool there = netlink_open(&nl, NETLINK_ROUTE, &e) == 0 && look(nl, &v, &e) == 0;

    if (there)
        snprintf(text, room, "a default route, packets of %u bytes", v.mtu);
    else
        snprintf(text, room, "no network access (%.100s): network `none` only", e.msg);
    netlink_close(nl);
    return there;
}

bool network_check_names(char *text, size_t room)
{
    uint32_t all[NETWORK_RESOLVERS];
    size_t n = resolvers_find(all, NETWORK_RESOLVERS);
    char one[CIDR_TEXT_MAX];

    if (n == 0) {
        snprintf(text, room, "no name server that sandboxes can reach; set --resolvers");
        return false;
    }
    cidr_format_addr(all[0], one);
    snprintf(text, room, "name server %s%s", one, n > 1 ? " and one more" : "");
    return true;
}
