/* pool.c - see pool.h. Sandboxes come up, are kept ready, and are given out. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/internal.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/snapshot.h"
#include "keeper/template.h"

#define POOL_BUILD_AT_ONCE 2 /* inits booting at one time on the pool's account */
#define DYING_PAUSE 256      /* teardowns waiting: the pool is not filled meanwhile */
#define POOL_LATER_MS 10     /* between two, while half of the pool is there */
#define POOL_AGAIN_MS 500    /* after a failure to fill it; doubled up to 32 times that */

void sandbox_count_asked(struct sandbox *sb, bool asked)
{
    sb->k->nasked += (size_t)asked - (size_t)sb->asked;
    sb->asked = asked;
}

struct sandbox *sandbox_find(struct keeper *k, const char *id)
{
    struct map_node *n = map_get(&k->sandboxes, id);

    return n == NULL ? NULL : CONTAINER_OF(n, struct sandbox, by_id);
}

unsigned sandbox_standing(struct keeper *k, const char *version, bool all)
{
    unsigned count = 0;

    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            const struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.phase == PHASE_DAMAGED && sb->rec.layer[0] == '\0')
                count++; /* nothing says what it stands on: it may be this */
            else
                count +=
                    strcmp(sb->rec.layer, version) == 0 && (all || sb->rec.phase != PHASE_DYING);
        }
    return count;
}

void sandbox_answer_ok(struct sandbox *sb)
{
    struct keeper_ok ok = {0};

    if (sb->ask != 0)
        link_send(sb->k, KEEPER_OK, sb->ask, &ok);
    sb->ask = 0;
}

void sandbox_answer_given(struct sandbox *sb)
{
    link_sandbox(sb->k, sb->ask, sb);
    sb->ask = 0;
}

/* Not durable: a front asks for that, for many at a time, before it tells a client. */
int sandbox_give(struct sandbox *sb, struct err *e)
{
    sb->rec.phase = PHASE_GIVEN;
    sb->rec.reason[0] = '\0';
    if (record_save(sb, false, e) < 0)
        return -1;
    sb->k->ngiven++;
    reserve_kick(sb->k);
    sandbox_count_asked(sb, false);
    return 0;
}

void sandbox_booted(struct sandbox *sb)
{
    struct keeper *k = sb->k;
    struct err e;

    if (sandbox_watch_init(sb, &e) < 0) {
        sandbox_failed(sb, &e);
        return;
    }
    if (sb->ask == ASK_FORGOTTEN) {
        /* The next front has its list already, and this one was not in it. */
        err_set(&e, ERR_GONE, "sandbox %s: the front that asked for it is gone", sb->rec.id);
        sandbox_failed(sb, &e);
        return;
    }
    if (sb->import) {
        sb->rec.phase = PHASE_IMPORT;
        sandbox_count_asked(sb, false);
        sandbox_answer_given(sb);
        return;
    }
    if (sb->ask != 0) {
        if (sandbox_give(sb, &e) < 0)
            sandbox_failed(sb, &e);
        else
            sandbox_answer_given(sb);
        return;
    }
    k->nbuilding--;
    k->refill_fails = 0;
    k->npool++;
    sb->rec.phase = PHASE_POOLED;
    if (record_save(sb, false, &e) < 0)
        log_warn("%s", e.msg);
    list_add_tail(&k->pool, &sb->link);
    pool_refill(k);
}

static void refill_again(struct loop_timer *t)
{
    pool_refill(CONTAINER_OF(t, struct keeper, refill_wait));
}

/* Whatever is wrong, trying again at once would only burn the machine. */
static void refill_failed(struct keeper *k)
{
    k->nbuilding--;
    loop_timer_set(k->loop, &k->refill_wait,
                   POOL_AGAIN_MS << (k->refill_fails < 5 ? k->refill_fails : 5), refill_again);
    k->refill_fails++;
}

void sandbox_failed(struct sandbox *sb, const struct err *e)
{
    bool stays = sb->keep_disk; /* it was a stopped one that should boot */

    log_error("%s", e->msg);
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, e);
    else if (sb->rec.phase == PHASE_BUILDING)
        refill_failed(sb->k);
    sb->ask = 0;
    sb->rec.phase = stays ? PHASE_STOPPED : PHASE_DYING;
    sandbox_bury(sb, stays);
}

