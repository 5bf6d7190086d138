/* network.c - network rules and traffic of a sandbox.
 *
 * Rules go to the keeper first and then into the row: after a crash, rules that a client was told of
 * are there, and others may be. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

/* ---- rules in memory, on the wire and in the row ---- */

void box_pack_rules(struct buf *out, const struct sandbox_rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rules_add(out, &(struct wire_rule){.to = rules[i].to, .deny = rules[i].deny});
}

void box_set_rules(struct box *b, const struct wire_bytes *packed)
{
    size_t n = rules_count(packed);
    struct sandbox_rule *rules = mem_zeroed(n + 1, sizeof(*rules));

    for (size_t i = 0; i < n; i++) {
        struct wire_rule r = rules_get(packed, i);

        rules[i] = (struct sandbox_rule){.to = r.to, .deny = r.deny};
    }
    free(b->rules);
    b->rules = rules;
    b->pub.rules = rules;
    b->pub.nrules = n;
}

/* ---- changing them ---- */

struct rules_call {
    struct engine *g;
    struct waiter *waiter; /* NULL once the client was told that it took too long */
    char id[KEEPER_ID_MAX + 1];
    uint32_t len;
    char packed[];
};

static void keep(struct rules_call *c)
{
    struct box *b = box_find(c->g, c->id);
    struct wire_bytes packed = {c->packed, c->len};
    struct err e;

    if (b == NULL) {
        waiter_fail(c->waiter, ERR_NOT_FOUND, "no sandbox %s", c->id);
        return;
    }
    if (store_sandbox_set_rules(c->g->o.store, c->id, &(struct store_bytes){c->packed, c->len},
                                &e) < 0) {
        network_reapply(b); /* what the row says holds */
        waiter_answer(c->waiter, c->id, &e);
        return;
    }
    box_leave(b);
    box_set_rules(b, &packed);
    waiter_answer(c->waiter, c->id, NULL);
}

static void on_ruled(void *arg, const void *msg, const struct err *e)
{
    struct rules_call *c = arg;

    (void)msg;
    if (e == NULL)
        keep(c);
    else
        waiter_answer(c->waiter, c->id, e);
    free(c);
}

static void on_rules_late(void *arg, const struct err *e)
{
    struct rules_call *c = arg;

    waiter_answer(take_ptr(&c->waiter), c->id, e);
}

static void rules_drop(void *arg)
{
    struct rules_call *c = arg;

    free(c->waiter);
    free(c);
}

static struct rules_call *rules_call(struct engine *g, const char *id, const struct buf *packed)
{
    struct rules_call *c = mem_zeroed(1, sizeof(*c) + packed->len + 1);

    c->g = g;
    c->len = (uint32_t)packed->len;
    if (packed->len > 0)
        memcpy(c->packed, buf_data(packed), packed->len);
    str_fmt(c->id, sizeof(c->id), "%s", id);
    return c;
}

/* The sandbox whose rules may be changed, or NULL and `e`. */
static struct box *box_to_rule(struct ref ref, size_t n, struct err *e)
{
    struct box *b = box_of(ref);

    if (b == NULL)
        err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else if (n > 0 && strcmp(b->pub.network, "egress") != 0)
        err_set(e, ERR_CONFLICT, "sandbox %s has no network (%s): it takes no rules", ref.id,
                b->pub.network);
    else if (!box_has_init(b) && b->life != LIFE_STOPPED)
        err_set(e, ERR_CONFLICT, "sandbox %s is being started or stopped; try again", ref.id);
    else
        return b;
    return NULL;
}

void engine_set_rules(struct ref ref, const struct sandbox_rule *rules, size_t n,
                      engine_sandbox_cb *cb, void *arg)
{
    static const struct keeper_asker asker = {
        .last = on_ruled, .late = on_rules_late, .drop = rules_drop};
    autobuf struct buf packed = BUF_INIT(WIRE_RULES_BYTES);
    struct waiter *w = waiter_new(ref.engine, NULL, cb, arg);
    struct rules_call *c;
    struct err e;
    struct box *b = box_to_rule(ref, n, &e);

    box_pack_rules(&packed, rules, n);
    if (b == NULL) {
        waiter_answer(w, "", &e);
        return;
    }
    if (packed.failed) {
        waiter_fail(w, ERR_INVALID, "more than %u rules", ENGINE_RULES_MAX);
        return;
    }
    c = rules_call(ref.engine, b->pub.id, &packed);
    c->waiter = w;
    if (b->life == LIFE_STOPPED) { /* they go with its next boot */
        keep(c);
        free(c);
        return;
    }
    keeper_ask(ref.engine->keeper, KEEPER_RULES,
               &(struct keeper_rules){.id = c->id, .rules = {c->packed, c->len}}, &asker, c);
}

static void on_reapplied(void *arg, const void *msg, const struct err *e)
{
    (void)msg;
    if (e != NULL)
        log_error("rules of sandbox %s: %s", ((struct rules_call *)arg)->id, e->msg);
    free(arg);
}

void network_reapply(struct box *b)
{
    static const struct keeper_asker asker = {.last = on_reapplied, .drop = free};
    autobuf struct buf packed = BUF_INIT(WIRE_RULES_BYTES);
    struct rules_call *c;

    box_pack_rules(&packed, b->pub.rules, b->pub.nrules);
    c = rules_call(b->g, b->pub.id, &packed);
    keeper_ask(b->g->keeper, KEEPER_RULES,
               &(struct keeper_rules){.id = c->id, .rules = {c->packed, c->len}}, &asker, c);
}

/* ---- what went over it ---- */

struct traffic_call {
    struct engine *g;
    char key[ENGINE_KEY_MAX + 1];                             /* "": all */
    void (*each)(void *arg, const struct sandbox_traffic *t); /* NULL once `done` was called */
    engine_done_cb *done;
    void *arg;
};

static void on_count(void *arg, const void *msg)
{
    const struct keeper_count *m = msg;
    struct traffic_call *c = arg;
    struct sandbox_traffic t = {.id = m->id,
                                .in_bytes = m->in_bytes,
                                .in_packets = m->in_packets,
                                .out_bytes = m->out_bytes,
                                .out_packets = m->out_packets};

    const struct sandbox *s = engine_find(c->g, m->id);

    if (c->each != NULL && s != NULL && (c->key[0] == '\0' || strcmp(c->key, s->key) == 0))
        c->each(c->arg, &t);
}

static void on_traffic_late(void *arg, const struct err *e)
{
    struct traffic_call *c = arg;

    if (take_ptr(&c->each) != NULL)
        c->done(c->arg, e);
}

static void on_traffic_end(void *arg, const void *msg, const struct err *e)
{
    (void)msg;
    on_traffic_late(arg, e);
    free(arg);
}

void engine_traffic(struct engine *g, const char *key,
                    void (*each)(void *arg, const struct sandbox_traffic *t), engine_done_cb *done,
                    void *arg)
{
    static const struct keeper_asker asker = {
        .each = on_count, .last = on_traffic_end, .late = on_traffic_late, .drop = free};
    struct traffic_call *c = mem_zeroed(1, sizeof(*c));
    struct keeper_traffic ask = {0};

    *c = (struct traffic_call){.g = g, .each = each, .done = done, .arg = arg};
    str_fmt(c->key, sizeof(c->key), "%.*s", (int)ENGINE_KEY_MAX, key != NULL ? key : "");
    keeper_ask(g->keeper, KEEPER_TRAFFIC, &ask, &asker, c);
}
