/* crowd.c - who is connected: room for connections of keys, and a part for each peer address.
 *
 * A connection on which no key was presented yet is a stranger's. Anyone can open those, so they must not
 * take the room of the others: where there are too many, the stranger that has been idle for longest
 * gives way to a new connection; without such a one, an idle connection that has an owner. A peer
 * address may have only a part of all connections as a stranger. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "http/conn.h"
#include "mem/mem.h"

#define PEER_TEXT_MAX 48 /* of an address, in hexadecimal */

struct http_peer {
    struct map_node node;
    size_t strangers;
    struct list idle; /* strangers, the longest idle first */
    char text[PEER_TEXT_MAX];
};

/* An IPv6 client chooses the last 64 bits of its address itself. False: it has no address. */
static bool peer_text(int fd, char out[PEER_TEXT_MAX])
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);
    const void *p = NULL;
    size_t len = 0;

    if (getpeername(fd, (struct sockaddr *)&a, &n) < 0)
        return false;
    if (a.ss_family == AF_INET) {
        p = &((struct sockaddr_in *)&a)->sin_addr;
        len = sizeof(struct in_addr);
    } else if (a.ss_family == AF_INET6) {
        const struct in6_addr *six = &((struct sockaddr_in6 *)&a)->sin6_addr;

        p = IN6_IS_ADDR_V4MAPPED(six) ? six->s6_addr + 12 : six->s6_addr;
        len = IN6_IS_ADDR_V4MAPPED(six) ? 4 : 8;
    }
    str_hex(out, p, len);
    return p != NULL;
}

static struct http_peer *peer_of(struct http_server *s, int fd)
{
    char text[PEER_TEXT_MAX];
    struct map_node *n;
    struct http_peer *p;

    if (!peer_text(fd, text))
        return NULL;
    n = map_get(&s->peers, text);
    if (n != NULL)
        return CONTAINER_OF(n, struct http_peer, node);
    p = mem_zeroed(1, sizeof(*p));
    strcpy(p->text, text);
    list_init(&p->idle);
    if (map_put(&s->peers, &p->node, p->text) < 0) {
        free(p);
        return NULL;
    }
    return p;
}

static void peer_left(struct http_conn *c)
{
    struct http_peer *p = take_ptr(&c->peer);

    if (p == NULL || --p->strangers > 0)
        return;
    map_del(&c->server->peers, &p->node);
    free(p);
}

/* ---- idle connections ---- */

void http_crowd_busy(struct http_conn *c)
{
    if (!c->idle)
        return;
    c->idle = false;
    list_del(&c->idle_link);
    if (c->peer != NULL)
        list_del(&c->peer_link);
}

void http_crowd_idle(struct http_conn *c)
{
    struct http_server *s = c->server;

    http_crowd_busy(c);
    c->idle = true;
    list_add_tail(c->whose == NULL ? &s->strangers : &s->guests, &c->idle_link);
    if (c->peer != NULL)
        list_add_tail(&c->peer->idle, &c->peer_link);
}

/* ---- coming and going ---- */

/* Its own callbacks are not on the stack: it waits for a request. */
static void evict(struct http_conn *c)
{
    c->server->evicted++;
    http_conn_free(c);
}

static bool evict_one(struct http_server *s)
{
    struct http_conn *c = LIST_FIRST(&s->strangers, struct http_conn, idle_link);

    if (c == NULL)
        c = LIST_FIRST(&s->guests, struct http_conn, idle_link);
    if (c != NULL)
        evict(c);
    return c != NULL;
}

const char *http_crowd_admit(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_conn *other;

    c->peer = s->opts.peer_max == 0 ? NULL : peer_of(s, c->io.fd);
    if (c->peer != NULL && ++c->peer->strangers > s->opts.peer_max) {
        other = LIST_FIRST(&c->peer->idle, struct http_conn, peer_link);
        if (other == NULL)
            return "too many connections without an API key from this address";
        evict(other);
    }
    if (s->nconns > s->opts.conns_max && !evict_one(s))
        return "too many connections";
    http_crowd_idle(c);
    return NULL;
}

static void tell_owner(struct http_conn *c, int by)
{
    if (c->whose != NULL && c->server->opts.on_owner != NULL)
        c->server->opts.on_owner(c->server->opts.arg, c->whose, by);
}

void http_crowd_leave(struct http_conn *c)
{
    http_crowd_busy(c);
    peer_left(c);
    tell_owner(c, -1);
    c->whose = NULL;
}

const char *http_owner(const struct http_req *r)
{
    return http_conn_of(r)->whose;
}

void http_owned_by(struct http_req *r, const char *whose)
{
    struct http_conn *c = http_conn_of(r);

    if (c->whose != NULL && strcmp(c->whose, whose) == 0) {
        c->whose = whose;
        return;
    }
    tell_owner(c, -1);
    c->whose = whose;
    tell_owner(c, 1);
    peer_left(c);
}

uint64_t http_server_evicted(const struct http_server *s)
{
    return s->evicted;
}

/* FNV-1a, from a secret start: a client cannot choose to collide with another. */
uint32_t http_peer(const struct http_req *r)
{
    const struct http_conn *c = http_conn_of(r);
    uint32_t h = 2166136261u ^ (uint32_t)c->server->peers.seed;
    char text[PEER_TEXT_MAX];

    if (!peer_text(c->io.fd, text))
        return 0;
    for (const char *p = text; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h != 0 ? h : 1;
}