struct sandbox *sandbox_build(struct keeper *k, const struct order *o, uint32_t ask, struct err *e)
{
    const char *layer = "";
    char id[ID_LEN + 1];
    struct sandbox *sb;

    if (o->template != NULL && o->snapshot == NULL)
        layer = template_current(k, o->template, e);
    if (layer == NULL)
        return NULL;
    id_random(id, ID_LEN);
    sb = sandbox_new(k, id, e);
    if (sb == NULL)
        return NULL;
    sb->import = o->template == NULL;
    k->nimports += sb->import;
    sb->rec.phase = PHASE_BUILDING;
    sb->rec.limits = o->limits;
    sb->rec.network = o->network;
    sb->rec.created_ms = clock_real_ms();
    sb->ask = ask;
    sandbox_count_asked(sb, ask != 0);
    str_fmt(sb->rec.template, sizeof(sb->rec.template), "%s",
            o->template == NULL ? "" : o->template);
    str_fmt(sb->rec.layer, sizeof(sb->rec.layer), "%s", layer);
    if (o->snapshot != NULL)
        snapshot_stand(o->snapshot, sb);
    if (network_keep_rules(sb, &o->rules, e) == 0 && sandbox_up(sb, e) == 0)
        return sb;
    sb->ask = 0;
    sb->rec.phase = PHASE_DYING;
    sandbox_bury(sb, false);
    return NULL;
}

struct limits sandbox_defaults(const struct keeper *k)
{
    const struct config *c = &k->config;
    struct limits l;

    LIMITS_COPY(&l, c);
    return l;
}

static uint64_t alive(const struct keeper *k)
{
    return k->ngiven + k->nasked + k->npool + k->nbuilding;
}

static void refill_later(struct loop_timer *t);

static void refill(struct loop_later *d)
{
    struct keeper *k = CONTAINER_OF(d, struct keeper, refill);
    struct order o = {.template = "base", .limits = sandbox_defaults(k)};
    struct err e;

    if (k->npool + k->nbuilding >= k->config.pool || k->nbuilding >= POOL_BUILD_AT_ONCE ||
        k->ndying > DYING_PAUSE || alive(k) >= k->nsandboxes_max || k->refill_wait.slot != 0)
        return;
    if (closer_is_closing()) {
        loop_timer_set(k->loop, &k->refill_soon, 1, refill_later);
        return;
    }
    if (disk_check(k, &e) < 0) {
        loop_timer_set(k->loop, &k->refill_wait, POOL_AGAIN_MS, refill_again);
        return;
    }
    k->nbuilding++;
    if (network_choose(k, "", &o.network, &e) < 0 || sandbox_build(k, &o, 0, &e) == NULL) {
        refill_failed(k);
        log_error("filling the pool: %s", e.msg);
        return;
    }
    pool_refill(k);
}

static void refill_later(struct loop_timer *t)
{
    struct keeper *k = CONTAINER_OF(t, struct keeper, refill_soon);

    loop_defer(k->loop, &k->refill, refill);
}

/* Who was just given a sandbox is about to use it, and making its successor takes
 * a core for some milliseconds: as long as enough are left, that waits for a quiet
 * moment. */
void pool_refill(struct keeper *k)
{
    if (k->npool < (k->config.pool + 1) / 2)
        loop_defer(k->loop, &k->refill, refill);
    else
        loop_timer_set(k->loop, &k->refill_soon, POOL_LATER_MS, refill_later);
}

void pool_open(struct keeper *k)
{
    list_init(&k->pool);
    list_init(&k->dying);
    map_init(&k->sandboxes);
}

void pool_drop_stale(struct keeper *k)
{
    struct sandbox *sb;
    struct err e;

    LIST_EACH (&k->pool, sb, struct sandbox, link) {
        if (strcmp(sb->rec.layer, template_current(k, "base", &e)) == 0)
            continue;
        k->npool--;
        sb->rec.phase = PHASE_DYING;
        sandbox_bury(sb, false);
    }
    pool_refill(k);
}
