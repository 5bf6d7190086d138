/* tunnel.c - tunnels: ports of a sandbox that are open to holders of their token.
 *
 * Of a sandbox with a name only these ports are open: a visitor of one port must not reach the
 * others. Without a name it is as with E2B: the id of the sandbox opens all ports. */
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "front/engine/internal.h"

_Static_assert(ENGINE_TUNNEL_TOKEN == STORE_TUNNEL_TOKEN, "one is copied to the other");
_Static_assert(ENGINE_TUNNEL_NAME_MAX == STORE_TUNNEL_NAME, "likewise");

static struct box *find(struct ref ref, struct err *e)
{
    struct box *b = box_of(ref);

    if (b == NULL)
        err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    return b;
}

static int check_room(struct engine *g, const char *id, struct err *e)
{
    uint64_t n;

    if (store_tunnel_count(g->o.store, id, &n, e) < 0)
        return -1;
    if (n >= ENGINE_TUNNELS_MAX)
        return err_set(e, ERR_LIMIT, "a sandbox has at most %u tunnels; delete one",
                       ENGINE_TUNNELS_MAX);
    return 0;
}

static void show(struct sandbox_tunnel *to, const struct store_tunnel *from)
{
    *to = (struct sandbox_tunnel){.port = from->port, .created_ms = from->created_ms};
    strcpy(to->token, from->token);
    strcpy(to->name, from->name);
}

static int make(struct engine *g, const char *id, struct store_tunnel *t, const char *name,
                struct err *e)
{
    if (check_room(g, id, e) < 0)
        return -1;
    if (strlen(name) > STORE_TUNNEL_NAME)
        return err_set(e, ERR_INVALID, "name: at most %d bytes", STORE_TUNNEL_NAME);
    t->created_ms = clock_real_ms();
    id_random(t->token, STORE_TUNNEL_TOKEN);
    strcpy(t->name, name);
    return store_tunnel_put(g->o.store, id, t, e);
}

int engine_tunnel_open(struct ref ref, unsigned port, const char *name, struct sandbox_tunnel *ret,
                       struct err *e)
{
    struct store_tunnel t = {.port = port};
    int r = find(ref, e) == NULL ? -1 : store_tunnel_get(ref.engine->o.store, ref.id, port, &t, e);

    if (r < 0 || (r == 0 && make(ref.engine, ref.id, &t, name, e) < 0))
        return -1;
    if (strcmp(t.name, name) != 0)
        return err_set(e, ERR_CONFLICT, "port %u has a tunnel with another name; delete it first",
                       port);
    show(ret, &t);
    return 0;
}

int engine_tunnel_close(struct ref ref, unsigned port, struct err *e)
{
    return find(ref, e) == NULL ? -1 : store_tunnel_delete(ref.engine->o.store, ref.id, port, e);
}

/* Whatever is presented, all of it is looked at. */
static bool is_same(const char *token, const char *presented)
{
    unsigned char differs = strlen(presented) != STORE_TUNNEL_TOKEN;

    for (size_t i = 0; i < STORE_TUNNEL_TOKEN && presented[i] != '\0'; i++)
        differs |= (unsigned char)(token[i] ^ presented[i]);
    return differs == 0;
}

bool engine_tunnel_is(struct engine *g, const char *id, unsigned port, const char *token)
{
    struct store_tunnel t;
    struct err e;

    return box_find(g, id) != NULL && store_tunnel_get(g->o.store, id, port, &t, &e) == 1 &&
           is_same(t.token, token);
}
