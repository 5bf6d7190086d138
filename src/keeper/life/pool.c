/* pool.c - sandboxes that are made before a client asks for them. */
#include <string.h>

#include "base/log.h"
#include "keeper/closer.h"
#include "keeper/life/reactions.h"
#include "keeper/network.h"
#include "keeper/template.h"

#define POOL_FILLING_MAX 2    /* inits that boot concurrently for the pool */
#define POOL_TEARDOWN_MAX 256 /* teardowns in the queue: the pool is not filled meanwhile */
#define POOL_LATER_MS 10      /* between two, while half of the pool is there */
#define POOL_AGAIN_MS 500     /* after a failure to fill it; doubled up to 32 times that */

void pool_open(struct keeper *k)
{
    list_init(&k->pool);
    map_init(&k->sandboxes);
}

static void refill_again(struct loop_timer *t)
{
    pool_refill(CONTAINER_OF(t, struct keeper, refill_wait));
}

/* Trying again at once would keep a core busy with the same failure. */
void pool_refill_failed(struct keeper *k)
{
    loop_timer_set(k->loop, &k->refill_wait,
                   POOL_AGAIN_MS << (k->refill_fails < 5 ? k->refill_fails : 5), refill_again);
    k->refill_fails++;
}

static void refill_later(struct loop_timer *t);

bool pool_has_place(const struct keeper *k)
{
    return k->counts[COUNT_POOLED] + k->counts[COUNT_FILLING] + k->counts[COUNT_GIVEN] +
               k->counts[COUNT_STARTING] <
           k->nsandboxes_max;
}

int pool_fill(struct keeper *k, struct err *e)
{
    struct order o = {.template = "base", .limits = sandbox_defaults(k), .relaxed = k->relaxed};
    const char *failed = template_current(k, "base", e) == NULL     ? "template"
                         : network_choose(k, "", &o.network, e) < 0 ? "network"
                                                                    : NULL;

    if (failed != NULL) {
        proof_done(k, failed);
        return -1;
    }
    return sandbox_build(k, &o, STATE_FILLING, 0, e) == NULL ? -1 : 0;
}

void pool_trim(struct keeper *k)
{
    if (k->counts[COUNT_POOLED] > k->config.pool)
        sandbox_tell(LIST_FIRST(&k->pool, struct sandbox, pool_link), EV_DROP);
}

static void refill(struct loop_later *d)
{
    struct keeper *k = CONTAINER_OF(d, struct keeper, refill);
    size_t ours = k->counts[COUNT_POOLED] + k->counts[COUNT_FILLING];
    struct err e;

    if (ours >= k->config.pool || k->counts[COUNT_FILLING] >= POOL_FILLING_MAX ||
        k->counts[COUNT_TEARDOWN] > POOL_TEARDOWN_MAX || !pool_has_place(k) ||
        k->refill_wait.slot != 0)
        return;
    if (closer_is_closing()) {
        loop_timer_set(k->loop, &k->refill_soon, 1, refill_later);
        return;
    }
    if (memory_check(k, &e) < 0 || disk_check(k, &e) < 0) {
        loop_timer_set(k->loop, &k->refill_wait, POOL_AGAIN_MS, refill_again);
        return;
    }
    if (pool_fill(k, &e) < 0) {
        pool_refill_failed(k);
        log_error("fill the pool: %s", e.msg);
        return;
    }
    pool_refill(k);
}

static void refill_later(struct loop_timer *t)
{
    struct keeper *k = CONTAINER_OF(t, struct keeper, refill_soon);

    loop_defer(k->loop, &k->refill, refill);
}

/* A client that was just given a sandbox is about to use it, and making the next one takes a
 * core for some milliseconds: while enough are left, that waits for a quiet moment. */
void pool_refill(struct keeper *k)
{
    if (k->counts[COUNT_POOLED] < (k->config.pool + 1) / 2)
        loop_defer(k->loop, &k->refill, refill);
    else
        loop_timer_set(k->loop, &k->refill_soon, POOL_LATER_MS, refill_later);
}

void pool_drop_stale(struct keeper *k)
{
    struct sandbox *sb;
    struct err e;

    LIST_EACH (&k->pool, sb, struct sandbox, pool_link)
        if (strcmp(sb->rec.layer, template_current(k, "base", &e)) != 0)
            sandbox_tell(sb, EV_DROP);
    pool_refill(k);
}

void pool_drain(struct keeper *k)
{
    struct sandbox *sb;

    k->config.pool = 0;
    SANDBOX_EACH(k, sb)
    sandbox_tell(sb, EV_DROP);
}
