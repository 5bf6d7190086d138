/* upstream.c - connections to servers inside. A new one costs a call to init, a connect, an fd that is
 * passed and two jobs of a thread: five times as much as the rest of a small request. So one whose
 * answer is complete stays open for a moment, for the next request to the same port. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/str.h"
#include "front/engine/fdpass.h"
#include "front/proxy/internal.h"
#include "mem/mem.h"

struct upstream *upstream_new(struct relay *y, int fd)
{
    struct upstream *u = mem_zeroed(1, sizeof(*u));
    struct err e;

    if (loop_io_start(y->p->loop, &u->io, fd, EPOLLIN, outward_on_io, &e) < 0) {
        fd_close(y->p->engine, fd, y->key);
        free(u);
        return NULL;
    }
    u->p = y->p;
    u->y = y;
    u->fd = fd;
    u->port = y->target.port;
    str_fmt(u->id, sizeof(u->id), "%s", y->target.id);
    str_fmt(u->key, sizeof(u->key), "%s", y->key);
    list_init(&u->link);
    return u;
}

void upstream_free(struct upstream *u)
{
    if (u == NULL)
        return;
    if (u->y == NULL)
        u->p->nidle--;
    list_del(&u->link);
    loop_io_stop(u->p->loop, &u->io);
    fd_close(u->p->engine, u->fd, u->key);
    free(u);
}

/* Open, and with nothing to read: what a server sent without being asked is not the next answer. */
static bool is_quiet(const struct upstream *u)
{
    char c;

    return recv(u->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

struct upstream *upstream_take(struct relay *y, bool fresh)
{
    uint64_t now = clock_mono_ms();
    struct upstream *u;

    LIST_EACH (&y->p->idle, u, struct upstream, link) {
        if (u->port != y->target.port || strcmp(u->id, y->target.id) != 0)
            continue;
        if (now - u->since_ms > (fresh ? PROXY_IDLE_FRESH : PROXY_IDLE_MS))
            return NULL; /* the others are older */
        if (!is_quiet(u)) {
            upstream_free(u);
            continue;
        }
        list_del(&u->link);
        y->p->nidle--;
        u->y = y;
        return u;
    }
    return NULL;
}

void upstream_rest(struct upstream *u)
{
    struct proxy *p = u->p;
    struct upstream *other;
    size_t same = 0;

    LIST_EACH (&p->idle, other, struct upstream, link)
        same += other->port == u->port && strcmp(other->id, u->id) == 0;
    if (same >= PROXY_IDLE_EACH) {
        upstream_free(u);
        return;
    }
    if (p->nidle >= PROXY_IDLE_MAX)
        upstream_free(CONTAINER_OF(p->idle.prev, struct upstream, link));
    proxy_sweep_soon(p);
    u->y = NULL;
    u->since_ms = clock_mono_ms();
    list_add_head(&p->idle, &u->link);
    p->nidle++;
    loop_io_set(p->loop, &u->io, EPOLLIN);
}

void upstream_drop(struct proxy *p, const char *id)
{
    uint64_t now = clock_mono_ms();
    struct upstream *u;

    LIST_EACH (&p->idle, u, struct upstream, link)
        if (id != NULL ? strcmp(u->id, id) == 0 : now - u->since_ms > PROXY_IDLE_MS)
            upstream_free(u);
}
