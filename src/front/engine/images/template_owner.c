/* template_owner.c - who added which template, for the quota of the key.
 *
 * Templates are for all keys; the keeper has them and knows no keys. What was added before there were
 * quotas counts to none, and so does another name of a template. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

static const struct quotas one = {{[QUOTA_templates] = 1}};

struct owned {
    struct map_node node;
    struct quota_user *user;
    char name[];
};

static struct owned *find(struct engine *g, const char *name)
{
    struct map_node *n = map_get(&g->owned, name);

    return n == NULL ? NULL : CONTAINER_OF(n, struct owned, node);
}

static void let_go(struct engine *g, struct owned *o)
{
    quota_drop(o->user, &one);
    map_del(&g->owned, &o->node);
    free(o);
}

static void note(void *arg, const char *name, const char *key)
{
    struct engine *g = arg;
    struct owned *o = find(g, name);

    if (o != NULL)
        let_go(g, o);
    o = mem_zeroed(1, sizeof(*o) + strlen(name) + 1);
    strcpy(o->name, name);
    o->user = quota_user(g->o.quotas, key);
    mem_put(&g->owned, &o->node, o->name);
    quota_add(o->user, &one);
}

/* One that replaces an own one is no more than before. */
int template_may_add(struct engine *g, const char *key, const char *name, struct quotas *ret_more,
                     struct err *e)
{
    const struct owned *o = find(g, name);
    struct quota_user *user = quota_user(g->o.quotas, key);

    *ret_more = o != NULL && o->user == user ? (struct quotas){0} : one;
    return quota_check(user, ret_more, e) < 0 ? err_wrap(e, "add a template") : 0;
}

void template_own(struct engine *g, const char *key, const char *name)
{
    struct err e;

    if (store_template_put(g->o.store, name, key, &e) < 0)
        log_error("%s", e.msg);
    note(g, name, key);
}

void template_disown(struct engine *g, const char *name)
{
    struct owned *o = find(g, name);
    struct err e;

    if (o == NULL)
        return;
    if (store_template_delete(g->o.store, name, &e) < 0)
        log_error("template %s: %s", name, e.msg);
    let_go(g, o);
}

int templates_join(struct engine *g, struct err *e)
{
    return store_template_each(g->o.store, note, g, e);
}

void templates_free(struct engine *g)
{
    for (size_t i = 0; i < g->owned.nslots; i++)
        while (g->owned.slots[i] != NULL)
            let_go(g, CONTAINER_OF(g->owned.slots[i], struct owned, node));
    map_free(&g->owned);
}
